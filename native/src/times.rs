//! Times in UTC: what `codec.times.parse_time` does for `YYYY-MM-DD` and `YYYY-MM-DDTHH:MM:SS[.ffffff]Z`.

/// Return microseconds since 1970-01-01T00:00:00Z; no answer for any other text.
pub fn parse_time(text: &str) -> Option<i64> {
    let (day, clock) = text.split_at_checked(10)?;
    let days = day_number(day)?;
    if clock.is_empty() {
        return Some(days * 86_400_000_000);
    }
    let clock = clock.strip_prefix('T')?.strip_suffix('Z')?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    if hour > 23 || minute > 59 || second > 59 || fraction.len() > 6 {
        return None;
    }
    let micros = number(fraction)? * 10_i64.pow(6 - fraction.len() as u32);
    Some((days * 86_400 + hour * 3600 + minute * 60 + second) * 1_000_000 + micros)
}

/// Return the days since 1970-01-01 of a day of the Gregorian calendar, from the year 1 on.
fn day_number(text: &str) -> Option<i64> {
    let [year, month, day] = numbers(text, '-', [4, 2, 2])?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year == 0 || !(1..=days).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) }; // a year begins in March
    Some(year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468)
}

/// Return three numbers, each of as many digits as given.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(separator);
    let mut result = [0; 3];
    for (value, length) in result.iter_mut().zip(digits) {
        *value = number(parts.next().filter(|part| part.len() == length)?)?;
    }
    parts.next().is_none().then_some(result)
}

/// Return the number that these digits make; no answer without digits.
fn number(digits: &str) -> Option<i64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

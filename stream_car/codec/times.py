"""Times as publishers write them (RFC 3339) and as the engine keeps them (integer microseconds, UTC).

Promise: the grammar is defined here, so a verdict does not depend on what a Python version accepts. All arithmetic
uses integers and cannot overflow. Only the years 0001 to 9999, counted in UTC, are valid. Cost: about a microsecond
in either direction.
"""

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

EARLIEST = -62_135_596_800_000_000  # 0001-01-01T00:00:00Z
LATEST = 253_402_300_799_999_999  # 9999-12-31T23:59:59.999999Z

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY_ALONE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_GRAMMAR = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_SEVEN_DIGITS = re.compile(r"\.[0-9]{7}")


def parse_time(text: str) -> int:
    """Return microseconds since 1970-01-01T00:00:00Z. Fraction digits after the sixth are truncated.

    A day alone, `YYYY-MM-DD`, means its first moment in UTC.

    Raises:
        ValueError: the text is neither a day nor `YYYY-MM-DDTHH:MM:SS`, an optional fraction of up to nine digits, and
            `Z` or an offset. Only upper case is accepted. Second 60 is rejected, and so is the offset `-00:00`, which
            means that the offset is unknown.
    """
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        if _DAY_ALONE.fullmatch(text):
            return _day_number(text) * _DAY * 1_000_000
        raise ValueError("A time must look like 2024-01-31, 2024-01-31T09:30:00Z or 2024-01-31T09:30:00.5+02:00.")
    day, hour, minute, second, fraction, sign, offset_hour, offset_minute = match.groups()
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second)
    if hour > "23" or minute > "59" or second > "59":
        raise ValueError("Hours end at 23, minutes and seconds at 59. Send a leap second as the second before it.")
    micros = (_day_number(day) * _DAY + seconds) * 1_000_000
    if fraction is not None:
        micros += int(fraction[:6].ljust(6, "0"))
    if sign is not None:
        micros -= _offset(sign, offset_hour, offset_minute)
        if not EARLIEST <= micros <= LATEST:
            raise ValueError("In UTC this time is outside the years 0001 to 9999.")
    return micros


def format_time(micros: int) -> str:
    """Return a time in microseconds as RFC 3339 text in UTC, with no more fraction digits than necessary.

    Raises:
        ValueError: the time is outside the years 0001 to 9999.
    """
    if not EARLIEST <= micros <= LATEST:
        raise ValueError(f"{micros} microseconds are outside the years 0001 to 9999.")
    seconds, fraction = divmod(micros, 1_000_000)
    days, second = divmod(seconds, _DAY)
    text = f"{_day_text(days)}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"{text}.{fraction:06}".rstrip("0") + "Z" if fraction else text + "Z"


def from_micros(micros: int) -> datetime:
    """Return a time in microseconds as a `datetime` in UTC."""
    return _EPOCH + timedelta(microseconds=micros)


def to_micros(time: datetime) -> int:
    """Return an aware `datetime` in microseconds since 1970-01-01T00:00:00Z."""
    return (time - _EPOCH) // _MICROSECOND


def is_finer_than_microseconds(text: str) -> bool:
    """Return whether `parse_time` truncates this time."""
    return len(text) > 27 and _SEVEN_DIGITS.search(text) is not None


@lru_cache(maxsize=4096)
def _day_number(text: str) -> int:
    try:
        return date(int(text[:4]), int(text[5:7]), int(text[8:])).toordinal() - _EPOCH_DAY
    except ValueError:
        raise ValueError(f"The day {text} does not exist.") from None


@lru_cache(maxsize=4096)
def _day_text(number: int) -> str:
    return date.fromordinal(number + _EPOCH_DAY).isoformat()


def _offset(sign: str, hour: str, minute: str) -> int:
    if hour > "23" or minute > "59":
        raise ValueError(f"The offset {sign}{hour}:{minute} does not exist.")
    micros = (int(hour) * 60 + int(minute)) * 60_000_000
    if sign == "+":
        return micros
    if micros == 0:
        raise ValueError("The offset -00:00 means that the offset is unknown. Send Z or a known offset.")
    return -micros

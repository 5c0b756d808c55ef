"""Times as text, as microseconds and as `datetime`: all forms of one moment convert into each other."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from stream_car.codec.times import (
    EARLIEST,
    LATEST,
    format_time,
    from_micros,
    is_finer_than_microseconds,
    parse_time,
    to_micros,
)

FORMS = [
    ("1970-01-01T00:00:00Z", 0, datetime(1970, 1, 1, tzinfo=UTC)),
    ("1969-12-31T23:59:59.999999Z", -1, datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    ("2024-02-29T12:30:00.5Z", 1_709_209_800_500_000, datetime(2024, 2, 29, 12, 30, 0, 500_000, tzinfo=UTC)),
    ("0001-01-01T00:00:00Z", EARLIEST, datetime(1, 1, 1, tzinfo=UTC)),
    ("9999-12-31T23:59:59.999999Z", LATEST, datetime.max.replace(tzinfo=UTC)),
]
micros = st.integers(EARLIEST, LATEST)


@pytest.mark.parametrize(("text", "number", "time"), FORMS)
def test_text_microseconds_and_datetime_are_one_moment(text: str, number: int, time: datetime) -> None:
    assert (parse_time(text), format_time(number)) == (number, text)
    assert (from_micros(number), to_micros(time)) == (time, number)


@given(micros)
def test_microseconds_survive_a_datetime_and_text(number: int) -> None:
    time = from_micros(number)

    assert time.tzinfo is UTC
    assert to_micros(time) == number
    assert parse_time(format_time(number)) == number


@given(micros, micros)
def test_datetimes_are_in_the_order_of_their_microseconds(first: int, second: int) -> None:
    assert (from_micros(first) < from_micros(second)) == (first < second)


@pytest.mark.parametrize("hours", [-12, -1, 0, 5.5, 14])
def test_a_datetime_of_any_zone_is_converted_exactly(hours: float) -> None:
    zone = timezone(timedelta(hours=hours))

    assert to_micros(datetime(2024, 2, 29, 12, 30, 0, 500_000, tzinfo=UTC).astimezone(zone)) == FORMS[2][1]


@pytest.mark.parametrize("day", ["2024-02-29", "1969-12-31", "0001-01-01", "9999-12-31"])
def test_a_day_alone_is_its_first_moment_in_utc(day: str) -> None:
    assert parse_time(day) == parse_time(f"{day}T00:00:00Z")


@pytest.mark.parametrize("text", ["2023-02-29", "2024-13-01", "2024-00-10", "0000-01-01"])
def test_a_day_that_does_not_exist_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=f"The day {text} does not exist"):
        parse_time(text)


@pytest.mark.parametrize(
    "text", ["2024-2-9", "20240229", "2024-02-29Z", " 2024-02-29", "2024-02-29\n", "2024-02", "٢٠٢٤-02-29"]
)
def test_another_spelling_of_a_day_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="A time must look like 2024-01-31"):
        parse_time(text)


@pytest.mark.parametrize("number", [EARLIEST - 1, LATEST + 1])
def test_a_time_outside_the_years_1_to_9999_has_no_text(number: int) -> None:
    with pytest.raises(ValueError, match="0001 to 9999"):
        format_time(number)


def test_a_seventh_digit_is_noticed() -> None:
    assert is_finer_than_microseconds("2024-02-29T12:30:00.1234567Z")
    assert not is_finer_than_microseconds("2024-02-29T12:30:00.123456Z")
    assert not is_finer_than_microseconds("2024-02-29T12:30:00.123456+00:00")

"""Cursors as text: one parser, one writer."""

import pytest
from hypothesis import given, strategies as st

from stream_car import InvalidRequest
from stream_car.subscriptions.cursor import Cursor

numbers = st.lists(st.integers(0, 10**16 - 1), min_size=1, max_size=9).map(tuple)


@given(st.text(min_size=1), numbers)
def test_a_cursor_survives_its_text(generation: str, numbers: tuple[int, ...]) -> None:
    cursor = Cursor(generation, numbers)

    assert Cursor.parse(str(cursor)) == cursor


def test_a_cursor_has_one_number_per_shard() -> None:
    assert str(Cursor("5ab-3", (7,))) == "5ab-3:7"
    assert str(Cursor("5ab-3", (7,), "9-abc")) == "5ab-3:7@9-abc"
    assert Cursor.parse("5ab-3:7@9-abc") == Cursor("5ab-3", (7,), "9-abc")
    assert Cursor.parse("5ab-3-2x3:4.0.12") == Cursor("5ab-3-2x3", (4, 0, 12))


@pytest.mark.parametrize(
    "text", ["", ":", "g", "g:", ":5", "g:-1", "g:1.", "g:.1", "g:1e3", "g: 1", "g:١", "g:" + "9" * 17]
)
def test_what_is_not_a_cursor_is_an_error_that_names_the_cure(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"GENERATION:NUMBER.*Omit the cursor") as caught:
        Cursor.parse(text)

    assert caught.value.code == "cursor"

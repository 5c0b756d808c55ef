"""Changes of frontiers in their two forms."""

import msgspec
import pytest
from hypothesis import given, strategies as st

from stream_car.codec.changes import decode_change, encode_change, pack_change
from stream_car.core.changes import Cause, FrontierChange, Member, Run

NUMBERS = st.integers(0, 2**62)
WHY = st.sampled_from(["voided", "retracted", "corrected", "moved", "link", "holds"])
NAMES = st.sampled_from(["a", "b", "Ä 1"])
CAUSES = st.builds(
    Cause,
    id=NAMES,
    revision=NUMBERS,
    kind=st.sampled_from(["placed", "corrected", "moved", "retracted", "released"]),
    title=st.text(max_size=3),
    url=st.text(max_size=3),
    source=st.text(max_size=3),
)
MEMBERS = st.builds(
    Member,
    id=NAMES,
    revision=NUMBERS,
    type=NAMES,
    time=NUMBERS.map(int.__neg__),
    order=NUMBERS,
    elsewhere=NUMBERS,
    why=WHY,
    rule=st.text(max_size=3),
)
VALUES = st.lists(st.text(max_size=3), max_size=2).map(tuple)
RUNS = st.builds(
    Run,
    type=NAMES,
    start=st.tuples(NUMBERS, NUMBERS),
    end=st.tuples(NUMBERS, NUMBERS),
    count=NUMBERS,
    why=WHY,
    rule=NAMES,
    including=st.none() | VALUES,
    excluding=st.lists(VALUES, max_size=2).map(tuple),
)
CHANGES = st.builds(
    FrontierChange,
    scope=st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    seq=NUMBERS,
    cause=CAUSES,
    offset=NUMBERS,
    entered=st.lists(MEMBERS, max_size=2).map(tuple),
    left=st.lists(MEMBERS, max_size=2).map(tuple),
    entered_runs=st.lists(RUNS, max_size=2).map(tuple),
    left_runs=st.lists(RUNS, max_size=2).map(tuple),
)


@given(change=CHANGES)
def test_a_change_is_read_back_equal_in_both_forms(change: FrontierChange) -> None:
    key = change.scope.encode()

    assert decode_change(key, pack_change(change)) == change
    assert decode_change(key, encode_change(change)) == change


def test_a_packed_change_has_less_than_half_of_the_bytes_of_json() -> None:
    cause = Cause(id="event-0000001", revision=1, title="conflict disclosed", source="trading desk")
    entered = Member(id="event-0000001", revision=1, type="conflict_disclosed", time=1_704_067_200_000_000)
    change = FrontierChange(scope="employee=EMP02551", seq=1, cause=cause, offset=1, entered=(entered,))

    assert len(pack_change(change)) < len(encode_change(change)) / 2


@pytest.mark.parametrize("value", [b"", b"{}", b"\x90", b"\x93\x01\x02\x03"])
def test_bytes_of_neither_form_are_an_error(value: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_change(b"scope", value)

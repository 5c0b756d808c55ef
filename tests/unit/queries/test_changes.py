"""Changes as they are listed, and their positions."""

import pytest
from hypothesis import given, strategies as st

from stream_car import ChangeCause, ChangedMember, InvalidRequest
from stream_car.core.changes import Cause, FrontierChange, Member, Run
from stream_car.core.stored import LOWEST, Entry
from stream_car.queries.changes import Position, listed_change, listed_entry
from stream_car.queries.outcomes import Fates
from tests.support.engines import RULESET, day, on_day

NO_FATES = Fates(RULESET, {})

generations = st.text("0123456789abcdef-x", min_size=1).filter(lambda text: "/" not in text)
numbers = st.integers(0, 10**16 - 1)


@given(generations, numbers, numbers, st.sampled_from(["", "7-0a1b2c"]))
def test_a_position_survives_its_text(generation: str, shard: int, number: int, mark: str) -> None:
    position = Position(generation, shard, number, mark)

    assert Position.parse(str(position)) == position


def test_a_position_has_generation_shard_and_number() -> None:
    assert str(Position("5ab-3-2x3", 1, 42)) == "5ab-3-2x3/1/42"
    assert str(Position("5ab-3-2x3", 1, 42, "7-0a1b2c")) == "5ab-3-2x3/1/42@7-0a1b2c"


@pytest.mark.parametrize(
    "text", ["", "x", "g/1", "g/1/2/3", "g/-1/2", "g/1/x", "g/1/", "g//2", "g/1/2 ", "g/١/2", "g/1/" + "9" * 17]
)
def test_what_is_not_a_position_is_an_error(text: str) -> None:
    with pytest.raises(InvalidRequest, match="GENERATION/SHARD/NUMBER") as caught:
        Position.parse(text)

    assert caught.value.code == "after"


def test_a_change_is_listed_with_times_as_datetimes() -> None:
    cause = Cause(id="d", revision=1, kind="corrected")
    change = FrontierChange(
        scope="topic=tea",
        seq=3,
        cause=cause,
        offset=9,
        entered=(Member(id="d", revision=1, type="denial", time=day(2), order=5, rule="r"),),
        left=(Member(id="c", revision=4, type="claim", time=day(1), why="voided", rule="r"),),
    )
    listed = listed_change(Position("g", 0, 7), change, NO_FATES)

    assert (listed.position, listed.scope, listed.seq, listed.offset) == ("g/0/7", "topic=tea", 3, 9)
    assert listed.cause == ChangeCause(id="d", revision=1, kind="corrected")
    assert listed.entered == (ChangedMember(id="d", revision=1, type="denial", time=on_day(2), order=5, rule="r"),)
    ended = ChangedMember(
        id="c",
        revision=4,
        type="claim",
        time=on_day(1),
        why="voided",
        rule="r",
        outcome="replaced",
        outcome_text="replaced by d",
    )
    assert listed.left == (ended,)
    assert (listed.entered_runs, listed.left_runs) == ((), ())


def test_the_target_of_a_link_is_listed_without_a_time() -> None:
    change = FrontierChange(
        scope="document=c", seq=1, cause=Cause(id="d", revision=1), offset=0, left=(Member(id="c", why="link"),)
    )
    [member] = listed_change(Position("g", 0, 1), change, NO_FATES).left

    assert (member.id, member.revision, member.time, member.why) == ("c", 0, None, "link")


def test_a_run_without_a_bound_is_listed_without_it() -> None:
    bounded = Run(type="claim", start=(day(1), 2), end=(day(3), 4), count=300, why="voided", including=("x",))
    unbounded = Run(type="claim", start=LOWEST, end=(day(3), 0), count=400)
    change = FrontierChange(
        scope="topic=tea",
        seq=1,
        cause=Cause(id="d", revision=1),
        offset=0,
        entered_runs=(unbounded,),
        left_runs=(bounded,),
    )
    listed = listed_change(Position("g", 0, 1), change, NO_FATES)
    [entered], [left] = listed.entered_runs, listed.left_runs

    assert (entered.start, entered.start_order, entered.end, entered.count) == (None, 0, on_day(3), 400)
    assert (left.start, left.start_order, left.end, left.end_order) == (on_day(1), 2, on_day(3), 4)
    assert (left.why, left.including, left.excluding) == ("voided", ("x",), ())


def test_a_member_of_a_snapshot_is_listed_like_a_member_of_a_change() -> None:
    entry = Entry(id="c", revision=2, type="claim", time=day(1), order=3, offset=8, append_time=day(1))

    assert listed_entry(entry, NO_FATES) == ChangedMember(id="c", revision=2, type="claim", time=on_day(1), order=3)

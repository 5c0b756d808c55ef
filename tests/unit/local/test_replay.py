"""Refused input is sent again at most once, as it came or mended, and only if it would not be refused again."""

from pathlib import Path

import pytest

from stream_car import InvalidRequest
from stream_car.codec import encode
from stream_car.local.replay import refused_among
from stream_car.local.run_sync import at_once
from stream_car.processing.replay import REPLAY_OF
from stream_car.queries.answers import Replayed
from tests.support.engines import document, engine

GOOD = encode(document("c1", topic="moon"))
BAD = GOOD[:-1]  # the last bracket is missing


def outcomes(replayed: tuple[Replayed, ...]) -> list[tuple[int, str]]:
    return [(one.offset, one.outcome) for one in replayed]


def test_mended_input_is_accepted_and_names_what_it_replays(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish([document("c0", topic="sun"), BAD])
        [one] = here.replay({1: GOOD})
        [record] = at_once(here._log.fetch(0, 2, 1))

        assert (one.outcome, one.at) == ("replayed", 2)
        assert one.receipt is not None
        assert (one.receipt.outcome, one.receipt.id) == ("accepted", "c1")
        assert record.headers == ((REPLAY_OF, b"1"),)
        assert here.resolve(["c1"])[0].status == "active"


def test_nothing_is_replayed_twice_even_by_another_process(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish([BAD, b"{"])
        assert outcomes(here.replay({0: GOOD})) == [(0, "replayed")]
        assert outcomes(here.replay({0: GOOD})) == [(0, "before")]
    with engine(tmp_path) as here:
        [one] = here.replay({0: GOOD})

        assert (one.outcome, one.at, here.next_offset) == ("before", 2, 3)


def test_what_would_be_refused_again_is_not_sent() -> None:
    with engine() as here:
        here.publish([document("c1", topic="moon"), document("c1", topic="sun"), BAD])
        told = here.replay()

        assert [(one.offset, one.outcome, one.code) for one in told] == [
            (1, "refused", "conflict"),
            (2, "refused", "syntax"),
        ]
        assert here.next_offset == 3


def test_a_conflict_mended_by_a_new_revision_is_a_correction() -> None:
    with engine() as here:
        here.publish([document("c1", topic="moon"), document("c1", topic="sun")])
        [one] = here.replay({1: encode(document("c1", topic="sun", revision=2))})

        assert one.receipt is not None
        assert one.receipt.outcome == "accepted"
        assert [e.id for f in here.frontier("topic=sun") for e in f.active] == ["c1"]


def test_a_trial_sends_nothing() -> None:
    with engine() as here:
        here.publish([BAD])
        [one] = here.replay({0: GOOD}, trial=True)

        assert (one.outcome, one.receipt, here.next_offset) == ("replayed", None, 1)


def test_only_refused_input_can_be_replayed() -> None:
    with engine() as here:
        here.publish([GOOD, BAD])
        with pytest.raises(InvalidRequest, match="input 0 was not rejected"):
            here.replay(only=[0, 1])


def test_each_refused_input_is_found_by_its_offset_and_nothing_else_is() -> None:
    with engine() as here:
        here.publish([BAD if n % 3 == 0 or n > 40 else document(f"c{n}", topic=str(n % 7)) for n in range(60)])
        journal = here._built.journal
        wanted = [one.offset for one in here.rejected(limit=100)]
        by_one = [n for n in range(-1, 70) if at_once(refused_among(journal, [n]))]

        assert len(wanted) == 33
        assert by_one == wanted
        assert at_once(refused_among(journal, range(-1, 70))) == wanted
        assert at_once(refused_among(journal, [])) == wanted


def test_nothing_is_found_where_nothing_was_refused() -> None:
    with engine() as here:
        assert at_once(refused_among(here._built.journal, [0, 5])) == []
        here.publish([GOOD])
        assert at_once(refused_among(here._built.journal, [0, 5])) == []


def test_mended_input_that_is_still_wrong_says_why() -> None:
    with engine() as here:
        here.publish([BAD])
        [one] = here.replay({0: encode(document("c1", "rumour"))})

        assert (one.outcome, one.code, here.next_offset) == ("refused", "type_unknown", 1)

"""Rejected input is sent again at most once, unchanged or corrected, and only if it would not be rejected again."""

from pathlib import Path

import pytest

from stream_car import InvalidRequest
from stream_car.codec import encode
from stream_car.local.replay import rejected_offsets
from stream_car.local.run_sync import run_sync
from stream_car.processing.replay import REPLAY_OF
from stream_car.queries.answers import Replayed
from tests.support.engines import document, engine

GOOD = encode(document("c1", topic="moon"))
BAD = GOOD[:-1]  # the last bracket is missing


def outcomes(replayed: tuple[Replayed, ...]) -> list[tuple[int, str]]:
    return [(item.offset, item.outcome) for item in replayed]


def test_corrected_input_is_accepted_and_names_what_it_replays(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish([document("c0", topic="sun"), BAD])
        [replayed] = car.replay({1: GOOD})
        [record] = run_sync(car.directory._log.fetch(0, 2, 1))

        assert (replayed.outcome, replayed.at) == ("replayed", 2)
        assert replayed.receipt is not None
        assert (replayed.receipt.outcome, replayed.receipt.id) == ("accepted", "c1")
        assert record.headers == ((REPLAY_OF, b"1"),)
        assert car.resolve(["c1"])[0].status == "in_force"


def test_nothing_is_replayed_twice_even_by_another_process(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish([BAD, b"{"])
        assert outcomes(car.replay({0: GOOD})) == [(0, "replayed")]
        assert outcomes(car.replay({0: GOOD})) == [(0, "replayed_before")]
    with engine(tmp_path) as car:
        [replayed] = car.replay({0: GOOD})

        assert (replayed.outcome, replayed.at, car.directory.next_offset) == ("replayed_before", 2, 3)


def test_what_would_be_rejected_again_is_not_sent() -> None:
    with engine() as car:
        car.publish([document("c1", topic="moon"), document("c1", topic="sun"), BAD])
        replayed = car.replay()

        assert [(item.offset, item.outcome, item.code) for item in replayed] == [
            (1, "rejected", "conflict"),
            (2, "rejected", "syntax"),
        ]
        assert car.directory.next_offset == 3


def test_a_conflict_is_resolved_by_a_new_revision() -> None:
    with engine() as car:
        car.publish([document("c1", topic="moon"), document("c1", topic="sun")])
        [replayed] = car.replay({1: encode(document("c1", topic="sun", revision=2))})

        assert replayed.receipt is not None
        assert replayed.receipt.outcome == "accepted"
        assert [document.id for frontier in car.frontier("topic=sun") for document in frontier.in_force] == ["c1"]


def test_a_dry_run_sends_nothing() -> None:
    with engine() as car:
        car.publish([BAD])
        [replayed] = car.replay({0: GOOD}, dry_run=True)

        assert (replayed.outcome, replayed.receipt, car.directory.next_offset) == ("replayed", None, 1)


def test_only_rejected_input_can_be_replayed() -> None:
    with engine() as car:
        car.publish([GOOD, BAD])
        with pytest.raises(InvalidRequest, match="Input 0 was not rejected"):
            car.replay(offsets=[0, 1])


def test_rejected_input_is_found_by_its_offset_and_nothing_else_is() -> None:
    with engine() as car:
        car.publish([BAD if n % 3 == 0 or n > 40 else document(f"c{n}", topic=str(n % 7)) for n in range(60)])
        change_log = car.directory.projection.change_log
        wanted = [rejected.offset for rejected in car.rejected(limit=100)]
        by_one = [n for n in range(-1, 70) if (rejected_offsets(change_log, [n]))]

        assert len(wanted) == 33
        assert by_one == wanted
        assert rejected_offsets(change_log, range(-1, 70)) == wanted
        assert rejected_offsets(change_log, []) == []


def test_nothing_is_found_if_nothing_was_rejected() -> None:
    with engine() as car:
        assert rejected_offsets(car.directory.projection.change_log, [0, 5]) == []
        car.publish([GOOD])
        assert rejected_offsets(car.directory.projection.change_log, [0, 5]) == []


def test_corrected_input_that_is_still_wrong_is_rejected_with_a_reason() -> None:
    with engine() as car:
        car.publish([BAD])
        [replayed] = car.replay({0: encode(document("c1", "rumour"))})

        assert (replayed.outcome, replayed.code, car.directory.next_offset) == ("rejected", "type_unknown", 1)

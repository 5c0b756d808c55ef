"""Lag and rebuild of a shard, as a worker measures them."""

import time

from msgspec import Struct

from stream_car.adapters.kafka.backlog import Backlog
from stream_car.cluster.worker_metrics import Progress, measured


class Runner(Struct):
    """A shard that a test moves."""

    position: int | None = 0
    began_at: int = 0
    claims: int = 1


def backlog(end: int, *, first: int = 0, age_s: float | None = None) -> Backlog:
    return Backlog(first, end, None if age_s is None else int((time.time() - age_s) * 1000))


def rebuilt(progress: Progress, runner: Runner, position: int) -> float:
    runner.position = position
    return progress.rebuilt


def test_a_shard_that_was_claimed_without_state_is_rebuilt_up_to_what_there_was_then() -> None:
    runner = Runner()
    progress = measured(runner, backlog(80), None)

    assert [rebuilt(progress, runner, position) for position in (0, 20, 60, 80, 90)] == [0, 0.25, 0.75, 1, 1]


def test_records_that_retention_has_deleted_do_not_count() -> None:
    runner = Runner(began_at=40)
    progress = measured(runner, backlog(80, first=40), None)

    assert rebuilt(progress, runner, 50) == 0.25


def test_a_shard_that_continues_is_not_rebuilt_however_much_it_lags() -> None:
    runner = Runner(position=500, began_at=500)

    assert measured(runner, backlog(9000), None).rebuilt == 1
    assert measured(runner, backlog(9000), None).lag == 8500


def test_state_that_is_lost_again_begins_another_rebuild_and_a_new_claim_of_state_does_not_end_one() -> None:
    runner = Runner(position=10)
    first = measured(runner, backlog(100), None)
    runner.claims, runner.began_at = 2, 10
    continued = measured(runner, backlog(120), first)
    runner.claims, runner.began_at, runner.position = 3, 0, 5
    again = measured(runner, backlog(200), continued)

    assert [progress.rebuild_to for progress in (first, continued, again)] == [100, 100, 200]


def test_the_lag_in_seconds_is_the_age_of_the_oldest_record_and_grows_without_a_new_measurement() -> None:
    runner = Runner(position=3, began_at=3)
    progress = measured(runner, backlog(4, age_s=100), None)
    before = progress.lag_s

    assert 99 < before <= progress.lag_s < 200
    runner.position = 4
    assert progress.lag_s == 0

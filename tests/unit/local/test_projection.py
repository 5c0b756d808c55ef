"""One step of a projection."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

import stream_car
from stream_car import NewDocument
from stream_car.ports import Record
from stream_car.processing.effects import DecodedRecord
from stream_car.processing.fold import Fold

DOCUMENT = NewDocument(id="a", type="policy_update", time="2024-01-31")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether the collector runs, at each record that is read."""
    seen: list[bool] = []
    read = Fold.read

    def noting(fold: Fold, record: Record) -> DecodedRecord:
        seen.append(gc.isenabled())
        return read(fold, record)

    monkeypatch.setattr(Fold, "read", noting)
    yield seen
    gc.enable()


def test_the_collector_waits_for_the_end_of_a_step(tmp_path: Path, seen: list[bool]) -> None:
    with stream_car.open(tmp_path) as engine:
        engine.publish(DOCUMENT)

    assert seen == [False]
    assert gc.isenabled()


def test_the_collector_runs_again_after_a_step_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stream_car.open(tmp_path) as engine:
        monkeypatch.setattr(engine.directory.projection.log, "fetch", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine.publish(DOCUMENT)

    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off(tmp_path: Path, seen: list[bool]) -> None:
    gc.disable()
    with stream_car.open(tmp_path) as engine:
        engine.publish(DOCUMENT)

    assert seen == [False]
    assert not gc.isenabled()

"""Watermarks of all intake shards of a process, over SQLite."""

from pathlib import Path

import pytest

from stream_car.local.run_sync import run_sync
from stream_car.processing.outbox import emit_watermarks
from stream_car.processing.state import decode_value
from stream_car.processing.two_hop import FRONTIER
from tests.support.engines import document
from tests.support.two_hop_folds import TWO, ids_of
from tests.support.two_hops import TwoHops


@pytest.fixture
def hops(tmp_path: Path) -> TwoHops:
    hops = TwoHops(tmp_path)
    hops.publish(document(ids_of(0)[0], topic="rain"), document(ids_of(1)[0], topic="rain"))
    return hops


def placements(hops: TwoHops) -> list[int]:
    """The number of records in each partition of the placements log."""
    return [run_sync(hops.placements.range(partition))[1] for partition in range(TWO.frontiers)]


def test_watermarks_of_several_shards_take_one_append_per_partition(
    hops: TwoHops, monkeypatch: pytest.MonkeyPatch
) -> None:
    appended: list[tuple[int, int]] = []
    append = hops.placements.append

    async def counted(partition: int, messages: list[object]) -> int:
        appended.append((partition, len(messages)))
        return await append(partition, messages)  # type: ignore[arg-type]

    monkeypatch.setattr(hops.placements, "append", counted)

    assert run_sync(emit_watermarks(hops.emitters))

    assert appended == [(0, 2), (1, 2)]


def test_together_they_report_each_shard_to_every_frontier_shard(hops: TwoHops) -> None:
    run_sync(emit_watermarks(hops.emitters))
    hops.apply(0, 1)

    for shard in range(TWO.frontiers):
        _, values = run_sync(hops.stores[1].peek(shard, [FRONTIER]))
        header = decode_value(FRONTIER, values[FRONTIER])
        assert header is not None and header.watermarks == [1, 1]  # type: ignore[union-attr]


def test_only_shards_that_have_moved_write_another_watermark(hops: TwoHops) -> None:
    run_sync(emit_watermarks(hops.emitters))
    before = placements(hops)
    assert not run_sync(emit_watermarks(hops.emitters))

    hops.publish(document(ids_of(1)[1]))
    assert run_sync(emit_watermarks(hops.emitters))

    assert placements(hops) == [count + 1 for count in before]

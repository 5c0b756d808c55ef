"""An error that nobody expected ends the watermarks of a process: the worker restarts, and does not look healthy."""

import asyncio
import time
from pathlib import Path

import pytest
from msgspec import Struct, field

from stream_car.cluster.shard_runner import WorkerEvent
from stream_car.cluster.watermarks import Watermarks
from stream_car.cluster.worker import RESTART, ShardHost
from stream_car.ports import Hop, ShardId
from tests.support.engines import document
from tests.support.two_hop_folds import ids_of
from tests.support.two_hops import TwoHops


class HealthyRunner(Struct):
    halted: None = None
    succeeded_at: float = field(default_factory=time.monotonic)


class Connected(Struct):
    """What a host needs of its connections."""

    watermarks: Watermarks

    def topic(self, hop: Hop) -> str:
        return hop


def fail(monkeypatch: pytest.MonkeyPatch, hops: TwoHops) -> None:
    async def raise_error(_: object) -> bool:
        raise RuntimeError("nobody expected this")

    for emitter in hops.emitters:
        monkeypatch.setattr(emitter.outbox, "emit_watermarks", raise_error)


async def failed(watermarks: Watermarks, hops: TwoHops) -> None:
    watermarks.add(hops.emitters[0])
    watermarks.note_progress()
    assert watermarks.task is not None
    await asyncio.wait([watermarks.task])


@pytest.fixture
def hops(tmp_path: Path) -> TwoHops:
    hops = TwoHops(tmp_path)
    hops.publish(document(ids_of(0)[0], topic="rain"), document(ids_of(1)[0], topic="rain"))
    return hops


async def test_a_worker_whose_watermarks_have_failed_restarts_and_says_why(
    hops: TwoHops, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[WorkerEvent] = []
    watermarks = Watermarks()
    host = ShardHost(Connected(watermarks), "all", events.append)  # type: ignore[arg-type]
    host.runners, host.is_member = {ShardId("intake", 0): HealthyRunner()}, True  # type: ignore[dict-item]
    assert host.exit_code() is None

    fail(monkeypatch, hops)
    await failed(watermarks, hops)

    assert host.exit_code() == RESTART
    assert [event.event for event in events] == ["trouble"]
    assert "RuntimeError: nobody expected this" in str(events[0].reason)


async def test_the_next_shard_starts_failed_watermarks_again(hops: TwoHops, monkeypatch: pytest.MonkeyPatch) -> None:
    watermarks = Watermarks()
    with monkeypatch.context() as patch:
        fail(patch, hops)
        await failed(watermarks, hops)

    watermarks.add(hops.emitters[1])
    assert watermarks.failure is None
    watermarks.note_progress()
    async with asyncio.timeout(30):
        while any(emitter.due is not None for emitter in hops.emitters):
            await asyncio.sleep(0)
    for emitter in hops.emitters:
        await watermarks.end(emitter)

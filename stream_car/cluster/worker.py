"""A worker process from start to end.

Promise: on SIGTERM it finishes the batches that run, says how far it came, leaves the group and ends with
code 0, within `END_S`. A shard that a person must decide about stops alone, with its reason; the others go
on, and when none is left the process ends with `HALTED`. Where nothing has moved for `STALL_S` although there is
something to do, or the group has not taken us back for so long, it ends with `AGAIN`: a fresh process mends
clients that fell silent.
"""

import asyncio
import os
import signal
import time
from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer

from stream_car.adapters.kafka.errors import translated
from stream_car.adapters.kafka.reader import Reader
from stream_car.cluster.connections import Hops, Plan, Works
from stream_car.cluster.consumer_group import App, Partition
from stream_car.cluster.shard_runner import Hosted, Said, Tell
from stream_car.ports import Hop, ShardId

DONE, HALTED, AGAIN = 0, 3, 75
SIGNALS = (signal.SIGTERM, signal.SIGINT)
DRAIN_S = 8.0  # the batches that run, when the group asks for its partitions
END_S = 20.0
STALL_S = 60.0
LOOK_S = 1.0


class Floor:
    """Implements `driver.Guest`: the shards that are at work in this process."""

    def __init__(self, works: Works, hops: Hops, tell: Tell) -> None:
        self.works = works
        self.hosted: dict[ShardId, Hosted] = {}
        self.told_at = time.monotonic()  # when the group last said what is ours
        self.is_member = False
        every: tuple[Hop, ...] = ("intake", "frontier")
        self.topics: dict[str, Hop] = {works.topic(hop): hop for hop in every if hops in (hop, "all")}
        self._tell = tell

    def begin(self, consumer: AIOKafkaConsumer, assigned: Iterable[Partition]) -> None:
        """Put a shard to work for each partition."""
        reader = Reader(consumer, in_group=True)
        places = sorted(ShardId(self.topics[one.topic], one.partition) for one in assigned)
        self.hosted = {place: self.works.host(place, reader, self._tell) for place in places}
        self.is_member, self.told_at = True, time.monotonic()
        self._tell(Said(event="assigned", shards=tuple(f"{place.hop} {place.shard}" for place in places)))

    async def drain(self) -> None:
        """Finish what runs and let go of all."""
        hosted, self.hosted = self.hosted, {}
        self.is_member, self.told_at = False, time.monotonic()
        await asyncio.gather(*(one.end(DRAIN_S) for one in hosted.values()))

    def verdict(self) -> int | None:
        """The code to end with, if this process is of no more use."""
        now = time.monotonic()
        if not self.is_member:
            return AGAIN if now - self.told_at > STALL_S else None
        working = [one for one in self.hosted.values() if one.halted is None]
        if self.hosted and not working:
            return HALTED
        return AGAIN if any(now - one.good_at > STALL_S for one in working) else None


async def run(plan: Plan, hops: Hops, tell: Tell) -> int:
    """Work until a signal or for as long as it makes sense; the exit code."""
    works = await Works.open(plan)
    floor = Floor(works, hops, tell)
    app = App(f"{plan.name}.workers", plan.kafka, list(floor.topics), floor)
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    tell(Said(event="started", reason=works.generation))
    try:
        with translated(f"Kafka at {plan.kafka.address}"):
            code = await _worked(app, floor, stop)
    finally:
        loop.call_later(END_S, os._exit, AGAIN)  # clients of Kafka have been seen to hang in their stop
        has_halted = any(one.halted for one in floor.hosted.values())
        await app.stop()
        await works.close()
    tell(Said(event="stopped"))
    return HALTED if has_halted and code == DONE else code


async def _worked(app: App, floor: Floor, stop: asyncio.Event) -> int:
    """Until a signal, a verdict, or Faust's own end."""
    starting = asyncio.create_task(app.start())
    stopping = asyncio.create_task(stop.wait())
    try:
        while not stop.is_set():
            await asyncio.wait([stopping], timeout=LOOK_S)
            if starting.done():
                starting.result()
            if app.crash_reason is not None:
                raise app.crash_reason
            code = floor.verdict()
            if code is not None and not stop.is_set():
                return code
        return DONE
    finally:
        for task in (starting, stopping):
            task.cancel()

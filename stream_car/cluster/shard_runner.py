"""One shard in a worker: claimed, moved batch by batch while the group says that it is ours, let go of in order.

Promise: only what a person must decide ends it (`halted`); everything else is tried again, and a shard that
somebody else took is left alone for a heartbeat first, so that two that both believe in their right do not
fight. `end` lets a running batch finish, within its time, and says how far it came. Cost: one task a shard,
two for intake; at rest one fetch and one small read a second.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from stream_car.cluster.cancel import ended
from stream_car.errors import ClaimLost, Halted, StreamCarError, TooMuch
from stream_car.ports import Log, Message, Record, ShardId
from stream_car.processing.outbox import WatermarkEmitter

BATCH_MAX = 300  # a commit of them keeps Redis from others for about a millisecond; larger ones gain little
REST_MS = 1000  # how long a fetch waits at the end of the log
MARK_S = 0.1
TAKEN_S = 1.2  # a heartbeat and some more: a member that was thrown out of the group knows by then
AGAIN_S = 0.5
MARKED_S = 1.0  # for the last mark


class Said(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a worker tells about itself or one of its shards; `code` is the reason of a halt."""

    event: str
    hop: str | None = None
    shard: int | None = None
    code: str | None = None
    reason: str | None = None
    shards: tuple[str, ...] = ()


Tell = Callable[[Said], None]


class Machine(Protocol):
    """What is asked of a shard."""

    @property
    def next_offset(self) -> int:
        """The offset of the first record that is not applied yet."""
        ...

    async def run_once(self, max_records: int) -> Sequence[object]:
        """Apply one batch."""
        ...

    async def beat(self) -> None:
        """Notice that the shard went to somebody else."""
        ...


class AttendedLog:
    """Implements `ports.Log`; knows whether somebody waits for records, and may be sent away."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.is_waiting = False

    async def append(self, partition: int, messages: Sequence[Message]) -> int:
        """As the log does."""
        return await self._log.append(partition, messages)

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        """As the log does."""
        self.is_waiting = True
        try:
            return await self._log.fetch(partition, from_offset, max_records)
        finally:
            self.is_waiting = False

    async def range(self, partition: int) -> tuple[int, int]:
        """As the log does."""
        return await self._log.range(partition)


class Hosted:
    """A shard and the tasks that drive it."""

    def __init__(
        self, place: ShardId, shard: Machine, log: AttendedLog, marks: WatermarkEmitter | None, tell: Tell
    ) -> None:
        self.place = place
        self.applied = 0
        self.halted: Halted | None = None
        self.good_at = time.monotonic()
        self._shard = shard
        self._log = log
        self._marks = marks
        self._tell = tell
        self._moved = asyncio.Event()
        self._is_ending = False
        self._batch_max = BATCH_MAX
        self._trouble = ""
        self._working = asyncio.create_task(self._work())
        self._marking = asyncio.create_task(self._mark()) if marks is not None else None

    @property
    def next_offset(self) -> int:
        """The offset of the first record that is not applied yet, as far as this worker knows."""
        return self._shard.next_offset

    async def end(self, timeout_s: float) -> bool:
        """Let go; whether the running batch was finished. Nothing has to be handed over."""
        self._is_ending = True
        if not self._log.is_waiting:
            await asyncio.wait([self._working], timeout=timeout_s)
        is_finished = self._log.is_waiting or self._working.done()
        await ended(self._working)
        if self._marking is not None:
            await ended(self._marking)
            await self._mark_last()
        return is_finished

    async def _work(self) -> None:
        while not self._is_ending and self.halted is None:
            try:
                await self._step()
                self._is_well()
            except ClaimLost as lost:
                self._say("taken", str(lost))
                await asyncio.sleep(TAKEN_S + random.random() / 2)
            except TooMuch as much:
                if self._batch_max == 1:
                    self._halt(Halted("too_much", f"one record alone is more than the store takes: {much}"))
                self._batch_max = max(1, self._batch_max // 2)
            except Halted as halted:
                if halted.code == "gap":  # the client's affair: it skipped or repeated a record
                    self._say("trouble", str(halted))
                else:
                    self._halt(halted)
            except StreamCarError as error:
                self._say("trouble", str(error))
                await asyncio.sleep(AGAIN_S * (0.5 + random.random()))
            except Exception as error:
                self._halt(Halted("bug", f"{type(error).__name__}: {error}"))

    async def _step(self) -> None:
        handled = await self._shard.run_once(self._batch_max)
        if handled:
            self.applied += len(handled)
            self._batch_max = min(BATCH_MAX, self._batch_max + 1)
        else:
            await self._shard.beat()
        self._moved.set()

    def _is_well(self) -> None:
        self.good_at = time.monotonic()
        if self._trouble:
            self._trouble = ""
            self._tell(Said(event="well", hop=self.place.hop, shard=self.place.shard))

    def _say(self, event: str, reason: str) -> None:
        """Each trouble is told once, not with every attempt."""
        if event != self._trouble:
            self._trouble = event
            self._tell(Said(event=event, hop=self.place.hop, shard=self.place.shard, reason=reason))

    def _halt(self, halted: Halted) -> None:
        self.halted = halted
        place = self.place
        self._tell(Said(event="halted", hop=place.hop, shard=place.shard, code=halted.code, reason=str(halted)))

    async def _mark(self) -> None:
        """Say how far the shard has come, when it has moved, and not too often."""
        assert self._marks is not None
        while True:
            await self._moved.wait()
            self._moved.clear()
            try:
                await self._marks.emit()
            except StreamCarError:
                self._moved.set()
            await asyncio.sleep(MARK_S)

    async def _mark_last(self) -> None:
        """So that nobody waits for the next owner to say it; it will be said, at the latest then."""
        assert self._marks is not None
        try:
            async with asyncio.timeout(MARKED_S):
                await self._marks.emit()
        except (StreamCarError, TimeoutError):
            return

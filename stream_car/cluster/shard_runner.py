"""Run one shard in a worker: claim it, apply batch after batch while the group assigns it, and end it in order.

Promise: only what a person must decide stops it (`halted`); everything else is tried again. A shard that another worker
has taken is left alone for longer than a heartbeat, so that two workers that both believe in their claim do not fight.
`end` lets the running batch finish within its time. Cost: one task per shard; at rest, one fetch and one small read per
second.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from stream_car.cluster.cancel import cancel
from stream_car.cluster.watermarks import Watermarks
from stream_car.errors import ClaimLost, Halted, Overloaded, StreamCarError
from stream_car.ports import Log, Message, Record, ShardId
from stream_car.processing.outbox import WatermarkEmitter
from stream_car.processing.quarantine import QuarantinedRecord

BATCH_MAX = 1000  # committing it occupies Redis for about two milliseconds; more gains nothing that can be measured
FETCH_WAIT_MS = 1000  # how long a fetch waits at the end of the log
TAKEN_S = 1.2  # longer than a heartbeat: a member that was thrown out of the group knows by then
RETRY_S = 0.5


Problem = Literal["taken", "trouble"]
ShardState = Literal["working", "taken", "trouble", "halted"]


class WorkerEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a worker reports about itself or one of its shards.

    `code` is that of a halt, `url` where the worker listens.
    """

    event: Literal[
        "started", "stopped", "assigned", "claimed", "taken", "trouble", "recovered", "quarantined", "halted"
    ]
    hop: str | None = None
    shard: int | None = None
    code: str | None = None
    reason: str | None = None
    shards: tuple[str, ...] = ()
    url: str | None = None


Report = Callable[[WorkerEvent], None]


class RunnableShard(Protocol):
    """What a runner needs of a shard."""

    @property
    def next_offset(self) -> int:
        """The offset of the first record that has not been applied."""

    @property
    def last_quarantined(self) -> QuarantinedRecord | None:
        """The last record that was set aside, if any was."""

    @property
    def quarantined(self) -> int:
        """The number of records that are set aside."""

    async def run_once(self, max_records: int) -> Sequence[object]:
        """Apply one batch."""

    async def check_claim(self) -> None:
        """Find out whether another worker has taken the shard."""


class InterruptibleLog:
    """Implements `ports.Log`; knows whether a fetch is waiting, which can be cancelled without loss."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.is_waiting = False

    async def append(self, partition: int, messages: Sequence[Message]) -> int:
        return await self._log.append(partition, messages)

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        self.is_waiting = True
        try:
            return await self._log.fetch(partition, from_offset, max_records)
        finally:
            self.is_waiting = False

    async def range(self, partition: int) -> tuple[int, int]:
        return await self._log.range(partition)


class ShardRunner:
    """A shard, and the tasks that run it from now on."""

    def __init__(
        self,
        place: ShardId,
        shard: RunnableShard,
        log: InterruptibleLog,
        report: Report,
        *,
        emitter: WatermarkEmitter | None = None,
        watermarks: Watermarks | None = None,
    ) -> None:
        self.place = place
        self.applied = 0
        self.halted: Halted | None = None
        self.succeeded_at = time.monotonic()
        self.position: int | None = None  # the next offset when a step last succeeded
        self.began_at = 0  # the next offset when the shard was claimed last
        self.claims = 0
        self.shard = shard
        self._log = log
        self._report = report
        self._emitter, self._watermarks = emitter, watermarks
        self._is_ending = self._has_claim = False
        self._batch_max = BATCH_MAX
        self._reported_problem: Problem | None = None
        self._task = asyncio.create_task(self._run())
        if emitter is not None and watermarks is not None:
            watermarks.add(emitter)

    @property
    def state(self) -> ShardState:
        """Whether the shard works, or what keeps it from working."""
        return "halted" if self.halted is not None else self._reported_problem or "working"

    async def end(self, timeout_s: float) -> bool:
        """End the tasks, and return whether the running batch was finished. Nothing has to be handed over."""
        self._is_ending = True
        if not self._log.is_waiting:
            await asyncio.wait([self._task], timeout=timeout_s)
        is_finished = self._log.is_waiting or self._task.done()
        await cancel(self._task)
        if self._emitter is not None and self._watermarks is not None:
            await self._watermarks.end(self._emitter)
        return is_finished

    async def _run(self) -> None:
        while not self._is_ending and self.halted is None:
            try:
                await self._step()
                self._note_success()
            except ClaimLost as error:
                self._note_problem("taken", str(error))
                await asyncio.sleep(TAKEN_S + random.random() / 2)
            except Overloaded:
                self._batch_max = max(1, self._batch_max // 2)
            except Halted as halted:
                if halted.code == "gap":  # the client skipped or repeated a record
                    self._note_problem("trouble", str(halted))
                else:
                    self._halt(halted)
            except StreamCarError as error:
                self._note_problem("trouble", str(error))
                await asyncio.sleep(RETRY_S * (0.5 + random.random()))
            except Exception as error:
                self._halt(Halted("bug", f"{type(error).__name__}: {error}"))

    async def _step(self) -> None:
        earlier = self.shard.last_quarantined
        had_claim, self._has_claim = self._has_claim, False  # a shard that fails gives up its claim
        applied = await self.shard.run_once(self._batch_max)
        if (quarantined := self.shard.last_quarantined) is not None and quarantined is not earlier:
            reason = (
                f"Record {quarantined.offset} was set aside: {quarantined.error}. See `stream-car quarantine list`."
            )
            self._report(WorkerEvent(event="quarantined", hop=self.place.hop, shard=self.place.shard, reason=reason))
        if applied:
            self.applied += len(applied)
            self._batch_max = min(BATCH_MAX, self._batch_max + 1)
        else:
            await self.shard.check_claim()
        self._has_claim = True
        if not had_claim:
            self._note_claim(self.shard.next_offset - len(applied))
        if self._watermarks is not None:
            self._watermarks.note_progress()

    def _note_claim(self, offset: int) -> None:
        self.began_at = offset
        self.claims += 1
        hop, shard = self.place
        self._report(WorkerEvent(event="claimed", hop=hop, shard=shard, reason=f"from record {offset}"))

    def _note_success(self) -> None:
        self.succeeded_at, self.position = time.monotonic(), self.shard.next_offset
        if self._reported_problem:
            self._reported_problem = None
            self._report(WorkerEvent(event="recovered", hop=self.place.hop, shard=self.place.shard))

    def _note_problem(self, event: Problem, reason: str) -> None:
        """Report a problem once, not with every attempt."""
        if event != self._reported_problem:
            self._reported_problem = event
            self._report(WorkerEvent(event=event, hop=self.place.hop, shard=self.place.shard, reason=reason))

    def _halt(self, halted: Halted) -> None:
        self.halted = halted
        hop, shard = self.place
        self._report(WorkerEvent(event="halted", hop=hop, shard=shard, code=halted.code, reason=str(halted)))

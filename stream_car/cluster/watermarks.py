"""Emits the watermarks of all intake shards of a process.

Promise: a shard that has moved is reported within `WATERMARK_S` while the log takes records, and once more when it
ends, so that nobody waits for its next owner. An error that nobody expected is a reason to restart the process
(`failure`). Cost: one append per partition of the placements log, at most every
`WATERMARK_S`, however many shards the process has.
"""

import asyncio
from contextlib import suppress

from stream_car.cluster.cancel import cancel
from stream_car.errors import StreamCarError
from stream_car.processing.outbox import WatermarkEmitter, emit_watermarks

WATERMARK_S = 0.1
LAST_WATERMARK_S = 1.0


class Watermarks:
    """The emitters of the shards that run now, and their task."""

    def __init__(self) -> None:
        self._emitters: list[WatermarkEmitter] = []
        self._moved = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def add(self, emitter: WatermarkEmitter) -> None:
        """Emit for this shard too, from now on."""
        self._emitters.append(emitter)
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._run())

    @property
    def failure(self) -> BaseException | None:
        """The error that nobody expected and that has ended the task: no shard of the process emits any more."""
        if self.task is None or not self.task.done() or self.task.cancelled():
            return None
        return self.task.exception()

    def note_progress(self) -> None:
        """Note that some shard has moved."""
        self._moved.set()

    async def end(self, emitter: WatermarkEmitter) -> None:
        """Emit no more for this shard, after its last watermark."""
        self._emitters.remove(emitter)
        if not self._emitters and self.task is not None:
            task, self.task = self.task, None
            await cancel(task)
        with suppress(StreamCarError, TimeoutError):
            async with asyncio.timeout(LAST_WATERMARK_S):
                await emitter.emit()

    async def _run(self) -> None:
        while True:
            await self._moved.wait()
            self._moved.clear()
            try:
                await emit_watermarks(tuple(self._emitters))
            except StreamCarError:
                self._moved.set()
            await asyncio.sleep(WATERMARK_S)

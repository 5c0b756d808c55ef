"""Many publishers, one log: what arrives together is kept with one disk flush, then applied in small steps.

Promise: a publication is answered when it is durable, applied and found by the next question; its
receipts are in its order. The flush waits in a thread of its own; everything else happens on the loop,
a few milliseconds' worth of documents at once, more while nobody asks, so that a question waits for one step
and never for a bulk load.
Whoever publishes faster than that waits for room.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic, thread_time

from stream_car.errors import StreamCarError
from stream_car.local.engine import Engine
from stream_car.ports import Message
from stream_car.processing.fold import TICK
from stream_car.processing.receipts import Receipt
from stream_car.queries.read_options import StageTimer, untimed

COMMIT_MAX = 512  # messages kept with one flush
COMMIT_BYTES_MAX = 2 << 20
STEP_S = 0.005  # of computing, disks apart: documents are applied for so long before questions get their turn
QUIET_STEP_S = 0.02  # the same while nobody asks: the first to ask waits a little longer
ASKED_S = 2.0
STEP_MIN, STEP_MAX = 16, 256  # as many documents
TURNS = 4  # of the loop between two steps: a question needs about as many from its socket to its answer
ROOM = 16 << 20  # bytes that may wait
ENDED = "publishing has stopped; restart the service, its own log says why, and send the documents again"
TICK_S = 1.0  # how often the time of waiting documents is looked at


class _Publication:
    """What one caller published, and its receipts so far."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self.sent = 0
        self.receipts: list[Receipt] = []
        self.done: asyncio.Future[list[Receipt]] = asyncio.get_running_loop().create_future()

    def hear(self, receipt: Receipt) -> None:
        self.receipts.append(receipt)
        if len(self.receipts) == len(self.messages) and not self.done.done():
            self.done.set_result(self.receipts)

    def fail(self, error: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class Publisher:
    """Appends and applies for all; run it as one task beside the questions."""

    def __init__(self, engine: Engine, still: asyncio.Lock, timed: StageTimer = untimed) -> None:
        self.engine = engine
        self._timed = timed
        self.still = still  # held by whoever needs that nothing is applied
        self.waiting_bytes = 0
        self._queue: deque[_Publication] = deque()
        self._wake = asyncio.Event()
        self._room = asyncio.Condition()
        self._owners: dict[int, _Publication] = {}  # by offset
        self.has_ended = False
        self._step = STEP_MIN
        self._asked_at = -ASKED_S
        self._early: dict[int, Receipt] | None = None  # heard while the offsets were not yet known

    async def publish(self, messages: Sequence[Message]) -> list[Receipt]:
        """Keep and apply; the receipts in order. Raises `StreamCarError` where the disk fails."""
        if not messages:
            return []
        self.require_alive()
        size = sum(len(message.value or b"") for message in messages)
        async with self._room:
            await self._room.wait_for(lambda: self.has_ended or self._has_room(size))
            self.require_alive()
            self.waiting_bytes += size
        publication = _Publication(messages)
        self._queue.append(publication)
        self._wake.set()
        try:
            return await publication.done
        finally:
            async with self._room:
                self.waiting_bytes -= size
                self._room.notify_all()

    def _has_room(self, size: int) -> bool:
        return not self.waiting_bytes or self.waiting_bytes + size <= ROOM

    def require_alive(self) -> None:
        """Raises `StreamCarError` where nothing can be published any more."""
        if self.has_ended:
            raise StreamCarError(ENDED)

    def give_way(self) -> None:
        """Somebody asks: take small steps for a while."""
        self._asked_at = monotonic()

    @property
    def is_asked(self) -> bool:
        """Whether somebody asked a moment ago, and may ask again."""
        return monotonic() - self._asked_at < ASKED_S

    @property
    def is_wanted(self) -> bool:
        """Whether somebody asks, or waits for what was published."""
        return self.is_asked or bool(self.waiting_bytes)

    def hear(self, receipts: Sequence[Receipt]) -> None:
        """Hand receipts to those who wait for them, whoever made the engine go on."""
        for receipt in receipts:
            owner = self._owners.pop(receipt.offset, None)
            if owner is not None:
                owner.hear(receipt)
            elif self._early is not None:
                self._early[receipt.offset] = receipt

    async def run(self) -> None:
        """Work until cancelled. Whatever ends it, nobody goes on waiting: everyone is told."""
        try:
            await self._work()
        finally:
            self.has_ended = True
            self._fail([*self._owners.values(), *self._queue], StreamCarError(ENDED))
            async with self._room:
                self._room.notify_all()

    async def _work(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), TICK_S)
            self._wake.clear()
            while self._queue or self.engine.is_due():
                await self._commit()

    async def _commit(self) -> None:
        owners, messages = self._taken()
        self._early = {}
        try:
            with self._timed("append"):
                first = await asyncio.to_thread(self.engine.append, messages)
            early, self._early = self._early, None
            self._owners.update(enumerate(owners, first))
            self.hear([early[offset] for offset in sorted(early)])
            while self.engine.next_offset < first + len(messages):
                async with self.still:
                    self._advance()
                for _ in range(TURNS):
                    await asyncio.sleep(0)
        except StreamCarError as error:
            self._fail(owners, error)
        except BaseException:
            self._fail(owners, StreamCarError(ENDED))
            raise

    def _advance(self) -> None:
        """Apply some documents, as many as seem to take `STEP_S`."""
        begin, first = thread_time(), self.engine.next_offset
        with self._timed("apply"):
            self.engine.advance(self._step)
        took, applied = thread_time() - begin, self.engine.next_offset - first
        if applied < self._step:
            return  # the end of the log: a few documents tell little of many
        fair = STEP_S if self.is_asked else QUIET_STEP_S
        fitting = int(applied * fair / took) if took else STEP_MAX
        self._step = max(STEP_MIN, min(fitting, 2 * self._step, STEP_MAX))

    def _taken(self) -> tuple[list[_Publication], list[Message]]:
        """The next messages of those who wait, first come first served; a tick where nobody does."""
        owners: list[_Publication] = []
        messages: list[Message] = []
        size = 0
        while self._queue and len(messages) < COMMIT_MAX and size < COMMIT_BYTES_MAX:
            publication = self._queue[0]
            while publication.sent < len(publication.messages) and len(messages) < COMMIT_MAX:
                message = publication.messages[publication.sent]
                if size >= COMMIT_BYTES_MAX:
                    break
                publication.sent += 1
                owners.append(publication)
                messages.append(message)
                size += len(message.value or b"")
            if publication.sent == len(publication.messages):
                self._queue.popleft()
        return owners, messages or [Message(value=None, headers=(TICK,))]

    def _fail(self, owners: Sequence[_Publication], error: StreamCarError) -> None:
        """Nobody waits for ever: what may be kept but is not applied is told as an error, and may be sent again."""
        self._early = None
        for publication in dict.fromkeys(owners):
            publication.fail(error)
            if publication in self._queue:
                self._queue.remove(publication)
        for offset in [offset for offset, owner in self._owners.items() if owner.done.done()]:
            del self._owners[offset]

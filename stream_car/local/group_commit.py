"""Many publishers, one log: what arrives together is stored with one disk flush, then applied in small steps.

Promise: a publication is answered when it is durable, applied and found by the next question; its receipts are in
order. The flush waits in a thread of its own; everything else happens on the event loop, a few milliseconds' worth of
documents at a time, more while there are no questions, so that a question waits for one step and never for a bulk load.
A publisher that is faster than that waits for room. Once a client has sent too much that was rejected, its input is
judged before it is stored, and what would be rejected is only counted.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from time import monotonic, thread_time

from stream_car.errors import InvalidDocument, StreamCarError
from stream_car.local.data_directory import DataDirectory
from stream_car.local.rejected_quota import RejectedQuota
from stream_car.ports import Message, Record
from stream_car.processing.fold import TICK, tally
from stream_car.processing.receipts import Receipt, rejected_receipt
from stream_car.processing.replay import rejection_of
from stream_car.queries.read_options import StageTimer, no_timer

COMMIT_MAX = 512  # messages stored with one flush
COMMIT_BYTES_MAX = 2 << 20
STEP_S = 0.005  # of computing, without disks: how long documents are applied before questions get their turn
QUIET_STEP_S = 0.02  # the same without questions: the first question waits a little longer
QUESTION_S = 2.0  # for how long after a question another one is expected
STEP_MAX = 256  # documents per step
STEP_MIN = 4 << 10  # bytes per step, but at least one document: those with many scopes are long, and take long
TURNS = 4  # of the loop between two steps: a question needs about as many from its socket to its answer
ROOM = 16 << 20  # bytes that may wait
MESSAGE_BYTES = 1024  # of memory that a message takes until its receipt is delivered, beyond its own
ENDED = "Publishing has stopped; restart the service (its log tells why) and send the documents again."
TICK_S = 1.0  # how often the times of pending documents are checked


class _Publication:
    """What one caller publishes, and its receipts so far."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self.sent = 0
        self.receipts: list[Receipt] = []
        self.done: asyncio.Future[list[Receipt]] = asyncio.get_running_loop().create_future()

    def add(self, receipt: Receipt) -> None:
        self.receipts.append(receipt)
        if len(self.receipts) == len(self.messages) and not self.done.done():
            self.done.set_result(self.receipts)

    def fail(self, error: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class GroupCommit:
    """Appends and applies for all publishers; run it as one task beside the questions."""

    def __init__(self, directory: DataDirectory, timer: StageTimer = no_timer) -> None:
        self.directory = directory
        self.waiting_bytes = 0
        self.has_ended = False
        self._timer = timer
        self._queue: deque[_Publication] = deque()
        self._wake = asyncio.Event()
        self._room = asyncio.Condition()
        self._owners: dict[int, _Publication] = {}  # by offset
        self._step = STEP_MIN
        self._question_at = -QUESTION_S
        self._early: dict[int, Receipt] | None = None  # receipts that came before their offsets were known
        self._quota = RejectedQuota(directory.path)

    async def publish(self, messages: Sequence[Message], client: str | None = None) -> list[Receipt]:
        """Store and apply; the receipts in order. Of a `client`, rejected input is kept within its quota.

        Raises `StreamCarError` if the disk fails.
        """
        if not messages:
            return []
        if client is None:
            return await self._store(messages)
        receipts: list[Receipt] = []
        while rest := messages[len(receipts) :]:
            if self._quota.is_exhausted(client):
                part = await self._publish_judged(rest)
            else:
                with self._quota.judging_later(client, len(rest[:COMMIT_MAX])):
                    part = await self._store(rest[:COMMIT_MAX])
            for message, receipt in zip(rest, part, strict=False):
                if receipt.outcome == "rejected":
                    self._quota.count(client, len(message.value or b""), is_kept=receipt.kept)
            receipts += part
        return receipts

    async def _publish_judged(self, messages: Sequence[Message]) -> list[Receipt]:
        """Store the messages that would not be rejected now, and count the others."""
        rejected = await self._rejected(messages)
        kept = [message for at, message in enumerate(messages) if at not in rejected]
        stored = await self._store([*kept, tally(len(rejected))] if rejected else kept)
        offset, receipts = stored[-1].offset, iter(stored)
        errors = map(rejected.get, range(len(messages)))
        return [rejected_receipt(offset, error) if error is not None else next(receipts) for error in errors]

    async def _rejected(self, messages: Sequence[Message]) -> dict[int, InvalidDocument]:
        """Return what is wrong with those messages that would be rejected now, by their place."""
        directory = self.directory
        rejected = {}
        for at, message in enumerate(messages):
            fold = directory.projection.fold  # a rebuild may change it
            decoded = fold.read(Record(offset=directory.next_offset, append_time=0, value=message.value))
            stored = directory.stored(decoded.name) if decoded.name is not None else None
            error = rejection_of(decoded, stored, fold)
            if error is not None:
                rejected[at] = error
            if at % STEP_MAX == STEP_MAX - 1:
                await asyncio.sleep(0)
        return rejected

    async def _store(self, messages: Sequence[Message]) -> list[Receipt]:
        self.require_alive()
        size = sum(len(message.value or b"") for message in messages) + MESSAGE_BYTES * len(messages)
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
        """Raise `StreamCarError` if nothing can be published any more."""
        if self.has_ended:
            raise StreamCarError(ENDED)

    def expect_questions(self) -> None:
        """Take small steps for a while: there was a question."""
        self._question_at = monotonic()

    @property
    def has_questions(self) -> bool:
        """Whether there was a question a moment ago, and another one may come."""
        return monotonic() - self._question_at < QUESTION_S

    @property
    def is_busy(self) -> bool:
        """Whether there are questions, or publishers that wait."""
        return self.has_questions or bool(self.waiting_bytes)

    def deliver(self, receipts: Sequence[Receipt]) -> None:
        """Hand receipts to those who wait for them, whatever made the directory advance."""
        for receipt in receipts:
            owner = self._owners.pop(receipt.offset, None)
            if owner is not None:
                owner.add(receipt)
            elif self._early is not None:
                self._early[receipt.offset] = receipt

    async def run(self) -> None:
        """Work until cancelled. Whatever ends it, nobody keeps waiting: everyone gets an error."""
        try:
            await self._work()
        finally:
            self.has_ended = True
            self._quota.save()
            self._fail([*self._owners.values(), *self._queue], StreamCarError(ENDED))
            async with self._room:
                self._room.notify_all()

    async def _work(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), TICK_S)
            self._wake.clear()
            while self._queue or self.directory.is_due():
                await self._commit()

    async def _commit(self) -> None:
        owners, messages = self._take()
        self._early = {}
        try:
            with self._timer("append"):
                first = await asyncio.to_thread(self.directory.append, messages)
            early, self._early = self._early, None
            self._owners.update(enumerate(owners, first))
            self.deliver([early[offset] for offset in sorted(early)])
            sizes = [len(message.value or b"") for message in messages]
            while self.directory.next_offset < first + len(messages):
                self._advance(sizes[max(0, self.directory.next_offset - first) :])
                for _ in range(TURNS):
                    await asyncio.sleep(0)
        except StreamCarError as error:
            self._fail(owners, error)
        except BaseException:
            self._fail(owners, StreamCarError(ENDED))
            raise

    def _advance(self, sizes: Sequence[int]) -> None:
        """Apply some of the documents of these sizes, as many as seem to take `STEP_S`."""
        count = sum(total <= self._step for total in accumulate(sizes[:STEP_MAX])) or 1
        size, begin = sum(sizes[:count]), thread_time()
        with self._timer("apply"):
            self.directory.advance(count)
        took = thread_time() - begin
        fair = STEP_S if self.has_questions else QUIET_STEP_S
        fitting = int(size * fair / took) if took else self._step
        if fitting < self._step or size > self._step // 2:  # a few documents tell little about many
            self._step = max(STEP_MIN, min(fitting, 2 * self._step))

    def _take(self) -> tuple[list[_Publication], list[Message]]:
        """The next messages of those who wait, first come first served; a tick if there are none."""
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
        """Report an error to these. What may be stored but is not applied may be sent again."""
        self._early = None
        for publication in dict.fromkeys(owners):
            publication.fail(error)
            if publication in self._queue:
                self._queue.remove(publication)
        for offset in [offset for offset, owner in self._owners.items() if owner.done.done()]:
            del self._owners[offset]

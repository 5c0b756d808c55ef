"""Subscribers: each reads the change log from its own cursor when it is ready for more.

Promise: a subscriber that is slow or has left costs others nothing. If its cursor cannot be continued, it receives a
`Reset` and starts again with a snapshot. At most `limit` are open, of which `SNAPSHOTS_MAX` read their snapshots; those
that wait for their clients do not count. At the limit, a new subscriber takes the place of the one whose client has
taken nothing for longest. A client with a name has at most one of `SHARES` shares of both limits. A subscriber counts
from `subscribe` until it closes, or until nothing refers to it any more.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from time import monotonic
from typing import Literal, Protocol
from weakref import WeakSet

from msgspec.structs import replace

from stream_car.errors import InvalidRequest, Overloaded
from stream_car.ports import MarkedLog
from stream_car.subscriptions.broadcast import Broadcast
from stream_car.subscriptions.cursor import CURSOR_HINT, Cursor
from stream_car.subscriptions.events import Event, Heartbeat, Notice, Reset, Selection
from stream_car.subscriptions.subscription import Expired, Numbers, SubscriptionReader

SNAPSHOTS_MAX = 64
STALLED_S = 1.0  # a subscriber whose client has taken nothing for so long gives way to others
SHARES = 4
RETRY_S = 0.05  # until what could not be read at one moment is read again


class ChangeSource(Protocol):
    """What is subscribed to."""

    @property
    def generation(self) -> str:
        """The generation that cursors belong to."""
        ...

    @property
    def marks(self) -> MarkedLog | None:
        """What tells its log from others, if anything does."""
        ...

    async def last(self) -> Numbers:
        """The number of the last change of each shard."""
        ...

    async def deleted_up_to(self) -> Numbers:
        """For each shard, changes up to this number may be gone."""
        ...

    async def has_reached(self, numbers: Numbers) -> bool:
        """Whether these changes exist, here or a moment later."""
        ...

    def subscription(self, selection: Selection, *, cursor: Sequence[int], with_snapshot: bool) -> SubscriptionReader:
        """Return a place in the stream of changes; `pull` from it."""
        ...

    async def pull(self, reader: SubscriptionReader) -> tuple[list[Notice], bool]:
        """Return the next notices, and whether the reader has caught up. Raises `Expired`."""
        ...


class SubscriptionHub:
    """All subscribers of one service."""

    def __init__(
        self, source: ChangeSource, broadcast: Broadcast, *, limit: int = 1000, heartbeat_s: float = 15.0
    ) -> None:
        self.source = source
        self.broadcast = broadcast
        self.limit = limit
        self.heartbeat_s = heartbeat_s
        self.is_ending = False
        self._open: WeakSet[Subscriber] = WeakSet()  # weak: a subscriber that nobody iterates never calls `close`

    def __len__(self) -> int:
        return len(self._open)

    async def lag(self) -> int:
        """How many events the slowest subscriber has not received."""
        last = sum(await self.source.last())
        return max((last - sum(subscriber.reader.cursor) for subscriber in self._open), default=0)

    async def cursor(self) -> str:
        """The cursor after the last change."""
        return self.cursor_text(self.source.generation, await self.source.last())

    def cursor_text(self, generation: str, numbers: Numbers, offset: int | None = None) -> str:
        """Return a cursor as text, marked with the input at `offset` or with the last one."""
        marks = self.source.marks
        return str(Cursor(generation, numbers, marks.mark(offset) if marks is not None else ""))

    def end(self) -> None:
        """End every subscription, in order."""
        self.is_ending = True
        self.broadcast.notify()

    async def subscribe(
        self, selection: Selection, after: str | None, snapshot: bool | None, client: str = ""
    ) -> "Subscriber":
        """Let a subscriber in. Raises `InvalidRequest` (`cursor`, `cursor_ahead`), `Overloaded`."""
        begins_now = after is None and selection.since is None
        numbers, reset = await self._cursor_or_reset(after)
        if after is None and selection.since is not None:
            numbers = await self.source.deleted_up_to()
        # from here on nothing is awaited, so that limits hold
        with_snapshot = reset is not None or (begins_now if snapshot is None else snapshot)
        if client:
            own = [subscriber for subscriber in self._open if subscriber.client == client]
            self._require_room(own, -(-self.limit // SHARES), -(-SNAPSHOTS_MAX // SHARES), with_snapshot=with_snapshot)
        self._require_room(list(self._open), self.limit, SNAPSHOTS_MAX, with_snapshot=with_snapshot)
        subscriber = Subscriber(self, selection, numbers, reset, client, with_snapshot=with_snapshot)
        self._open.add(subscriber)
        return subscriber

    def _require_room(
        self, subscribers: Sequence["Subscriber"], limit: int, snapshots_max: int, *, with_snapshot: bool
    ) -> None:
        """Make room for one more among these subscribers. Raises `Overloaded` if none of them gives way."""
        if len(subscribers) >= limit:
            slowest = max(subscribers, key=lambda subscriber: subscriber.stalled_s)
            if slowest.stalled_s < STALLED_S:
                raise Overloaded(f"{limit} subscriptions are open, and no more are accepted. Try again later.")
            slowest.give_way()
        if with_snapshot and sum(subscriber.is_beginning for subscriber in subscribers) >= snapshots_max:
            raise Overloaded(f"{snapshots_max} subscribers are reading their snapshots. Try again later.")

    def close(self, subscriber: "Subscriber") -> None:
        """Forget a subscriber."""
        self._open.discard(subscriber)

    async def _cursor_or_reset(self, after: str | None) -> tuple[Numbers, Reset | None]:
        source = self.source
        if after is None:
            return await source.last(), None
        cursor = Cursor.parse(after)
        if cursor.generation != source.generation:
            return await source.last(), Reset(reason="cursor_generation", generation=source.generation)
        last = await source.last()
        if len(cursor.numbers) != len(last):
            raise InvalidRequest("cursor", f"A cursor of this service has {len(last)} numbers. {CURSOR_HINT}")
        if source.marks is not None and not source.marks.has_mark(cursor.mark):
            return last, Reset(reason="cursor_log", generation=source.generation)
        if not await source.has_reached(cursor.numbers):
            newest = ".".join(map(str, await source.last()))
            raise InvalidRequest(
                "cursor_ahead", f"The last event so far is {newest}, before your cursor. {CURSOR_HINT}"
            )
        if any(map(int.__lt__, cursor.numbers, await source.deleted_up_to())):
            return await source.last(), Reset(reason="cursor_expired", generation=source.generation)
        return cursor.numbers, None


class Subscriber:
    """One subscription from beginning to end: iterate over its batches of events, or take what there is with `poll`."""

    def __init__(
        self,
        hub: SubscriptionHub,
        selection: Selection,
        numbers: Numbers,
        reset: Reset | None,
        client: str,
        *,
        with_snapshot: bool,
    ) -> None:
        self.hub = hub
        self.client = client
        self.selection = selection
        self.reader = hub.source.subscription(selection, cursor=numbers, with_snapshot=with_snapshot)
        self._reset = reset
        self._sent = self.reader.cursor
        self._offered_at: float | None = None  # since when it waits for its client
        self._task: asyncio.Task[object] | None = None  # that iterates
        self._is_at_end = False

    @property
    def is_beginning(self) -> bool:
        """Whether it is reading its snapshot, and does not wait for its client."""
        return self.reader.is_beginning and self._offered_at is None

    @property
    def stalled_s(self) -> float:
        """For how many seconds it has waited for its client."""
        return monotonic() - self._offered_at if self._offered_at is not None else 0.0

    async def poll(self) -> list[Event]:
        """Return the next events; none if there are none, or if shards must be read again (`is_at_rest`)."""
        if self._reset is not None:
            reset, self._reset = self._reset, None
            return [reset]
        if self.hub.source.generation != self.reader.generation:
            return [await self._restart("generation")]
        try:
            notices, self._is_at_end = await self.hub.source.pull(self.reader)
        except Expired:
            return [await self._restart("cursor_expired")]
        self._sent = next((notice.cursor for notice in reversed(notices) if notice.cursor is not None), self._sent)
        return [self._event(notice) for notice in notices]

    @property
    def is_at_rest(self) -> bool:
        """Whether `poll` has returned everything so far."""
        return self._is_at_end

    def heartbeat(self) -> Heartbeat:
        """Return an event without content, which carries the cursor if it has moved."""
        cursor = self.reader.cursor
        moved, self._sent = cursor != self._sent, cursor
        return Heartbeat(cursor=self.hub.cursor_text(self.reader.generation, cursor) if moved else None)

    async def batches(self) -> AsyncIterator[Sequence[Event]]:
        """Yield events, several at once; at rest a heartbeat now and then. Ends when the service ends."""
        hub = self.hub
        self._task = asyncio.current_task()
        try:
            while not hub.is_ending:
                signal = hub.broadcast.listen()
                events = await self.poll()
                if events:
                    self._offered_at = monotonic()
                    yield events
                    self._offered_at = None
                if not self._is_at_end:
                    await asyncio.sleep(0 if self.reader.made_progress else RETRY_S)
                elif not events and not await hub.broadcast.wait(signal, hub.heartbeat_s):
                    yield [self.heartbeat()]
        finally:
            self.close()

    def give_way(self) -> None:
        """End the subscription although its client still has something to take."""
        self.close()
        if self._task is not None:
            self._task.cancel()

    def close(self) -> None:
        """End the subscription."""
        self.hub.close(self)

    def _event(self, notice: Notice) -> Event:
        if notice.cursor is None:
            return notice.event
        return replace(notice.event, cursor=self.hub.cursor_text(self.reader.generation, notice.cursor, notice.offset))

    async def _restart(self, reason: Literal["generation", "cursor_expired"]) -> Reset:
        source = self.hub.source
        self.reader = source.subscription(self.selection, cursor=await source.last(), with_snapshot=True)
        self._sent = self.reader.cursor
        return Reset(reason=reason, generation=source.generation)

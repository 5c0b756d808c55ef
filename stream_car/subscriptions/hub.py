"""Subscribers: each reads the journal from its own cursor when it is ready for more.

Promise: a subscriber that is slow, or gone, costs nobody else anything; one that asks from a cursor that
cannot be gone on from is told so and begins anew. At most `most` at a time, of which `SNAPSHOTS_MAX` may be
reading their snapshots. One counts from the moment it is let in until it ends, or nobody holds it any more.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from time import monotonic
from typing import Protocol
from weakref import WeakSet

from stream_car.errors import InvalidRequest, TooMuch
from stream_car.subscriptions.broadcast import Broadcast
from stream_car.subscriptions.events import Event, Filter, Notice, Reset
from stream_car.subscriptions.subscription import Cursor, Expired, Subscription

CURSOR_HINT = "leave the cursor out to begin with a snapshot of now"
SNAPSHOTS_MAX = 64
IDLE_S = 5.0  # whoever has taken nothing for so long does not keep others from beginning
AGAIN_S = 0.05  # until what could not be read together is read again


class ChangeSource(Protocol):
    """What is subscribed to."""

    @property
    def generation(self) -> str:
        """Names what cursors belong to."""
        ...

    async def last(self) -> Cursor:
        """For each shard the last change told."""
        ...

    async def deleted_up_to(self) -> Cursor:
        """For each shard: changes up to this number may no longer be kept."""
        ...

    async def has_come_to(self, cursor: Cursor) -> bool:
        """Whether these changes are told."""
        ...

    def subscription(self, selection: Filter, *, cursor: Sequence[int], with_snapshot: bool) -> Subscription:
        """A place in the stream of changes; `pull` from it."""
        ...

    async def pull(self, subscription: Subscription) -> tuple[list[Notice], bool]:
        """The next notices, and whether the subscription has caught up. Raises `Expired`."""
        ...


class SubscriptionHub:
    """All who listen."""

    def __init__(
        self, changing: ChangeSource, bell: Broadcast, *, limit: int = 1000, heartbeat_s: float = 15.0
    ) -> None:
        self.source = changing
        self.broadcast = bell
        self.limit = limit
        self.heartbeat_s = heartbeat_s
        self.ending = False
        self._open: WeakSet[Listener] = WeakSet()  # one that is let in and never read from ends nowhere

    def __len__(self) -> int:
        return len(self._open)

    async def lag(self) -> int:
        """How many events the slowest has not yet taken."""
        last = sum(await self.source.last())
        return max((last - sum(one.subscription.cursor) for one in self._open), default=0)

    async def cursor(self) -> str:
        """Behind the last change told."""
        return f"{self.source.generation}:{'.'.join(map(str, await self.source.last()))}"

    def end(self) -> None:
        """Let everybody go, in order."""
        self.ending = True
        self.broadcast.notify()

    async def subscribe(
        self, selection: Filter, after: str | None, snapshot: bool | None
    ) -> AsyncIterator[Sequence[Event]]:
        """A new listener. Raises `InvalidRequest` (`cursor`, `cursor_ahead`), `TooMuch`."""
        cursor, reason = await self._start(after)  # from here on nothing is awaited: others come meanwhile
        if len(self._open) >= self.limit:
            raise TooMuch(f"{self.limit} subscriptions are open, and no more are taken; try again later")
        with_snapshot = reason is not None or _wants(after, snapshot)
        if with_snapshot and sum(one.is_beginning for one in self._open) >= SNAPSHOTS_MAX:
            raise TooMuch(f"{SNAPSHOTS_MAX} subscribers are reading their snapshots; try again later")
        listener = Listener(self, selection, cursor, reason, with_snapshot=with_snapshot)
        self._open.add(listener)
        return listener.events()

    def closed(self, listener: "Listener") -> None:
        """Somebody does no longer."""
        self._open.discard(listener)

    async def _start(self, after: str | None) -> tuple[Cursor, Reset | None]:
        changing = self.source
        if after is None:
            return await changing.last(), None
        generation, cursor = _read(after)
        if generation != changing.generation:
            return await changing.last(), Reset(reason="cursor_generation", generation=changing.generation)
        last = await changing.last()
        if len(cursor) != len(last):
            raise InvalidRequest("cursor", f"a cursor of this service has {len(last)} numbers; {CURSOR_HINT}")
        if not await changing.has_come_to(cursor):
            told = ".".join(map(str, await changing.last()))
            raise InvalidRequest("cursor_ahead", f"the last event so far is {told}, before your cursor; {CURSOR_HINT}")
        if any(map(int.__lt__, cursor, await changing.deleted_up_to())):
            return await changing.last(), Reset(reason="cursor_expired", generation=changing.generation)
        return cursor, None


def _read(after: str) -> tuple[str, Cursor]:
    """A cursor's generation and numbers. Raises `InvalidRequest`."""
    generation, colon, said = after.rpartition(":")
    numbers = said.split(".")
    if not (colon and generation and all(one.isascii() and one.isdecimal() and len(one) < 17 for one in numbers)):
        raise InvalidRequest("cursor", f"a cursor is GENERATION:NUMBER, as events carry it; {CURSOR_HINT}")
    return generation, tuple(map(int, numbers))


def _wants(after: str | None, snapshot: bool | None) -> bool:
    return after is None if snapshot is None else snapshot


class Listener:
    """One subscription from beginning to end."""

    def __init__(
        self, among: SubscriptionHub, selection: Filter, cursor: Cursor, reset: Reset | None, *, with_snapshot: bool
    ) -> None:
        self.hub = among
        self.selection = selection
        self.reset = reset
        self.subscription = self._begin(cursor, with_snapshot=with_snapshot)
        self._pulled = monotonic()

    @property
    def is_beginning(self) -> bool:
        """Whether it is being told what is in force, and listens."""
        return self.subscription.is_beginning and monotonic() - self._pulled < IDLE_S

    def _begin(self, cursor: Cursor, *, with_snapshot: bool) -> Subscription:
        return self.hub.source.subscription(self.selection, cursor=cursor, with_snapshot=with_snapshot)

    async def events(self) -> AsyncIterator[Sequence[Event]]:
        """What there is to tell, several things at once; at rest a heartbeat now and then."""
        among = self.hub
        told = self.subscription.cursor
        try:
            if self.reset is not None:
                yield [Event("reset", self.reset)]
            while not among.ending:
                heard = among.broadcast.listen()
                if among.source.generation != self.subscription.generation:
                    yield [await self._restart("generation")]
                self._pulled = monotonic()
                try:
                    notices, is_at_end = await among.source.pull(self.subscription)
                except Expired:
                    yield [await self._restart("cursor_expired")]
                    continue
                if notices:
                    yield [self._event(one) for one in notices]
                    told = next((one.cursor for one in reversed(notices) if one.cursor is not None), told)
                if not is_at_end:
                    await asyncio.sleep(0 if self.subscription.has_moved else AGAIN_S)
                elif not notices and not await among.broadcast.wait(heard, among.heartbeat_s):
                    cursor = self.subscription.cursor
                    yield [Event("heartbeat", None, self.subscription.position(cursor) if cursor != told else None)]
                    told = cursor
        finally:
            among.closed(self)

    def _event(self, one: Notice) -> Event:
        return Event(one.event, one.data, None if one.cursor is None else self.subscription.position(one.cursor))

    async def _restart(self, reason: str) -> Event:
        changing = self.hub.source
        self.subscription = self._begin(await changing.last(), with_snapshot=True)
        if reason == "generation":
            return Event("reset", Reset(reason="generation", generation=changing.generation))
        return Event("reset", Reset(reason="cursor_expired", generation=changing.generation))

"""Subscribers of the embedded engine: each reads the journal from its own cursor when it is ready for more.

Promise: a subscriber that is slow, or gone, costs the engine nothing; one that asks from a cursor that
cannot be gone on from is told so and begins anew. At most `most` at a time.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

from stream_car.api.messages import Reset, Said
from stream_car.engine.notices import Selection
from stream_car.engine.subscription import Expired, Subscription
from stream_car.errors import InvalidRequest, TooMuch
from stream_car.runtime.bell import Bell
from stream_car.runtime.embedded import Engine

CURSOR_HINT = "leave the cursor out to begin with a snapshot of now"


class Subscriptions:
    """All who listen."""

    def __init__(self, engine: Engine, bell: Bell, *, most: int = 1000, heartbeat_s: float = 15.0) -> None:
        self.engine = engine
        self.bell = bell
        self.most = most
        self.heartbeat_s = heartbeat_s
        self.ending = False
        self._open: set[Listener] = set()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def lag(self) -> int:
        """How many events the slowest has not yet taken."""
        last = self.engine.last_change()
        return max((last - one.subscription.cursor for one in self._open), default=0)

    def end(self) -> None:
        """Let everybody go, in order."""
        self.ending = True
        self.bell.ring()

    def subscribe(
        self, selection: Selection, after: str | None, snapshot: bool | None
    ) -> AsyncIterator[Sequence[Said]]:
        """A new listener. Raises `InvalidRequest` (`cursor`, `cursor_ahead`), `TooMuch`."""
        if len(self._open) >= self.most:
            raise TooMuch(f"{self.most} subscriptions are open, and no more are taken; try again later")
        cursor, reason = self._start(after)
        listener = Listener(
            self, selection, cursor, reason, with_snapshot=reason is not None or _wants(after, snapshot)
        )
        return listener.said()

    def opened(self, listener: "Listener") -> None:
        """Somebody listens."""
        self._open.add(listener)

    def closed(self, listener: "Listener") -> None:
        """Somebody does no longer."""
        self._open.discard(listener)

    def _start(self, after: str | None) -> tuple[int, Reset | None]:
        last = self.engine.last_change()
        if after is None:
            return last, None
        generation, colon, number = after.rpartition(":")
        if not (colon and generation and number.isascii() and number.isdecimal() and len(number) < 17):
            raise InvalidRequest("cursor", f"a cursor is GENERATION:NUMBER, as events carry it; {CURSOR_HINT}")
        if generation != self.engine.generation:
            return last, Reset(reason="cursor_generation", generation=self.engine.generation)
        if int(number) > last:
            raise InvalidRequest("cursor_ahead", f"the last event so far is {last}, before your cursor; {CURSOR_HINT}")
        if int(number) < self.engine.forgotten():
            return last, Reset(reason="cursor_expired", generation=self.engine.generation)
        return int(number), None


def _wants(after: str | None, snapshot: bool | None) -> bool:
    return after is None if snapshot is None else snapshot


def so_far(engine: Engine, selection: Selection, after: str | None, *, snapshot: bool) -> Iterator[Said]:
    """What a subscriber would have heard by now: from a cursor on, else from the first change that is kept."""
    beginning = f"{engine.generation}:{engine.forgotten()}"
    cursor = after if after is not None or snapshot else beginning
    with asyncio.Runner() as runner:
        all_of_it = Subscriptions(engine, Bell(), heartbeat_s=0.0).subscribe(selection, cursor, snapshot or None)
        while True:
            for said in runner.run(_next(all_of_it)):
                if said.event == "heartbeat":
                    return
                yield said


async def _next(events: AsyncIterator[Sequence[Said]]) -> Sequence[Said]:
    return await anext(events)


class Listener:
    """One subscription from beginning to end."""

    def __init__(
        self, among: Subscriptions, selection: Selection, cursor: int, reset: Reset | None, *, with_snapshot: bool
    ) -> None:
        self.among = among
        self.selection = selection
        self.reset = reset
        self.subscription = self._begin(cursor, with_snapshot=with_snapshot)

    def _begin(self, cursor: int, *, with_snapshot: bool) -> Subscription:
        return self.among.engine.subscription(self.selection, cursor=cursor, with_snapshot=with_snapshot)

    async def said(self) -> AsyncIterator[Sequence[Said]]:
        """What there is to tell, several things at once; at rest a heartbeat now and then."""
        self.among.opened(self)
        told = self.subscription.cursor
        try:
            if self.reset is not None:
                yield [Said("reset", self.reset)]
            while not self.among.ending:
                heard = self.among.bell.listen()
                if self.among.engine.generation != self.subscription.generation:
                    yield [self._anew("generation")]
                try:
                    notices, is_at_end = self.among.engine.pull(self.subscription)
                except Expired:
                    yield [self._anew("cursor_expired")]
                    continue
                if notices:
                    yield [
                        Said(one.event, one.data, None if one.oseq is None else self.subscription.position(one.oseq))
                        for one in notices
                    ]
                    told = max(told, *(one.oseq or 0 for one in notices))
                if not is_at_end:
                    await asyncio.sleep(0)
                elif not notices and not await self.among.bell.wait(heard, self.among.heartbeat_s):
                    cursor = self.subscription.cursor
                    yield [Said("heartbeat", None, self.subscription.position(cursor) if cursor > told else None)]
                    told = cursor
        finally:
            self.among.closed(self)

    def _anew(self, reason: str) -> Said:
        engine = self.among.engine
        self.subscription = self._begin(engine.last_change(), with_snapshot=True)
        if reason == "generation":
            return Said("reset", Reset(reason="generation", generation=engine.generation))
        return Said("reset", Reset(reason="cursor_expired", generation=engine.generation))

"""What subscribers of one folder subscribe to: its one shard of changes."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

from stream_car.local.engine import Engine
from stream_car.queries.fair_scheduling import SpareTime, Turns
from stream_car.subscriptions.broadcast import Broadcast
from stream_car.subscriptions.events import Event, Filter, Notice
from stream_car.subscriptions.hub import SubscriptionHub
from stream_car.subscriptions.subscription import Cursor, Subscription


class Folder:
    """Implements `ChangeSource` over one folder. Listeners take pages in turn, so that many keep none waiting."""

    def __init__(self, engine: Engine, pages: Turns) -> None:
        self._engine = engine
        self._pages = pages

    @property
    def generation(self) -> str:
        """That of the rules; a rebuild makes another."""
        return self._engine.generation

    async def last(self) -> Cursor:
        """There is one shard."""
        return (self._engine.last_change(),)

    async def deleted_up_to(self) -> Cursor:
        """Likewise."""
        return (self._engine.deleted_up_to(),)

    async def has_come_to(self, cursor: Cursor) -> bool:
        """Nobody else tells changes."""
        return cursor <= await self.last()

    def subscription(self, selection: Filter, *, cursor: Sequence[int], with_snapshot: bool) -> Subscription:
        """A place in the stream of changes."""
        return self._engine.subscription(selection, cursor=cursor, with_snapshot=with_snapshot)

    async def pull(self, subscription: Subscription) -> tuple[list[Notice], bool]:
        """The next notices."""
        async with self._pages.next():
            if subscription.generation != self._engine.generation:
                return [], False  # it is to begin anew
            return self._engine.pull(subscription)


def so_far(engine: Engine, selection: Filter, after: str | None, *, snapshot: bool) -> Iterator[Event]:
    """What a subscriber would have heard by now: from a cursor on, else from the first change that is kept."""
    beginning = f"{engine.generation}:{engine.deleted_up_to()}"
    cursor = after if after is not None or snapshot else beginning
    with asyncio.Runner() as runner:
        everything = SubscriptionHub(Folder(engine, Turns(SpareTime(lambda: False))), Broadcast(), heartbeat_s=0.0)
        all_of_it = runner.run(everything.subscribe(selection, cursor, snapshot or None))
        while True:
            for said in runner.run(_next(all_of_it)):
                if said.event == "heartbeat":
                    return
                yield said


async def _next(events: AsyncIterator[Sequence[Event]]) -> Sequence[Event]:
    return await anext(events)

"""What query workers' subscribers subscribe to: the changes of all frontier shards.

Promise: implements `Changing`; a cursor that one query worker gave is good at every other of the same
generation. While a server is away subscribers wait, and nobody is sent off.
"""

from collections.abc import Sequence

from stream_car.cluster.change_feed import Changes
from stream_car.errors import Unavailable
from stream_car.subscriptions.events import Notice, Selection
from stream_car.subscriptions.subscription import Cursor, Sources, Subscription


class ManyTellers:
    """Implements `Changing`."""

    def __init__(self, sources: Sources, changes: Changes) -> None:
        self._sources = sources
        self._changes = changes

    @property
    def generation(self) -> str:
        """That of the rules and the partitions; it does not change while a process runs."""
        return self._sources.generation

    async def last(self) -> Cursor:
        """For each shard the last change heard."""
        return tuple([await self._changes.last(shard) for shard in self._changes.shards])

    async def forgotten(self) -> Cursor:
        """For each shard: changes up to this number may no longer be kept."""
        return tuple([await self._changes.forgotten(shard) for shard in self._changes.shards])

    async def has_come_to(self, cursor: Cursor) -> bool:
        """Whether these changes are told, here or a moment later."""
        return await self._changes.has_come_to(cursor)

    def subscription(self, selection: Selection, *, cursor: Sequence[int], with_snapshot: bool) -> Subscription:
        """A place in the stream of changes."""
        return Subscription(self._sources, selection, cursor=cursor, with_snapshot=with_snapshot)

    async def pull(self, subscription: Subscription) -> tuple[list[Notice], bool]:
        """The next notices, and whether the subscription has caught up; nothing while a server is away."""
        try:
            return await subscription.step(), await subscription.has_caught_up()
        except Unavailable:
            return [], False

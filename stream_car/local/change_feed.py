"""What subscribers of one data directory read: its one shard of changes."""

from collections.abc import Sequence

from stream_car.local.data_directory import DataDirectory
from stream_car.ports import MarkedLog
from stream_car.queries.fair_scheduling import Turns
from stream_car.subscriptions.events import Notice, Selection
from stream_car.subscriptions.subscription import Numbers, SubscriptionReader


class LocalChangeFeed:
    """Implements `hub.ChangeSource`. With `turns`, subscribers take pages in turn, so that many delay nobody else."""

    def __init__(self, directory: DataDirectory, turns: Turns | None = None) -> None:
        self._directory = directory
        self._turns = turns

    @property
    def generation(self) -> str:
        return self._directory.generation

    @property
    def marks(self) -> MarkedLog:
        return self._directory.marks

    async def last(self) -> Numbers:
        return (self._directory.last_change(),)

    async def deleted_up_to(self) -> Numbers:
        return (self._directory.changes_deleted_up_to(),)

    async def has_reached(self, numbers: Numbers) -> bool:
        return numbers <= await self.last()

    def subscription(self, selection: Selection, *, cursor: Sequence[int], with_snapshot: bool) -> SubscriptionReader:
        return self._directory.subscription(selection, cursor=cursor, with_snapshot=with_snapshot)

    async def pull(self, reader: SubscriptionReader) -> tuple[list[Notice], bool]:
        if self._turns is None:
            return self._directory.pull(reader)
        async with self._turns.next():
            if reader.generation != self._directory.generation:
                return [], False  # it must restart
            return self._directory.pull(reader)

"""What Faust's consumer would be asked about records, if it carried any. Nobody asks."""

from collections.abc import Mapping

from faust.transport.consumer import Consumer, RecordMap
from faust.types import TP, ConsumerMessage


class SilentConsumer(Consumer):
    """A consumer that gives no records."""

    def _new_topicpartition(self, topic: str, partition: int) -> TP:
        return TP(topic, partition)

    def _to_message(self, tp: TP, record: object) -> ConsumerMessage:
        raise NotImplementedError

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> RecordMap:
        raise NotImplementedError

    async def _seek(self, partition: TP, offset: int) -> None:
        raise NotImplementedError

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        """Not asked."""
        raise NotImplementedError

    async def position(self, tp: TP) -> int | None:
        """Not asked."""
        raise NotImplementedError

    def highwater(self, tp: TP) -> int:
        """Not asked."""
        raise NotImplementedError

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        """Not asked."""
        raise NotImplementedError

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        """Not asked."""
        raise NotImplementedError

    def topic_partitions(self, topic: str) -> int | None:
        """Not asked."""
        raise NotImplementedError

    def key_partition(self, topic: str, key: bytes | None, partition: int | None = None) -> int | None:
        """Not asked."""
        raise NotImplementedError

    async def create_topic(self, topic: str, partitions: int, replication: int, **options: object) -> None:
        """Not asked: `stream-car topics apply` does it."""
        raise NotImplementedError

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Nothing: every shard begins where the store says."""
        return {}

    async def commit(self, topics: object = None, start_new_transaction: bool = True) -> bool:
        """Nothing: what the group has committed is never read."""
        return False

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        return False

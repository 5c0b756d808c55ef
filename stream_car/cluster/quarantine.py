"""The records that the shards of both hops have set aside, as a query worker sees them.

Promise: dropping one claims its shard for a moment; the worker that has the shard claims it again a little later, and
nothing else changes. Cost: one read of all shards to list them.
"""

from collections.abc import Mapping

from stream_car.cluster.connections import TOPICS, Connections
from stream_car.cluster.shared_log import KafkaReaders
from stream_car.errors import ClaimLost, InvalidRequest, Unavailable
from stream_car.ports import Hop, Record, ShardId, SnapshotReader
from stream_car.processing.quarantine import QUARANTINE, Quarantine
from stream_car.processing.state import decode_value, encode_value


class ClusterQuarantine:
    """The quarantine of an installation."""

    def __init__(self, connections: Connections, snapshots: SnapshotReader, readers: KafkaReaders) -> None:
        self._connections = connections
        self._snapshots = snapshots
        self._logs = {topic: readers.shared(topic) for topic in TOPICS.values()}
        counts: dict[Hop, int] = {
            "intake": connections.partitions.intakes,
            "frontier": connections.partitions.frontiers,
        }
        self._shards = [ShardId(hop, shard) for hop, count in counts.items() for shard in range(count)]

    async def read(self) -> Mapping[ShardId, Quarantine]:
        """Return what each shard has set aside."""
        snapshot = await self._snapshots.peek({shard_id: [QUARANTINE] for shard_id in self._shards})
        values = {shard_id: decode_value(QUARANTINE, raw.get(QUARANTINE)) for shard_id, (_, raw) in snapshot.items()}
        return {shard_id: value for shard_id, value in values.items() if isinstance(value, Quarantine)}

    async def record(self, shard_id: ShardId, offset: int) -> Record:
        """Return a record of the topic that a shard reads."""
        records = await self._logs[TOPICS[shard_id.hop]].fetch(shard_id.shard, offset, 1)
        if not records:
            raise InvalidRequest("name", f"Record {offset} is no longer in Kafka.")
        return records[0]

    async def require_droppable(self, shard_id: ShardId) -> None:
        """Raise `StreamCarError` if the user of Redis may only read."""
        await self._connections.plan.store(self._connections.client, shard_id.hop).require_writable(shard_id.shard)

    async def drop(self, shard_id: ShardId, offset: int) -> None:
        """Drop a record from the quarantine of a shard. Raises `Unavailable` if its worker claimed it meanwhile."""
        store = self._connections.plan.store(self._connections.client, shard_id.hop)
        try:
            claim = await store.claim(shard_id.shard)
            value = decode_value(QUARANTINE, (await store.read(claim, [QUARANTINE])).get(QUARANTINE))
            if isinstance(value, Quarantine):
                writes = {QUARANTINE: encode_value(value.without(offset))}
                await store.commit(claim, claim.next_offset, writes, [])
        except ClaimLost as error:
            raise Unavailable(f"The shard is busy ({error}). Try again.") from error

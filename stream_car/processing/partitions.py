"""Which shard an id and which shard a scope belongs to.

Promise: pure, fixed for ever, and part of the generation. Ids go by murmur2 as Kafka's Java client,
kafka-python and aiokafka place keys, so that records of such publishers lie where they belong;
others' (librdkafka's default is CRC-32) are forwarded once. Scopes, which nobody outside places, go
by CRC-32, which costs nothing. Cost: two microseconds an id, a tenth a scope.
"""

from zlib import crc32

from msgspec import Struct

_MIX = 0x5BD1E995
_SEED = 0x9747B28C
_ALL = 0xFFFFFFFF


class Partitions(Struct, frozen=True, kw_only=True, gc=False):
    """How many shards each hop has; `intakes` is the number of partitions of the documents."""

    intakes: int = 1
    frontiers: int = 1

    @property
    def name(self) -> str:
        """How a generation says it."""
        return f"{self.intakes}x{self.frontiers}"

    def of_id(self, name: str) -> int:
        """The intake shard of a document id, which is also its partition of the documents."""
        return (murmur2(name.encode()) & 0x7FFFFFFF) % self.intakes if self.intakes > 1 else 0

    def of_scope(self, scope: bytes) -> int:
        """The frontier shard of a scope, which is also its partition of placements and changes."""
        return crc32(scope) % self.frontiers


def murmur2(data: bytes) -> int:
    """MurmurHash2 of 32 bits, little endian, with the seed that Kafka's clients use."""
    left = len(data) & 3
    whole = len(data) - left
    found = _SEED ^ len(data)
    for at in range(0, whole, 4):
        word = (int.from_bytes(data[at : at + 4], "little") * _MIX) & _ALL
        word = ((word ^ (word >> 24)) * _MIX) & _ALL
        found = ((found * _MIX) & _ALL) ^ word
    if left:
        found = ((found ^ int.from_bytes(data[whole:], "little")) * _MIX) & _ALL
    found = ((found ^ (found >> 13)) * _MIX) & _ALL
    return found ^ (found >> 15)

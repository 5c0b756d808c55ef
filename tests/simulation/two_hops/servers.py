"""Logs, stores and journals in memory, and the network before them that loses, delays and repeats requests.

Promise: what a request does, it does at one moment; everything that befalls it is drawn from one
random source. A store's shard may have several primaries, each a history of states of its own, of
which workers may go on using an old one for a while.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct, structs

from stream_car.errors import ClaimLost
from stream_car.ports import Claim, Emission, Message, Record, ShardId
from tests.simulation.network import Network
from tests.simulation.world import Violation

T = TypeVar("T")


class SimLog:
    """Implements `ports.Log`. Its clients may skip a record or give one again."""

    def __init__(self, network: Network, partitions: int) -> None:
        self.network = network
        self.partitions: list[list[Record]] = [[] for _ in range(partitions)]

    def write(self, partition: int, messages: Sequence[Message]) -> int:
        """Keep messages, now."""
        records = self.partitions[partition]
        first = len(records)
        records += [
            Record(
                offset=offset,
                append_time=self.network.now,
                value=message.value,
                key=message.key,
                headers=message.headers,
            )
            for offset, message in enumerate(messages, first)
        ]
        return first

    async def append(self, partition: int, messages: Sequence[Message]) -> int:
        return await self.network.call(lambda: self.write(partition, messages))

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        start = from_offset
        if self.network.happens(self.network.rate / 2):
            start = max(0, from_offset + self.network.random.choice((1, -1)))
            self.network.seen["skip" if start > from_offset else "repeat"] += 1
        records = self.partitions[partition]
        return await self.network.call(lambda: records[start : start + max_records])

    async def range(self, partition: int) -> tuple[int, int]:
        return await self.network.call(lambda: (0, len(self.partitions[partition])))


class Standing(Struct, frozen=True):
    """What a shard's primary holds after one command."""

    claim: Claim
    values: Mapping[bytes, bytes] = {}
    outbox: tuple[Emission, ...] = ()


class Server:
    """One shard of a store: its primaries, each with every state that it was ever in."""

    def __init__(self, shard: int, watch: Callable[[Standing], None]) -> None:
        empty = Standing(Claim(shard=shard, owner="", next_offset=0, next_oseq=1, trimmed=0))
        self.primaries = [[empty]]
        self.owners = 0
        self.watch = watch

    @property
    def primary(self) -> int:
        """The one that counts; earlier ones are believed in by some."""
        return len(self.primaries) - 1

    @property
    def state(self) -> Standing:
        return self.primaries[-1][-1]

    def fall_back(self, states: int) -> None:
        """A new primary that has lost all but the first states of the old one."""
        self.primaries.append(self.primaries[-1][:states])

    def keep(self, at: int, state: Standing) -> Claim:
        self.watch(state)
        self.primaries[at].append(state)
        return state.claim

    def check(self, at: int, claim: Claim) -> Standing:
        state = self.primaries[at][-1]
        if claim != state.claim:
            raise ClaimLost("the shard is another worker's, or has moved")
        return state

    def claim(self, at: int) -> Claim:
        self.owners += 1
        state = self.primaries[at][-1]
        return self.keep(at, structs.replace(state, claim=structs.replace(state.claim, owner=str(self.owners))))

    def read(self, at: int, claim: Claim, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        values = self.check(at, claim).values
        return {key: values[key] for key in keys if key in values}

    def commit(
        self, at: int, claim: Claim, next_offset: int, writes: Mapping[bytes, bytes | None], outbox: Sequence[Emission]
    ) -> Claim:
        state = self.check(at, claim)
        moved = structs.replace(claim, next_offset=next_offset, next_oseq=claim.next_oseq + len(outbox))
        return self.keep(at, Standing(moved, written(state.values, writes), (*state.outbox, *outbox)))

    def outbox(self, at: int, claim: Claim) -> Sequence[Emission]:
        return self.check(at, claim).outbox

    def trim(self, at: int, claim: Claim, up_to: int) -> Claim:
        state = self.check(at, claim)
        left = tuple(event for event in state.outbox if event.oseq > up_to)
        return self.keep(at, Standing(structs.replace(claim, trimmed=up_to), state.values, left))

    def peek(self, at: int, keys: Sequence[bytes]) -> tuple[int, dict[bytes, bytes]]:
        state = self.primaries[at][-1]
        return state.claim.next_offset, {key: state.values[key] for key in keys if key in state.values}


def written(values: Mapping[bytes, bytes], writes: Mapping[bytes, bytes | None]) -> dict[bytes, bytes]:
    """The values after some were written and some deleted."""
    after = {**values, **{key: value for key, value in writes.items() if value is not None}}
    for key, value in writes.items():
        if value is None:
            after.pop(key, None)
    return after


class Client:
    """Implements `ports.Store` for one worker of one shard; it may talk to a primary that is no longer one."""

    def __init__(self, network: Network, server: Server) -> None:
        self.network = network
        self.server = server
        self.sees = server.primary

    def at(self) -> int:
        """The primary that this request goes to."""
        if self.sees != self.server.primary and self.network.happens(0.1):
            self.sees = self.server.primary
        return self.sees

    async def claim(self, shard: int) -> Claim:
        at = self.at()
        return await self.network.call(lambda: self.server.claim(at))

    async def read(self, claim: Claim, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        at = self.at()
        return await self.network.call(lambda: self.server.read(at, claim, keys))

    async def commit(
        self, claim: Claim, next_offset: int, writes: Mapping[bytes, bytes | None], outbox: Sequence[Emission]
    ) -> Claim:
        at = self.at()
        return await self.network.call(lambda: self.server.commit(at, claim, next_offset, writes, tuple(outbox)))

    async def outbox(self, claim: Claim) -> Sequence[Emission]:
        at = self.at()
        return await self.network.call(lambda: self.server.outbox(at, claim))

    async def trim(self, claim: Claim, up_to: int) -> Claim:
        at = self.at()
        return await self.network.call(lambda: self.server.trim(at, claim, up_to))

    async def peek(self, shard: int, keys: Sequence[bytes]) -> tuple[int, dict[bytes, bytes]]:
        at = self.at()
        return await self.network.call(lambda: self.server.peek(at, keys))


class SimViews:
    """Implements `ports.SnapshotReader`: each shard answers at its own moment, now and then from an old primary."""

    def __init__(self, network: Network, servers: Mapping[ShardId, Server]) -> None:
        self.network = network
        self.servers = servers

    async def peek(self, wanted: Mapping[ShardId, Sequence[bytes]]) -> Mapping[ShardId, tuple[int, dict[bytes, bytes]]]:
        views = {}
        places = list(wanted)
        self.network.random.shuffle(places)
        for place in places:
            views[place] = await self._peek(self.servers[place], wanted[place])
        return views

    async def _peek(self, server: Server, keys: Sequence[bytes]) -> tuple[int, dict[bytes, bytes]]:
        is_old = server.primary > 0 and self.network.rate > 0 and self.network.happens(0.1)
        at = server.primary - 1 if is_old else server.primary
        return await self.network.call(lambda: server.peek(at, keys))


class SimOutlet:
    """Implements `ports.EventSink` for changes; first deliveries must be in order, repeats identical."""

    def __init__(self, network: Network, expected: Callable[[int], Emission | None]) -> None:
        self.network = network
        self.expected = expected
        self.events: list[Emission] = []

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        await self.network.call(lambda: self._publish(events))

    def _publish(self, events: Sequence[Emission]) -> None:
        for event in events:
            if event.oseq > len(self.events) + 1:
                raise Violation(f"event {event.oseq} was published before event {len(self.events) + 1}")
            if event.oseq <= len(self.events):
                if event != self.events[event.oseq - 1]:
                    raise Violation(f"event {event.oseq} was repeated with other content")
            elif event != self.expected(event.oseq):
                raise Violation(f"event {event.oseq} is not that of an uninterrupted run")
            else:
                self.events.append(event)

    async def last(self, shard: int) -> int:
        return await self.network.call(lambda: len(self.events))

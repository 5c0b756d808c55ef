"""Where a question's values come from, and what they warrant: one shard, or the shards of two hops.

Promise: values of one source whose `is_exact` holds are the state of exactly the inputs before its
`cut`, one offset for each intake shard. One shard is always exact; if it moves between two rounds,
`ShardMoved` is raised. Of many shards the cut is the least of what each shard read had heard of each
intake shard, and the read is exact iff nothing that was read has applied an input at or beyond it;
otherwise whoever asked reads again. Cost: one exchange a round, with all shards that it touches.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct

from stream_car.core.stored import Scope, StoredDocument
from stream_car.core.timeline import scope_key
from stream_car.errors import Halted, StreamCarError
from stream_car.ports import ShardId, SnapshotReader, Store
from stream_car.processing.headers import FrontierHeader, Header
from stream_car.processing.partitions import Partitions
from stream_car.processing.state import HEADER, Value, decode_value
from stream_car.processing.two_hop import FRONTIER

Peek = Callable[[Sequence[bytes]], Awaitable[tuple[int, Mapping[bytes, bytes]]]]


class ShardMoved(StreamCarError):
    """A shard moved between two rounds of reads; begin again."""


class Overview(Struct, frozen=True, gc=False):
    """What the shards know of themselves: whether documents name one another, and how many wait."""

    has_links: bool
    pending: int


class Reached(Struct, frozen=True, gc=False):
    """How far the shards were when they were first read.

    `applied`: the next input of each intake shard. `told`: of each frontier shard the last change that its values show.
    """

    applied: tuple[int, ...]
    changes: tuple[int, ...]


class ValueSource(Protocol):
    """Values for one question."""

    async def read(self, keys: Sequence[bytes]) -> Mapping[bytes, Value]:
        """The values under these keys, in one round; `None` where there is none. Raises `ShardMoved`, `Halted`."""
        ...

    async def overview(self) -> Overview:
        """What the shards know of themselves, as of the same cut."""
        ...

    @property
    def cut(self) -> tuple[int, ...]:
        """For each intake shard the input before which everything was seen; empty before the first read."""
        ...

    @property
    def is_exact(self) -> bool:
        """Whether nothing was read that an input at or beyond the cut has changed."""
        ...

    @property
    def reached(self) -> Reached | None:
        """How far the shards were at the first read; `None` where state and journal go on together."""
        ...


class Shards(Protocol):
    """What questions are asked of."""

    def source(self) -> ValueSource:
        """A source for one question."""
        ...

    def pending_sources(self) -> Sequence[Callable[[], ValueSource]]:
        """What gives sources for each shard in which documents wait for their time."""
        ...

    def intake_of(self, name: str) -> int:
        """The intake shard of an id: its place in a cut."""
        ...


class OneShard:
    """Implements `Shards` for the composed fold: one shard has everything."""

    def __init__(self, store: Store, shard: int = 0) -> None:
        self.store = store
        self.shard = shard

    def source(self) -> ValueSource:
        """A source for one question."""
        return OneShardSource(lambda keys: self.store.peek(self.shard, keys))

    def pending_sources(self) -> Sequence[Callable[[], ValueSource]]:
        """The same shard."""
        return [self.source]

    def intake_of(self, name: str) -> int:
        """There is but one."""
        return 0


class OneShardSource:
    """Implements `ValueSource` over one shard that must not move between rounds."""

    def __init__(self, peek: Peek) -> None:
        self._peek = peek
        self._next: int | None = None
        self._overview: Overview | None = None

    @property
    def cut(self) -> tuple[int, ...]:
        """The shard's next offset."""
        return (self._next,) if self._next is not None else ()

    @property
    def is_exact(self) -> bool:
        """Always: a shard's values are those of one moment."""
        return True

    @property
    def reached(self) -> Reached | None:
        """The shard's journal says it."""
        return None

    async def overview(self) -> Overview:
        """From the shard's header, which the first round brings along."""
        if self._overview is None:
            await self.read([])
        assert self._overview is not None
        return self._overview

    async def read(self, keys: Sequence[bytes]) -> Mapping[bytes, Value]:
        """The values under these keys, in one round."""
        asked = keys if self._overview is not None else [*keys, HEADER]
        at, found = await self._peek(asked)
        if self._next is not None and at != self._next:
            raise ShardMoved("the shard moved while it was read; ask again")
        self._next = at
        if self._overview is None:
            known = decode_value(HEADER, found.get(HEADER))
            header = known if isinstance(known, Header) else Header()
            self._overview = Overview(header.links > 0, header.pending)
        values = {key: decode_value(key, found.get(key)) for key in keys}
        for key, value in values.items():
            if value is None and key[:1] == b"p":
                raise _damaged(key)
        return values


class ManyShards:
    """Implements `Shards` for the two-hop form."""

    def __init__(self, views: SnapshotReader, partitions: Partitions) -> None:
        self.views = views
        self.partitions = partitions

    def source(self) -> ValueSource:
        """A source for one question."""
        return ManyShardsSource(self.views, self.partitions)

    def pending_sources(self) -> Sequence[Callable[[], ValueSource]]:
        """The intake shards, each for itself."""
        return [partial(self._alone, ShardId("intake", shard)) for shard in range(self.partitions.intakes)]

    def _alone(self, place: ShardId) -> ValueSource:
        async def peek(keys: Sequence[bytes]) -> tuple[int, Mapping[bytes, bytes]]:
            return (await self.views.peek({place: keys}))[place]

        return OneShardSource(peek)

    def intake_of(self, name: str) -> int:
        """By the partitioner."""
        return self.partitions.of_id(name)


class StoreViews:
    """Implements `ports.SnapshotReader` over the stores of the hops, one shard after the other: where no read waits."""

    def __init__(self, *, intake: Store, frontier: Store) -> None:
        self._stores: dict[str, Store] = {"intake": intake, "frontier": frontier}

    async def peek(self, wanted: Mapping[ShardId, Sequence[bytes]]) -> Mapping[ShardId, tuple[int, dict[bytes, bytes]]]:
        """For each shard its next offset and the values of its keys."""
        return {place: await self._stores[place.hop].peek(place.shard, keys) for place, keys in wanted.items()}


class ManyShardsSource:
    """Implements `ValueSource` over many shards, of which each gives what it has at some moment of its own."""

    def __init__(self, views: SnapshotReader, partitions: Partitions) -> None:
        self.views = views
        self.partitions = partitions
        self._overview: Overview | None = None
        self._reached: Reached | None = None
        self._cut: list[int] = []
        self._stamps: dict[str, int] = {}
        self._seen = [-1] * partitions.intakes  # of each intake shard the last input that what was read shows

    @property
    def cut(self) -> tuple[int, ...]:
        """The least of what the shards read had heard."""
        return tuple(self._cut)

    @property
    def is_exact(self) -> bool:
        """Whether everything that was read stops short of the cut."""
        return not self._cut or all(seen < cut for seen, cut in zip(self._seen, self._cut, strict=True))

    @property
    def reached(self) -> Reached | None:
        """By the headers that the first round brought along."""
        return self._reached

    async def overview(self) -> Overview:
        """From the headers of all shards, which the first round brings along."""
        if self._overview is None:
            await self.read([])
        assert self._overview is not None
        return self._overview

    async def read(self, keys: Sequence[bytes]) -> Mapping[bytes, Value]:
        """The values under these keys, in one round over all shards that have them."""
        asked: dict[ShardId, list[bytes]] = {}
        if self._overview is None:
            asked = {place: [] for place in self._places()}
        for key in keys:
            asked.setdefault(self._place_of(key), []).append(key)
        found = await self.views.peek(
            {place: [*wanted, FRONTIER if place.hop == "frontier" else HEADER] for place, wanted in asked.items()}
        )
        self._note_headers(found)
        values: dict[bytes, Value] = {}
        for place, wanted in asked.items():
            _, raw = found[place]
            for key in wanted:
                value = values[key] = decode_value(key, raw.get(key))
                self._note(place, value)
                if value is None and key[:1] == b"p":
                    await self._explain_absent_page(place, key)
        return values

    def _places(self) -> list[ShardId]:
        partitions = self.partitions
        return [ShardId("intake", shard) for shard in range(partitions.intakes)] + [
            ShardId("frontier", shard) for shard in range(partitions.frontiers)
        ]

    def _place_of(self, key: bytes) -> ShardId:
        if key[:1] == b"d":
            return ShardId("intake", self.partitions.of_id(key[2:].decode()))
        scope = key[2:] if key[:1] == b"s" else key.split(b":", 2)[2]
        return ShardId("frontier", self.partitions.of_scope(scope))

    def _note_headers(self, found: Mapping[ShardId, tuple[int, Mapping[bytes, bytes]]]) -> None:
        """Lower the cut to what these shards had heard."""
        has_links, waiting = False, 0
        nothing = [0] * self.partitions.intakes
        told = list(self._reached.changes) if self._reached is not None else [0] * self.partitions.frontiers
        cut = self._cut or [1 << 62] * self.partitions.intakes
        for place, (next_offset, raw) in found.items():
            if place.hop == "intake":
                header = decode_value(HEADER, raw.get(HEADER))
                waiting += header.pending if isinstance(header, Header) else 0
                cut[place.shard] = min(cut[place.shard], next_offset)
            else:
                front = decode_value(FRONTIER, raw.get(FRONTIER))
                known = front if isinstance(front, FrontierHeader) else FrontierHeader(nothing, nothing)
                has_links = has_links or known.has_links
                if known.changes < told[place.shard]:
                    raise ShardMoved("a shard has lost its state and is on its way back; ask again")
                told[place.shard] = known.changes
                cut = [min(pair) for pair in zip(cut, known.watermarks, strict=True)]
        self._cut = cut
        if self._overview is None:
            self._overview = Overview(has_links, waiting)
            applied = tuple(found[ShardId("intake", shard)][0] for shard in range(self.partitions.intakes))
            self._reached = Reached(applied, tuple(told))

    def _note(self, place: ShardId, value: Value) -> None:
        """Raise what was seen to the last inputs that this value shows."""
        seen = self._seen
        if isinstance(value, StoredDocument):
            seen[place.shard] = max(seen[place.shard], value.applied)
        elif isinstance(value, Scope):
            self._stamps[value.name] = value.version
            for at in range(0, len(value.applied), 2):
                shard = value.applied[at]
                seen[shard] = max(seen[shard], value.applied[at + 1])

    async def _explain_absent_page(self, place: ShardId, key: bytes) -> None:
        """Raise `ShardMoved` if the scope has gone on since its header was read, `Halted` if it has not."""
        name = key.split(b":", 2)[2].decode()
        header = scope_key(name)
        _, raw = (await self.views.peek({place: [header, key]}))[place]
        scope = decode_value(header, raw.get(header))
        if key not in raw and isinstance(scope, Scope) and scope.version == self._stamps.get(name):
            raise _damaged(key)
        raise ShardMoved("a scope moved while it was read; ask again")


def _damaged(key: bytes) -> Halted:
    return Halted("damaged", f"the page {key!r} is gone; rebuild the state from the log")

"""Where the values of a question come from, and what they warrant: one shard, or the shards of two hops.

Promise: if `is_exact` holds for a source, its values are the state after exactly the inputs before its `cut`; the
cut has one offset per intake shard. One shard is always exact; if it moves between two rounds and was not pinned
before, `ShardMoved` is raised. Of many shards, each has applied the input of an intake shard up to some offset; the cut
is the lowest of these, over the shards that were read. The read is exact iff no value read has applied an input at or
beyond the cut, the cut includes what every answer must have seen, and no shard has fallen back; otherwise the caller
reads again.
Cost: one exchange per round, with all shards that the round touches.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct

from stream_car.core.documents import Document
from stream_car.core.scope_names import scope_parts
from stream_car.core.stored import Scope, StoredDocument
from stream_car.core.timeline import scope_key
from stream_car.errors import Halted, StreamCarError
from stream_car.ports import ShardId, SnapshotReader, Store, YieldControl
from stream_car.processing.headers import FrontierHeader, Header
from stream_car.processing.partitions import Partitions
from stream_car.processing.quarantine import QUARANTINE
from stream_car.processing.state import HEADER, Value, decode_value, quarantined_keys
from stream_car.processing.two_hop import FRONTIER
from stream_car.ranking.analysis import names

DECODED_AT_ONCE = 64 << 10  # bytes of values that are decoded before other work may run: about a millisecond

Peek = Callable[[Sequence[bytes]], Awaitable[tuple[int, Mapping[bytes, bytes]]]]


class ShardMoved(StreamCarError):
    """A shard moved between two rounds of reads; start again with a new source."""


class Overview(Struct, frozen=True, gc=False):
    """What the shards report about themselves.

    It tells whether documents link to one another, how many are pending, and which keys might have other values if no
    record were in quarantine; `None` stands for all keys.
    """

    has_links: bool
    pending: int
    quarantined_keys: frozenset[bytes] | None = frozenset()

    @property
    def has_quarantine(self) -> bool:
        """Whether some record in quarantine might have changed anything."""
        return self.quarantined_keys != frozenset()

    @property
    def quarantined_names(self) -> frozenset[str]:
        """What a question may mention of the documents in quarantine whose scopes are known: ids, values of scopes."""
        if not self.quarantined_keys:
            return frozenset()
        values: list[str] = []
        for key in self.quarantined_keys:
            kind, name = key[:2], key[2:].decode()
            values += [value for _, value in scope_parts(name)] if kind == scope_key("") else [name]
        return frozenset(names(values))

    def is_quarantined(self, keys: Collection[bytes]) -> bool:
        """Return whether a record in quarantine might have changed one of these keys."""
        return self.quarantined_keys is None or not self.quarantined_keys.isdisjoint(keys)


class Reached(Struct, frozen=True, gc=False):
    """How far the shards were when they were first read.

    `applied`: the next input of each intake shard. `changes`: the last change that each frontier shard had emitted.
    """

    applied: tuple[int, ...]
    changes: tuple[int, ...]


class PinnedState(Protocol):
    """One shard as it was when it was pinned, whatever is applied afterwards."""

    async def peek(self, keys: Sequence[bytes]) -> tuple[int, Mapping[bytes, bytes]]:
        """Read as `Store.peek`."""
        ...

    async def document(self, offset: int) -> Document | None:
        """Return the document that the record at this offset states."""
        ...

    def close(self) -> None:
        """Release what it holds; closing again is harmless."""
        ...


class ValueSource(Protocol):
    """The values for one question. A question that lets other work run reads at most `keys_at_once` before it does."""

    keys_at_once: int

    @property
    def pinned(self) -> PinnedState | None:
        """What the values are read from since `pin`, if that was possible."""
        ...

    def pin(self) -> None:
        """Keep further values as of the first round, whatever is applied meanwhile, if the back end can."""
        ...

    def close(self) -> None:
        """Release what `pin` holds; closing again is harmless."""
        ...

    async def read(self, keys: Sequence[bytes], rest: YieldControl | None = None) -> Mapping[bytes, Value]:
        """Read the values of these keys in one round; `None` for a key without a value.

        `rest` is called between pieces of decoding.

        Raises:
            ShardMoved: the values would not fit those of earlier rounds.
            Halted: the state is damaged (`damaged`).
        """
        ...

    async def overview(self) -> Overview:
        """What the shards report about themselves, as of the first round."""
        ...

    @property
    def cut(self) -> tuple[int, ...]:
        """For each intake shard, the offset before which all input was seen; empty before the first read."""
        ...

    @property
    def is_exact(self) -> bool:
        """Whether no value read was changed by an input at or beyond the cut."""
        ...

    @property
    def reached(self) -> Reached | None:
        """How far the shards were at the first read; `None` if state and change log advance together."""
        ...


class Shards(Protocol):
    """The shards that questions are answered from."""

    def source(self) -> ValueSource:
        """A source for one attempt at a question."""
        ...

    def pending_sources(self) -> Sequence[Callable[[], ValueSource]]:
        """For each shard that holds pending documents, a factory of sources over that shard alone."""
        ...

    def intake_of(self, name: str) -> int:
        """The intake shard of an id, which is its index in a cut."""
        ...


class OneShard:
    """Implements `Shards` for the composed fold: one shard holds everything. `pin` pins its present state."""

    def __init__(self, store: Store, shard: int = 0, *, pin: Callable[[], PinnedState] | None = None) -> None:
        self.store = store
        self.shard = shard
        self._pin = pin

    def source(self) -> ValueSource:
        return OneShardSource(lambda keys: self.store.peek(self.shard, keys), self._pin)

    def pending_sources(self) -> Sequence[Callable[[], ValueSource]]:
        return [self.source]

    def intake_of(self, name: str) -> int:
        return 0


class OneShardSource:
    """Implements `ValueSource` over one shard that must not move between rounds, unless it is pinned."""

    keys_at_once = 64

    def __init__(self, peek: Peek, pin: Callable[[], PinnedState] | None = None) -> None:
        self._peek = peek
        self._pin = pin
        self.pinned: PinnedState | None = None
        self._next_offset: int | None = None
        self._overview: Overview | None = None

    @property
    def cut(self) -> tuple[int, ...]:
        return (self._next_offset,) if self._next_offset is not None else ()

    @property
    def is_exact(self) -> bool:
        return True

    @property
    def reached(self) -> Reached | None:
        return None

    def pin(self) -> None:
        if self.pinned is None and self._pin is not None:
            self.pinned = self._pin()
            self._peek = self.pinned.peek

    def close(self) -> None:
        if self.pinned is not None:
            self.pinned.close()

    async def overview(self) -> Overview:
        if self._overview is None:
            await self.read([])
        assert self._overview is not None
        return self._overview

    async def read(self, keys: Sequence[bytes], rest: YieldControl | None = None) -> Mapping[bytes, Value]:
        is_first_round = self._overview is None
        next_offset, raw = await self._peek([*keys, HEADER, QUARANTINE] if is_first_round else keys)
        if self._next_offset is not None and next_offset != self._next_offset:
            raise ShardMoved("The shard moved while it was read. Try again.")
        self._next_offset = next_offset
        if is_first_round:
            value = decode_value(HEADER, raw.get(HEADER))
            header = value if isinstance(value, Header) else Header()
            self._overview = Overview(header.links > 0, header.pending, quarantined_keys([raw]))
        values: dict[bytes, Value] = {}
        for batch in _decoding_batches(keys, raw) if rest is not None else [keys]:
            values |= {key: decode_value(key, raw.get(key)) for key in batch}
            if rest is not None:
                await rest()
        for key, value in values.items():
            if value is None and key[:1] == b"p":
                raise _damaged(key)  # the header that names the page is of the same moment
        return values


class ManyShards:
    """Implements `Shards` for the two-hop form.

    `required` has, for each intake shard, the offset before which every exact answer must have seen all input.
    """

    def __init__(self, views: SnapshotReader, partitions: Partitions) -> None:
        self.views = views
        self.partitions = partitions
        self.required: tuple[int, ...] = (0,) * partitions.intakes
        self._highest: dict[ShardId, tuple[int, ...]] = {}  # how far shards were when they were read

    def require(self, up_to: Mapping[int, int]) -> None:
        """From now on, require all input of these intake shards before these offsets."""
        self.required = tuple(max(offset, up_to.get(shard, 0)) for shard, offset in enumerate(self.required))

    def has_fallen_back(self, shard_id: ShardId, applied: Sequence[int]) -> bool:
        """Return whether a shard has applied less than when it was read before. If not, note how far it is."""
        if any(map(int.__gt__, self._highest.get(shard_id, ()), applied)):
            return True
        self._highest[shard_id] = tuple(applied)
        return False

    def source(self, required: Sequence[int] = ()) -> ValueSource:
        """Return a source. `required` replaces that of the moment, for a question that began earlier."""
        return ManyShardsSource(self, required or self.required)

    def pending_sources(self) -> Sequence[Callable[[], ValueSource]]:
        return [partial(self._one_shard, ShardId("intake", shard)) for shard in range(self.partitions.intakes)]

    def _one_shard(self, shard_id: ShardId) -> ValueSource:
        async def peek(keys: Sequence[bytes]) -> tuple[int, Mapping[bytes, bytes]]:
            next_offset, values = (await self.views.peek({shard_id: keys}))[shard_id]
            if next_offset < self.required[shard_id.shard] or self.has_fallen_back(shard_id, [next_offset]):
                raise ShardMoved("A shard has lost its state and is being rebuilt. Try again.")
            return next_offset, values

        return OneShardSource(peek)

    def intake_of(self, name: str) -> int:
        return self.partitions.of_id(name)


class ManyShardsSource:
    """Implements `ValueSource` over many shards, each of which is read at a moment of its own; none is pinned."""

    keys_at_once = 512  # an exchange costs more than the values; and the more there are, the fewer reads are exact
    pinned: PinnedState | None = None

    def __init__(self, shards: ManyShards, required: Sequence[int]) -> None:
        self.views = shards.views
        self.partitions = shards.partitions
        self._shards = shards
        self._required = required
        self._has_fallen_back = False
        self._overview: Overview | None = None
        self._reached: Reached | None = None
        self._cut: list[int] = []  # the lowest of the shards whose values were read
        self._lowest: list[int] = []  # of all shards, at the first read
        self._versions: dict[str, int] = {}  # of the scopes read
        # of each intake shard, the last input that a value read has applied
        self._seen = [-1] * self.partitions.intakes

    @property
    def cut(self) -> tuple[int, ...]:
        """For each intake shard, the lowest offset of the shards whose values were read.

        If no link between documents is known, a shard that was not read may yet hold one that was removed since. So the
        other shards count too, unless what was read is as far as the intake shards, which count the links.
        """
        reached = self._reached
        if reached is None or reached.applied == tuple(self._cut) or (self._overview and self._overview.has_links):
            return tuple(self._cut)
        return tuple(map(min, self._cut, self._lowest))

    @property
    def is_exact(self) -> bool:
        cut = self.cut
        if not cut:
            return True
        has_seen_required = not self._has_fallen_back and not any(map(int.__lt__, cut, self._required))
        return has_seen_required and all(map(int.__lt__, self._seen, cut))

    @property
    def reached(self) -> Reached | None:
        return self._reached

    async def overview(self) -> Overview:
        if self._overview is None:
            await self.read([])
        assert self._overview is not None
        return self._overview

    async def read(self, keys: Sequence[bytes], rest: YieldControl | None = None) -> Mapping[bytes, Value]:
        wanted: dict[ShardId, list[bytes]] = {}
        own_keys: tuple[bytes, ...] = ()
        if self._overview is None:  # the first round reads the headers of all shards
            wanted = {shard_id: [] for shard_id in self._all_shards()}
            own_keys = (QUARANTINE,)
        for key in keys:
            wanted.setdefault(self._shard_of(key), []).append(key)
        replies = await self.views.peek(
            {
                shard_id: [*shard_keys, FRONTIER if shard_id.hop == "frontier" else HEADER, *own_keys]
                for shard_id, shard_keys in wanted.items()
            }
        )
        self._lower_cut(wanted, replies)
        values: dict[bytes, Value] = {}
        for shard_id, shard_keys in wanted.items():
            _, raw = replies[shard_id]
            for batch in _decoding_batches(shard_keys, raw):
                for key in batch:
                    value = values[key] = decode_value(key, raw.get(key))
                    self._record_applied(shard_id, value)
                    if value is None and key[:1] == b"p":
                        await self._raise_for_missing_page(shard_id, key)
                if rest is not None:
                    await rest()
        return values

    def pin(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _all_shards(self) -> list[ShardId]:
        intakes, frontiers = self.partitions.intakes, self.partitions.frontiers
        return [ShardId("intake", shard) for shard in range(intakes)] + [
            ShardId("frontier", shard) for shard in range(frontiers)
        ]

    def _shard_of(self, key: bytes) -> ShardId:
        if key[:1] == b"d":
            return ShardId("intake", self.partitions.of_id(key[2:].decode()))
        scope = key[2:] if key[:1] == b"s" else key.split(b":", 2)[2]
        return ShardId("frontier", self.partitions.of_scope(scope))

    def _lower_cut(
        self,
        wanted: Mapping[ShardId, Sequence[bytes]],
        replies: Mapping[ShardId, tuple[int, Mapping[bytes, bytes]]],
    ) -> None:
        """Lower the cut to what these shards had applied. Raises `ShardMoved` if one of them fell back."""
        has_links, pending = False, 0
        zeros = [0] * self.partitions.intakes
        changes = list(self._reached.changes) if self._reached is not None else [0] * self.partitions.frontiers
        cut = self._cut or [1 << 62] * self.partitions.intakes
        lowest = cut
        for shard_id, (next_offset, raw) in replies.items():
            if shard_id.hop == "intake":
                value = decode_value(HEADER, raw.get(HEADER))
                if isinstance(value, Header):
                    pending += value.pending
                    has_links = has_links or value.links > 0
                cut[shard_id.shard] = min(cut[shard_id.shard], next_offset)
                applied = [next_offset]
            else:
                value = decode_value(FRONTIER, raw.get(FRONTIER))
                header = value if isinstance(value, FrontierHeader) else FrontierHeader(zeros, zeros)
                has_links = has_links or header.has_links
                if header.changes < changes[shard_id.shard]:
                    raise ShardMoved("A shard has lost its state and is being rebuilt. Try again.")
                changes[shard_id.shard] = header.changes
                applied = header.watermarks
                lowest = list(map(min, lowest, applied))
                if wanted[shard_id]:
                    cut = list(map(min, cut, applied))
            if self._shards.has_fallen_back(shard_id, applied) and (wanted[shard_id] or shard_id.hop == "intake"):
                self._has_fallen_back = True
        self._cut = cut
        if self._overview is None:
            quarantined = quarantined_keys([raw for _, raw in replies.values()])
            self._overview = Overview(has_links, pending, quarantined)
            applied_by_intakes = tuple(replies[ShardId("intake", shard)][0] for shard in range(self.partitions.intakes))
            self._reached = Reached(applied_by_intakes, tuple(changes))
            self._lowest = list(map(min, lowest, applied_by_intakes))

    def _record_applied(self, shard_id: ShardId, value: Value) -> None:
        """Raise `_seen` to the last inputs that this value has applied."""
        seen = self._seen
        if isinstance(value, StoredDocument):
            seen[shard_id.shard] = max(seen[shard_id.shard], value.applied)
        elif isinstance(value, Scope):
            self._versions[value.name] = value.version
            for at in range(0, len(value.applied), 2):
                intake, offset = value.applied[at : at + 2]
                seen[intake] = max(seen[intake], offset)

    async def _raise_for_missing_page(self, shard_id: ShardId, key: bytes) -> None:
        """Raise `ShardMoved` if the scope has changed since its header was read, `Halted` if it has not."""
        name = key.split(b":", 2)[2].decode()
        header = scope_key(name)
        _, raw = (await self.views.peek({shard_id: [header, key]}))[shard_id]
        scope = decode_value(header, raw.get(header))
        if key not in raw and isinstance(scope, Scope) and scope.version == self._versions.get(name):
            raise _damaged(key)
        raise ShardMoved("A scope changed while it was read. Try again.")


def _decoding_batches(keys: Sequence[bytes], raw: Mapping[bytes, bytes]) -> Iterator[Sequence[bytes]]:
    """Yield the keys in batches whose values are decoded in about a millisecond each."""
    begin = size = 0
    for at, key in enumerate(keys, 1):
        size += len(raw.get(key, b""))
        if size >= DECODED_AT_ONCE or at == len(keys):
            yield keys[begin:at]
            begin, size = at, 0


def _damaged(key: bytes) -> Halted:
    return Halted("damaged", f"The page {key!r} is missing. Rebuild the state from the log.")

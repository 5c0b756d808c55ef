"""What the engine asks of the world. Contract tests repeat these promises one by one."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from stream_car.core.documents import Document
from stream_car.ranking.anchor_order import Hit
from stream_car.ranking.bm25 import DocumentTerms


class Message(Struct, frozen=True, kw_only=True, gc=False):
    """What a publisher hands to a log. A null value retracts the document named by the key."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


class Record(Struct, frozen=True, kw_only=True, gc=False):
    """A message that the log holds. `append_time` is microseconds UTC, by the log's own clock."""

    offset: int
    append_time: int
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


class Log(Protocol):
    """Partitions of records with consecutive offsets from 0.

    What `append` has returned for survives any crash. Append times never decrease within a partition.
    """

    async def append(self, partition: int, messages: Sequence[Message]) -> int:
        """Keep all messages or none, durably; the offset of the first. An empty batch returns the end."""
        ...

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        """Up to `max_records` records from exactly `from_offset` on; none at the end.

        Raises `Halted` where the records from there on are gone (`lost_history`), do not exist yet
        because the log ends before (`ahead`), or were altered (`damaged`).
        """
        ...

    async def range(self, partition: int) -> tuple[int, int]:
        """The first offset kept, and the offset that the next record will get."""
        ...


class Claim(Struct, frozen=True, kw_only=True, gc=False):
    """A worker's hold on a shard, and where the shard stands."""

    shard: int
    owner: str
    next_offset: int
    next_oseq: int  # the number that the next event gets; the first is 1
    trimmed: int  # events up to this one have left the outbox


class Emission(Struct, frozen=True, kw_only=True, gc=False):
    """One emission of a shard, numbered without gaps; `stream` says where it goes."""

    oseq: int
    stream: str
    key: bytes
    value: bytes


class Store(Protocol):
    """A fenced key-value map per shard.

    `commit` writes all of a batch or none of it, together with the offset it reaches. `read`,
    `commit` and `trim` refuse with `ClaimLost` when the shard is no longer this claim's or has
    moved since. Readers that hold no claim `peek`.
    """

    async def claim(self, shard: int) -> Claim:
        """Take the shard from whoever holds it; a shard never seen starts at offset 0, event 1."""
        ...

    async def read(self, claim: Claim, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that have one, all as of the claim's offset."""
        ...

    async def commit(
        self, claim: Claim, next_offset: int, writes: Mapping[bytes, bytes | None], outbox: Sequence[Emission]
    ) -> Claim:
        """Write values (`None` deletes), events and the next offset at once; the claim to go on with."""
        ...

    async def outbox(self, claim: Claim) -> Sequence[Emission]:
        """The events that are not trimmed, in order."""
        ...

    async def trim(self, claim: Claim, up_to: int) -> Claim:
        """Forget the events up to and including `upto`; only after they are published."""
        ...

    async def peek(self, shard: int, keys: Sequence[bytes]) -> tuple[int, dict[bytes, bytes]]:
        """The shard's next offset and the values of these keys, all as of one moment."""
        ...


Hop = Literal["intake", "frontier"]
YieldControl = Callable[[], Awaitable[None]]  # lets others go first


class ShardId(NamedTuple):
    """A shard of the two-hop form, each hop of which has a store of its own."""

    hop: Hop
    shard: int


class SnapshotReader(Protocol):
    """What readers ask of the shards of both hops: one round, in one exchange where the back end can."""

    async def peek(self, wanted: Mapping[ShardId, Sequence[bytes]]) -> Mapping[ShardId, tuple[int, dict[bytes, bytes]]]:
        """For each shard its next offset and the values of its keys, all of one shard as of one moment."""
        ...


class RetryPolicy(Protocol):
    """How long a reader may read again. One object serves one question."""

    async def wait(self) -> bool:
        """Let the shards go on for a moment; `False` when the time is up."""
        ...


class Concurrency(Protocol):
    """Runs several requests at once, or one after the other."""

    async def __call__(self, *requests: Callable[[], Awaitable[object]]) -> object:
        """All of them are answered when this returns; it fails if one of them does."""
        ...


class EventSink(Protocol):
    """Where a shard's events go."""

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        """Keep the events, in order. Repeats are told apart by their `oseq`, here or by whoever reads them."""
        ...

    async def last(self, shard: int) -> int:
        """The highest `oseq` of this generation that need not be published again; 0 where that is not known."""
        ...


class ChangeLog(EventSink, Protocol):
    """An outlet whose events can be read again."""

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        """Keep the events, in order; a repeat of one already kept changes nothing."""
        ...

    async def read(
        self, shard: int, stream: str, *, after: int = 0, limit: int = 1000, key: bytes | None = None
    ) -> Sequence[Emission]:
        """Events of a stream with `oseq > after`, oldest first; with a key only that key's."""
        ...

    async def last(self, shard: int) -> int:
        """The highest `oseq` kept, 0 if none."""
        ...


class RetainedChangeLog(ChangeLog, Protocol):
    """A journal that does not keep events for ever."""

    async def deleted_up_to(self, shard: int) -> int:
        """Events up to this number may be gone; 0 if all are here."""
        ...

    async def delete_up_to(self, shard: int, stream: str, up_to: int, limit: int) -> int:
        """Let go of a stream's events up to this number, at most so many at once; how many went."""
        ...


class KeyListing(Protocol):
    """The keys that a state has, or had, in order."""

    async def keys(self, after: bytes, before: bytes, limit: int) -> Sequence[bytes]:
        """Keys with `after < key < before`, the first ones."""
        ...


class Clock(Protocol):
    """The time of day, for logs that stamp their own records."""

    def now(self) -> int:
        """Microseconds since 1970, UTC."""
        ...


class IndexedDocument(Struct, frozen=True, kw_only=True, gc=False):
    """A document to be found by its words, and the scopes it can be listed under."""

    document: Document
    scopes: tuple[str, ...] = ()
    anchor: bool = True  # whether Stage 1 may return it
    terms: DocumentTerms | None = None  # the document's, where they are known already


class Encoder(Protocol):
    """Texts to vectors of one length, by their meaning. Called from a thread of its own."""

    name: str  # vectors of different names are not compared

    def encode(self, texts: Sequence[str]) -> Sequence[bytes]:
        """A vector of length one for each text, as little-endian 32-bit floats."""
        ...


class AnchorIndex(Protocol):
    """Documents by their words (Stage 1), by id, and scopes by their parts.

    What `apply` has returned for is found by the next call. After a crash the index stands at some
    earlier `position`; whoever feeds it starts there again, and repeats change nothing.
    """

    async def apply(
        self, documents: Sequence[IndexedDocument], dropped: Sequence[str], position: int, scopes: Collection[str] = ()
    ) -> None:
        """Add or replace documents by id, drop others; all input before `position` is now in.

        `scopes` are further ones to be listed: those that only replaced or dropped documents had.
        """
        ...

    async def position(self) -> int:
        """The input offset from which to feed after opening; 0 where there is no usable index."""
        ...

    async def search(self, text: str, depth: int, yield_control: YieldControl | None = None) -> Sequence[Hit]:
        """The `depth` best anchors for a question, best first; ties by id. Any text is allowed.

        The work is bounded however long the text is: of its words the rarest count. Between pieces of it
        `give_way` is awaited; the result is of one moment all the same.
        """
        ...

    async def ignored_terms(self, text: str) -> int:
        """How many words of a question do not count in a search, although some document has them."""
        ...

    async def version(self) -> int:
        """A number that goes up whenever a search could answer otherwise than before, scores included."""
        ...

    async def vectors_pending(self) -> int:
        """Documents that are found by their words, but not yet by their meaning."""
        ...

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents kept under these ids."""
        ...

    async def scopes(self, pairs: Sequence[tuple[str, str]], limit: int) -> Sequence[str]:
        """Names of scopes that have all these pairs, in order of name; once listed, a scope stays so."""
        ...

"""The interfaces between the engine and its back ends. Contract tests repeat these promises one by one."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from stream_car.core.documents import Document
from stream_car.ranking.anchor_order import Hit


class Message(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """What a publisher appends to a log. A null value retracts the document that the key names."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


class Record(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """A message in a log. `append_time` is in microseconds UTC by the log's own clock."""

    offset: int
    append_time: int
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


CLOCK_STEP_MAX = 3_600_000_000  # microseconds; a clock that is set back further is believed


class Log(Protocol):
    """Partitions of records with consecutive offsets from 0.

    A record survives any crash once `append` has returned. Append times never decrease within a partition if the clock
    steps back by up to `CLOCK_STEP_MAX`. If it is set back further, it had leapt ahead: append times follow it.
    """

    async def append(self, partition: int, messages: Sequence[Message]) -> int:
        """Append all messages or none, durably, and return the offset of the first.

        An empty batch appends nothing and returns the end of the partition.
        """

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        """Return up to `max_records` records, the first at exactly `from_offset`. At the end, return none.

        Raises:
            Halted: the records at `from_offset` have been deleted (`lost_history`), the log ends before `from_offset`
                (`ahead`), or the records were altered (`damaged`).
        """

    async def range(self, partition: int) -> tuple[int, int]:
        """Return the first offset that the partition still has, and the offset of the next record."""


class MarkedLog(Protocol):
    """A log whose records depend on all records before them, so that one of them tells which log it is."""

    def mark(self, offset: int | None = None) -> str:
        """Return a mark of the record at an offset, or of the last one, as text without `@`."""

    def has_mark(self, mark: str) -> bool:
        """Return whether this log contains the record that a mark names."""


class Claim(Struct, frozen=True, kw_only=True, gc=False):
    """A worker's hold on a shard, and the progress of the shard."""

    shard: int
    owner: str
    next_offset: int
    next_oseq: int  # the number of the next emission; the first is 1
    trimmed: int  # emissions up to this number have left the outbox


class Emission(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """One output of a shard. `oseq` numbers them without gaps; `stream` names the destination."""

    oseq: int
    stream: str
    key: bytes
    value: bytes


class Store(Protocol):
    """A key-value map per shard, fenced by claims.

    `commit` writes all of a batch or none of it, together with the offset that the shard reaches. `read`, `commit`,
    `outbox` and `trim` raise `ClaimLost` if another worker has claimed the shard, or if the shard has moved since the
    claim was returned. A claim is therefore good for one `commit` or `trim`, which returns the next claim. Readers
    without a claim use `peek`. After a crash a shard is as some commit left it, not necessarily the last one.
    """

    async def claim(self, shard: int) -> Claim:
        """Claim the shard, taking it from any other worker. A new shard starts at offset 0 and emission 1."""

    async def read(self, claim: Claim, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of those keys that have one, all as of the claim's offset."""

    async def commit(
        self, claim: Claim, next_offset: int, writes: Mapping[bytes, bytes | None], outbox: Sequence[Emission]
    ) -> Claim:
        """Write values (`None` deletes), emissions and the next offset at once, and return the next claim.

        A store that has the destination of the emissions in the same transaction publishes and trims them itself.

        Raises:
            ValueError: `next_offset` goes back, or the emissions do not continue from the claim's `next_oseq`.
        """

    async def outbox(self, claim: Claim) -> Sequence[Emission]:
        """Return the emissions that are not trimmed, in order."""

    async def trim(self, claim: Claim, up_to: int) -> Claim:
        """Remove the emissions up to and including `up_to` from the outbox, and return the next claim.

        Call it only after they are published.

        Raises:
            ValueError: there is no emission `up_to` yet.
        """

    async def peek(self, shard: int, keys: Sequence[bytes]) -> tuple[int, dict[bytes, bytes]]:
        """Return the shard's next offset and the values of those keys that have one, all as of one moment."""


Hop = Literal["intake", "frontier"]
YieldControl = Callable[[], Awaitable[None]]  # lets other tasks run
Pairs = tuple[tuple[str, str], ...]  # `(key, value)` of scopes, sorted


class ShardId(NamedTuple):
    """A shard of the two-hop form. Each hop has a separate store."""

    hop: Hop
    shard: int


class SnapshotReader(Protocol):
    """Reads from several shards of both hops in one round, with one network exchange if the back end can."""

    async def peek(self, wanted: Mapping[ShardId, Sequence[bytes]]) -> Mapping[ShardId, tuple[int, dict[bytes, bytes]]]:
        """Return what `Store.peek` returns, for each shard.

        The values of one shard are as of one moment; different shards may be read at different moments.
        """


class RetryPolicy(Protocol):
    """Decides how long a reader may repeat a read. Each query uses its own object."""

    async def wait(self) -> bool:
        """Wait a moment so that the shards can advance. Return `False` if the time is up."""


class Concurrency(Protocol):
    """Runs several requests at the same time, or one after another."""

    async def __call__(self, *requests: Callable[[], Awaitable[object]]) -> object:
        """Run all requests and return when all have been answered. If a request fails, raise its error."""


class EventSink(Protocol):
    """The destination of a shard's emissions."""

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        """Store the emissions, in order. The sink or its readers recognize a repeat by its `oseq`."""

    async def last(self, shard: int) -> int:
        """Return the highest `oseq` of this generation that need not be published again, or 0 if it is unknown."""


class ChangeLog(EventSink, Protocol):
    """A sink whose emissions can be read again."""

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        """Store the emissions, in order. A repeat of a stored emission changes nothing that readers see."""

    async def read(
        self, shard: int, stream: str, *, after: int = 0, limit: int = 1000, key: bytes | None = None
    ) -> Sequence[Emission]:
        """Return up to `limit` emissions of a stream with `oseq > after`, oldest first.

        With a `key`, return only the emissions under that key.
        """

    async def last(self, shard: int) -> int:
        """Return the highest `oseq` stored, or 0 if there is none."""


class ChangeLogReader(Protocol):
    """What those need who only read a change log."""

    async def read(
        self, shard: int, stream: str, *, after: int = 0, limit: int = 1000, key: bytes | None = None
    ) -> Sequence[Emission]:
        """As in `ChangeLog`."""

    async def last(self, shard: int) -> int:
        """As in `EventSink`."""

    async def deleted_up_to(self, shard: int) -> int:
        """Return the number up to which emissions may have been deleted, or 0 if none has been."""


class RetainedChangeLog(ChangeLog, ChangeLogReader, Protocol):
    """A change log that deletes old emissions."""

    async def delete_up_to(self, shard: int, stream: str, up_to: int, limit: int) -> int:
        """Delete at most `limit` emissions of a stream with `oseq <= up_to`, and return how many were deleted."""


class KeyListing(Protocol):
    """The keys that a state has or once had, in order of their bytes."""

    async def keys(self, after: bytes, before: bytes, limit: int) -> Sequence[bytes]:
        """Return the first `limit` keys with `after < key < before`."""


class Clock(Protocol):
    """The time of day, for logs that set the append times themselves."""

    def now(self) -> int:
        """Return microseconds since 1970-01-01T00:00:00Z."""


class IndexedDocument(Struct, frozen=True, kw_only=True, gc=False):
    """A document for the text index, with the scopes that it is listed under."""

    document: Document
    scopes: tuple[str, ...] = ()
    anchor: bool = True  # whether Stage 1 may return it
    aliases: tuple[tuple[str, str], ...] = ()  # other names of it or of its record, each with the scope of that


class Encoder(Protocol):
    """Turns texts into vectors of one fixed length that represent their meaning. Called in a thread of its own."""

    name: str  # vectors of encoders with different names are never compared

    def encode(self, texts: Sequence[str]) -> Sequence[bytes]:
        """Return a vector of norm 1 for each text, as little-endian 32-bit floats."""


class AnchorIndex(Protocol):
    """Finds documents by their words (Stage 1) and by id, and scopes by their key-value pairs.

    Calls that start after `apply` has returned see its effect. After a crash the index may be at an earlier
    `position`. Apply the input again from there; input that was applied before changes nothing.
    """

    async def apply(
        self, documents: Sequence[IndexedDocument], dropped: Sequence[str], position: int, scopes: Collection[str] = ()
    ) -> None:
        """Add or replace documents by id and drop others. All input before `position` is then in the index.

        `scopes` are additional scopes to list: those that only replaced or dropped documents had.
        """

    async def position(self) -> int:
        """Return the input offset from which to apply after opening, or 0 if there is no usable index."""

    async def search(
        self, text: str, depth: int, yield_control: YieldControl | None = None, *, within: Pairs = ()
    ) -> Sequence[Hit]:
        """Return the `depth` best anchors for a query, best first and ties by id. Any text is valid.

        With `within`, only documents count that have all these pairs, each in some scope that they are listed under.

        The work is bounded for a text of any length: if it has too many words, only the rarest count. `yield_control`
        is awaited between pieces of the work. Even so, the result is as of one moment.
        """

    async def ignored_terms(self, text: str) -> int:
        """Return the number of words of a query that a search ignores although some document contains them."""

    async def closeness(self, text: str, ids: Sequence[str]) -> float:
        """Return how close the closest of these documents is to a query, from 0 to 1; see `ranking.closeness`.

        It is 1 if a document has a name that the query mentions, and if closeness cannot be told.
        """

    async def version(self) -> int:
        """Return a number that increases whenever a search could return other hits or scores than before."""

    async def vectors_pending(self) -> int:
        """Return the number of documents that can be found by their words but not yet by their meaning."""

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return the documents that the index has under these ids."""

    async def scopes(self, pairs: Sequence[tuple[str, str]], limit: int, start: str = "") -> Sequence[str]:
        """Return the names of up to `limit` scopes that have all these pairs, in order of name, from `start` on.

        A scope that has been listed stays listed. The key `scope_names.ALIAS` finds by an alias of a document the
        scope that came with it.
        """

    async def known_pairs(self, pairs: Collection[tuple[str, str]]) -> Collection[tuple[str, str]]:
        """Return those of these pairs that a scope has, as `scopes` finds it."""

"""The embedded engine: one process, no server, a folder of files.

Promise: what `publish` has returned for is durable, folded and found by the next question. The log
is the only truth: state and index are built from it when they are missing, behind, damaged or made
with other rules. Not to be used from several threads at once.
"""

import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from stream_car import domains as packs
from stream_car.adapters.embedded.clock import SystemClock
from stream_car.adapters.embedded.index import TantivyIndex
from stream_car.adapters.embedded.log import SqliteLog
from stream_car.adapters.embedded.store import SqliteJournal, SqliteStore, StateFile
from stream_car.codec import encode, encode_mapping
from stream_car.core.documents import Document, Retraction
from stream_car.core.intake import SKEW, Held, held_key
from stream_car.core.rules import Ruleset
from stream_car.core.timeline import Scope, first_time
from stream_car.engine.answers import (
    Answer,
    Audit,
    Evidence,
    Explanation,
    Frontier,
    History,
    Published,
    Receipt,
    Rejected,
    Replayed,
    Resolution,
    Told,
)
from stream_car.engine.cache import BYTES_MAX, Cache
from stream_car.engine.fold import CHANGES, TICK, Effects, Fold, Future, Reading
from stream_car.engine.notices import Notice, Selection
from stream_car.engine.query import DEPTH, Queries
from stream_car.engine.scopes import Parts, Scopes
from stream_car.engine.shard import BATCH_MAX, Handled, Shard
from stream_car.engine.sources import OneShard
from stream_car.engine.state import HEADER, WAITING, Header, Value
from stream_car.engine.stored import decode_value
from stream_car.engine.subscription import Sources, Subscription
from stream_car.errors import Halted, StreamCarError
from stream_car.ports import Clock, Message, Posting
from stream_car.ranking.settings import SETTINGS, Settings
from stream_car.runtime.at_once import at_once
from stream_car.runtime.replay import planned

PUBLISH_MAX = 4000  # messages appended to the log at once
PUBLISH_BYTES_MAX = 16 << 20
REPLAY_MAX = 2000
ALL = 1 << 60

Publishable = Document | Retraction | Mapping[str, object] | bytes | str
T = TypeVar("T")


class _Fed:
    """What goes to the index together: the last word on each id, and every scope that any word gave."""

    def __init__(self) -> None:
        self.postings: dict[str, Posting | None] = {}
        self.scopes: set[str] = set()


class Engine:
    """Publish documents and ask what is in force. Use it as a context manager, or `close` it."""

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        ruleset: Ruleset,
        future: Future = "wait",
        clock: Clock | None = None,
        cache_bytes: int = BYTES_MAX,
        ranking: Settings = SETTINGS,
    ) -> None:
        self.ruleset = ruleset
        self._clock = clock if clock is not None else SystemClock()
        self._due: int | None = None
        self._is_closed = False
        self._appending = threading.Lock()
        self.heard: Callable[[Sequence[Receipt]], None] | None = None
        self._anchor_types = ruleset.anchor_types()
        with ExitStack() as opened:
            self.path = Path(path) if path is not None else _temporary(opened)
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._log = SqliteLog(self.path / "documents.sqlite", self._clock)
            opened.callback(self._log.close)
            self._file = StateFile(self.path / "state.sqlite")
            opened.callback(self._file.close)
            self._index = TantivyIndex(self.path / "index", settings=ranking)
            opened.callback(self._index.close)
            self._journal = SqliteJournal(self._file)
            self._store = SqliteStore(self._file)
            self._fold = Fold(ruleset, future=future)
            self._shard = Shard(shard=0, log=self._log, store=self._store, journal=self._journal, fold=self._fold)
            self._queries = Queries(
                shards=OneShard(self._store),
                index=self._index,
                ruleset=ruleset,
                generation=self._shard.generation,
                cache=Cache(cache_bytes, moved=ranking.moved) if cache_bytes else None,
                moved=ranking.moved,
            )
            self._scopes = Scopes(self._queries, journal=self._journal, log=self._log)
            self._recover()
            self._opened = opened.pop_all()

    @property
    def generation(self) -> str:
        """Names the rules and the format that the state was built with."""
        return self._shard.generation

    @property
    def next_offset(self) -> int:
        """How many records of the log have been applied."""
        return self._shard.next_offset

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the files go; again is harmless. A temporary engine's files are removed."""
        self._is_closed = True
        self._opened.close()

    def _require_open(self) -> None:
        if self._is_closed:
            raise StreamCarError(f"this engine is closed; open its folder again: {self.path}")

    def _recover(self) -> None:
        try:
            at_once(self._shard.start())
        except Halted as halted:
            if halted.code not in ("generation", "damaged", "foreign"):
                raise
            self._reset()
        if not self.next_offset or at_once(self._index.position()) > self._end():
            self._index.reset()  # made with another state, or another log
        self._apply(self._end())
        self._tick_if_due()

    def _end(self) -> int:
        return at_once(self._log.range(0))[1]

    def _reset(self) -> None:
        """Forget everything that follows from the log."""
        self._file.reset()
        self._index.reset()
        at_once(self._shard.start())

    def _apply(self, first: int) -> list[Receipt]:
        """Bring state and index to the end of the log, if need be anew; receipts from record `first` on."""
        try:
            return self._receipts(first)
        except Halted as halted:
            self._reset_if_damaged(halted)
            return self._receipts(first)

    def _reset_if_damaged(self, halted: Halted) -> None:
        if halted.code != "damaged":
            raise halted
        self._log.verify()  # nothing is given up for a log that could not replace it
        self._reset()

    def _receipts(self, first: int) -> list[Receipt]:
        receipts = []
        while handled := self._step(BATCH_MAX):
            receipts += [self._receipt(one) for one in handled if one.record.offset >= first]
        self._note_due()
        return receipts

    def _catch_up_index(self, upto: int) -> None:
        """Feed the index what it lacks of the records that the state has applied already."""
        at = at_once(self._index.position())
        while at < upto:
            records = at_once(self._log.fetch(0, at, min(REPLAY_MAX, upto - at)))
            fed = _Fed()
            for record in records:
                read = self._shard.fold.read(record)
                said = read.statement
                if said is None:
                    continue
                fed.scopes.update(read.scopes)
                held = self.standing(said.id)
                if held is not None and held.offset == record.offset:
                    fed.postings[said.id] = self._posting(said, held.scopes) if isinstance(said, Document) else None
            at = records[-1].offset + 1
            self._feed(fed, at)

    def standing(self, name: str) -> Held | None:
        """What is known of an id: the revision that stands, whether it is retracted or waits."""
        value = self._value(held_key(name))
        return value if isinstance(value, Held) else None

    def header(self) -> Header:
        """What the engine counts: documents, those that wait, outcomes."""
        value = self._value(HEADER)
        return value if isinstance(value, Header) else Header()

    def last_change(self) -> int:
        """The number of the last change told."""
        return at_once(self._journal.last(0))

    def forgotten(self) -> int:
        """Changes up to this number may no longer be kept."""
        return at_once(self._journal.forgotten(0))

    def forget_changes(self, keep: int, limit: int) -> bool:
        """Let go of changes beyond the last `keep`, at most `limit` now; whether there may be more to let go of."""
        upto = self.last_change() - keep
        return upto > self.forgotten() and at_once(self._journal.forget(0, CHANGES, upto, limit)) == limit

    def subscription(self, selection: Selection, *, cursor: int, with_snapshot: bool) -> Subscription:
        """A place in the stream of changes; `pull` from it."""
        parts = frozenset(self.ruleset.read_part(key, value) for key, value in selection.parts)
        sources = Sources(
            shards=OneShard(self._store),
            listing=self._store,
            journal=self._journal,
            index=self._index,
            ruleset=self.ruleset,
            generation=self.generation,
        )
        chosen = msgspec.structs.replace(selection, parts=parts)
        return Subscription(sources, chosen, cursor=cursor, with_snapshot=with_snapshot)

    def pull(self, subscription: Subscription) -> tuple[list[Notice], bool]:
        """The next notices, and whether the subscription has caught up."""
        return at_once(subscription.step()), at_once(subscription.has_caught_up())

    def _value(self, key: bytes) -> Value:
        _, found = at_once(self._store.peek(0, [key]))
        return decode_value(key, found.get(key))

    def _posting(self, document: Document, scopes: tuple[str, ...]) -> Posting:
        return Posting(document=document, scopes=scopes, anchor=document.type in self._anchor_types)

    def _feed(self, fed: "_Fed", position: int) -> None:
        postings = [posting for posting in fed.postings.values() if posting is not None]
        dropped = [name for name, posting in fed.postings.items() if posting is None]
        at_once(self._index.apply(postings, dropped, position, fed.scopes))

    def _step(self, most: int) -> list[Handled[Reading, Effects]]:
        """Apply some of what the log holds beyond the state, and make it findable; nothing at the end of the log."""
        if not self._shard.is_started:
            at_once(self._shard.start())
        self._catch_up_index(self.next_offset)
        handled = at_once(self._shard.run_once(most))
        fed = _Fed()
        for one in handled:
            self._note(one)
            said = one.read.statement
            if one.effects.outcome in ("accepted", "pending") and isinstance(said, Document):
                fed.scopes.update(one.read.scopes)
                fed.postings[said.id] = self._posting(said, one.read.scopes)
            elif one.effects.outcome == "retracted" and said is not None:
                fed.postings[said.id] = None
        if handled:
            self._feed(fed, self.next_offset)
            if self.heard is not None:
                self.heard([self._receipt(one) for one in handled])
        return handled

    def append(self, messages: Sequence[Message]) -> int:
        """Keep messages durably without applying them; the offset of the first.

        The one call that another thread may make: it waits for the disk, and nothing else does.
        """
        with self._appending:
            return at_once(self._log.append(0, messages))

    def advance(self, most: int) -> bool:
        """Apply up to `most` records of the log; whether there were any. Their receipts go to `heard`."""
        try:
            handled = self._step(most)
        except Halted as halted:
            self._reset_if_damaged(halted)
            handled = self._step(most)
        self._note_due()
        return bool(handled)

    def is_due(self) -> bool:
        """Whether a waiting document's time has come; the next record of the log releases it."""
        return self._due is not None and self._clock.now() >= self._due

    def _note(self, handled: Handled[Reading, Effects]) -> None:
        if self._queries.cache is not None:
            self._queries.cache.note(handled.record.offset, handled.effects.touched)

    def _append(self, messages: Sequence[Message]) -> list[Receipt]:
        return self._apply(self.append(messages))

    def _note_due(self) -> None:
        queue = self._value(WAITING)
        first = first_time(queue) if isinstance(queue, Scope) else None
        self._due = first - SKEW if first is not None else None

    def _tick_if_due(self) -> None:
        if self.is_due():
            self._append([Message(value=None, headers=(TICK,))])

    def _receipt(self, handled: Handled[Reading, Effects]) -> Receipt:
        effects, said = handled.effects, handled.read.statement
        document = said if isinstance(said, Document) else None
        refused = effects.rejection
        joins_none = document is not None and not effects.scopes and effects.outcome in ("accepted", "pending")
        return Receipt(
            offset=handled.record.offset,
            outcome=effects.outcome,
            id=said.id if said is not None else (refused.id if refused is not None else None),
            revision=said.revision if said is not None else None,
            type=document.type if document is not None else None,
            code=refused.code if refused is not None else None,
            reason=refused.reason if refused is not None else None,
            scopes=effects.scopes,
            lacking=self.ruleset.lacking(document) if joins_none and document is not None else (),
        )

    def _ask(self, question: Callable[[], Coroutine[object, object, T]]) -> T:
        """The answer, after what is due; a state or index found damaged is built anew from the log, once."""
        self._require_open()
        self._tick_if_due()
        try:
            return at_once(question())
        except Halted as halted:
            self._reset_if_damaged(halted)
            self._apply(self._end())
            return at_once(question())

    def publish(self, documents: Iterable[Publishable]) -> Published:
        """Keep documents durably and apply them; a receipt for each, in order.

        A document is a `Document`, a mapping, or JSON as text or bytes. Bad input is no error here:
        its receipt says `rejected`, with a code, and its bytes are kept.
        """
        self._require_open()
        receipts: list[Receipt] = []
        for messages in _batches(documents):
            receipts += self._append(messages)
        return Published(receipts=tuple(receipts))

    def retract(self, name: str, revision: int | None = None) -> Receipt:
        """Say that a document should never have been said: its revision, or the one now stored."""
        return self.publish([Retraction(id=name, revision=revision)]).receipts[0]

    def query(
        self, text: str, *, k: int = 5, depth: int = DEPTH, as_of: int | None = None, budget: int | None = None
    ) -> Answer:
        """The documents in force for a question, best first, each with the path that leads to it."""
        return self._ask(lambda: self._queries.query(text, k=k, depth=depth, as_of=as_of, budget=budget))

    def relevance(self, text: str, k: int = 5) -> tuple[Evidence, ...]:
        """What plain search would answer, void or not: Stage 1 alone."""
        return self._ask(lambda: self._queries.relevance(text, k))

    def resolve(self, names: Sequence[str], *, as_of: int | None = None) -> tuple[Resolution, ...]:
        """What controls these now: document ids, chunk ids (`doc#chunk`) or records."""
        return self._ask(lambda: self._queries.resolve(names, as_of=as_of))

    def check(
        self, ids: Sequence[str], *, question: str | None = None, depth: int = 20, as_of: int | None = None
    ) -> Audit:
        """Whether a retrieved set is safe by Theorem 4, and what would repair it."""
        return self._ask(lambda: self._queries.check(ids, question=question, depth=depth, as_of=as_of))

    def frontier(self, parts: Parts, *, as_of: int | None = None) -> tuple[Frontier, ...]:
        """The active members of every scope that has these `key=value` pairs."""
        return self._ask(lambda: self._scopes.frontier(parts, as_of=as_of))

    def history(self, parts: Parts) -> tuple[History, ...]:
        """The timeline of every scope that has these pairs: from when each member held, and what ended it."""
        return self._ask(lambda: self._scopes.history(parts))

    def changes(self, parts: Parts | None = None, *, after: int = 0, limit: int = 1000) -> tuple[Told, ...]:
        """Frontier changes in the order in which they happened, from the one after `after` on."""
        return self._ask(lambda: self._scopes.changes(parts, after=after, limit=limit))

    def explain(self, name: str, *, as_of: int | None = None) -> Explanation:
        """Why a document is or is not active, and what controls it."""
        return self._ask(lambda: self._scopes.explain(name, as_of=as_of))

    def rejected(self, *, after: int = 0, limit: int = 100) -> tuple[Rejected, ...]:
        """Input that was refused, with its bytes, oldest first."""
        return self._ask(lambda: self._scopes.rejected(after=after, limit=limit))

    def replay(
        self, mended: Mapping[int, bytes] | None = None, *, only: Collection[int] = (), trial: bool = False
    ) -> tuple[Replayed, ...]:
        """Send refused input again, each at most once: as it came, or with mended bytes by offset.

        Without `mended` or `only` all refused input is meant. What would be refused again is not sent, and
        neither is anything in a `trial`.
        """
        self._require_open()
        plan = planned(
            self._log, self._fold, self.standing, [one.offset for one in self.rejected(limit=ALL)], mended or {}, only
        )
        receipts = self._append(list(plan.sent.values())) if plan.sent and not trial else []
        return plan.told(dict(zip(plan.sent, receipts, strict=False)))

    def pending(self) -> tuple[tuple[str, int, int], ...]:
        """Documents that wait for their time: id, revision, time."""
        return self._ask(self._scopes.pending)


def _temporary(opened: ExitStack) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="stream-car-"))
    opened.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _batches(documents: Iterable[Publishable]) -> Iterator[list[Message]]:
    batch: list[Message] = []
    size = 0
    for document in documents:
        message = Message(value=_bytes(document))
        batch.append(message)
        size += len(message.value or b"")
        if len(batch) == PUBLISH_MAX or size > PUBLISH_BYTES_MAX:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _bytes(document: Publishable) -> bytes:
    if isinstance(document, bytes):
        return document
    if isinstance(document, str):
        return document.encode("utf-8", "surrogatepass")
    if isinstance(document, Document):
        return encode(document)
    if isinstance(document, Retraction):
        revision = {} if document.revision is None else {"revision": document.revision}
        return encode_mapping({"id": document.id, **revision, "retracted": True})
    if isinstance(document, Mapping):
        return encode_mapping(document)
    raise StreamCarError(f"cannot publish a {type(document).__name__}; give a Document, a mapping or JSON")


def open_engine(
    path: Path | str | None = None,
    *,
    domains: Sequence[str | Path] = (),
    future: Future = "wait",
    ranking: Settings = SETTINGS,
) -> Engine:
    """An engine over a folder, which is made if need be; without a path a temporary one.

    `domains` are names of shipped rule packs or paths of pack files; none means all shipped packs.
    `future="apply"` makes documents count whatever their date, as a closed collection needs it.
    `ranking` holds the numbers that Stage 1 and the order of groups go by.
    """
    return Engine(path, ruleset=packs.load(domains), future=future, ranking=ranking)


__all__ = ["Engine", "Publishable", "at_once", "open_engine"]

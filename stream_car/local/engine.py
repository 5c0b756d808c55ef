"""The embedded engine: one process, no server, a folder of files.

Promise: what `publish` has returned for is durable, folded and found by the next question. The log
is the only truth: state and index are built from it when they are missing, behind, damaged or of
another release. The folder remembers its rules; only a rebuild changes them, in one step. Not to be
used from several threads at once, `append` apart.
"""

import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from stream_car.adapters.search import encoders
from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.codec import Publishable, Publishables, encode_document, iterate_documents
from stream_car.core.documents import Retraction
from stream_car.core.revisions import SKEW
from stream_car.core.rules import Ruleset
from stream_car.core.stored import Scope
from stream_car.core.timeline import first_time
from stream_car.errors import Halted, StreamCarError
from stream_car.local import generation as generations
from stream_car.local.generation import Generation
from stream_car.local.projection import Built
from stream_car.local.questions import Question, Questions
from stream_car.local.rebuild import Rebuild
from stream_car.local.replay import Plan, planned, refused_among
from stream_car.local.run_sync import at_once
from stream_car.local.system_clock import SystemClock
from stream_car.local.tellings import Tellings
from stream_car.ports import Clock, Encoder, Message
from stream_car.processing.effects import DecodedRecord, Effects, Future
from stream_car.processing.fold import TICK
from stream_car.processing.receipts import Receipt, receipt_of
from stream_car.processing.shard import BATCH_MAX, AppliedRecord
from stream_car.processing.state import PENDING
from stream_car.queries.answers import Published, Replayed
from stream_car.queries.cache import BYTES_MAX
from stream_car.queries.read_options import DEFAULT_OPTIONS, ReadOptions, StageTimer, untimed
from stream_car.ranking.settings import SETTINGS, Settings

LOG = "documents.sqlite"
PUBLISH_MAX = 4000  # messages appended to the log at once
PUBLISH_BYTES_MAX = 16 << 20

T = TypeVar("T")


class _Switched(Exception):
    """Other rules answer by now."""


class Engine(Questions, Tellings):
    """Publish documents and ask what is in force. Use it as a context manager, or `close` it."""

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        ruleset: Ruleset | None = None,
        packs: Sequence[str | Path] = (),
        future: Future | None = None,
        clock: Clock | None = None,
        cache_bytes: int = BYTES_MAX,
        ranking: Settings = SETTINGS,
        encoder: Encoder | None = None,
    ) -> None:
        self._clock = clock if clock is not None else SystemClock()
        self._cache_bytes = cache_bytes
        self._ranking = ranking
        self._encoder = encoder
        self._due: int | None = None
        self._is_closed = False
        self._appending = threading.Lock()
        self.heard: Callable[[Sequence[Receipt]], None] | None = None
        with ExitStack() as opened:
            self.path = Path(path) if path is not None else _temporary(opened)
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._log = SqliteLog(self.path / LOG, self._clock)
            opened.callback(self._log.close)
            self.going_by = self._agreed(ruleset, packs, future)
            generations.sweep(self.path, self.going_by)
            self._built = self._made(self.going_by)
            opened.callback(self._let_go)
            self._built.begin()
            self._apply(self._end())
            self._tick_if_due()
            self._opened = opened.pop_all()

    def _agreed(self, ruleset: Ruleset | None, packs: Sequence[str | Path], future: Future | None) -> Generation:
        known = generations.remembered(self.path)
        wanted = generations.wanted(known, ruleset, packs, future)
        found = generations.agreed(known, wanted, is_empty=not self._end())
        if found != known:
            generations.remember(self.path, found)
        return found

    def _made(self, generation: Generation) -> Built:
        folder = self.path / generation.folder
        return Built(
            folder,
            self._log,
            generation.ruleset(),
            generation.future,
            ranking=self._ranking,
            encoder=self._encoder,
            cache_bytes=self._cache_bytes,
        )

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _let_go(self) -> None:
        self._built.close()  # whichever generation it is by then

    def close(self) -> None:
        """Let the files go; again is harmless. A temporary engine's files are removed."""
        self._is_closed = True
        self._opened.close()

    def _require_open(self) -> None:
        if self._is_closed:
            raise StreamCarError(f"this engine is closed; open its folder again: {self.path}")

    def _end(self) -> int:
        return at_once(self._log.range(0))[1]

    def _apply(self, first: int) -> list[Receipt]:
        """Bring state and index to the end of the log, if need be anew; receipts from record `first` on."""
        try:
            return self._receipts(first)
        except Halted as halted:
            self._built.reset_if_damaged(halted)
            return self._receipts(first)

    def _receipts(self, first: int) -> list[Receipt]:
        receipts = []
        while handled := self._step(BATCH_MAX):
            receipts += [self._receipt(one) for one in handled if one.record.offset >= first]
        self._note_due()
        return receipts

    def _step(self, most: int) -> list[AppliedRecord[DecodedRecord, Effects]]:
        handled = self._built.step(most)
        if handled and self.heard is not None:
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
            self._built.reset_if_damaged(halted)
            handled = self._step(most)
        self._note_due()
        return bool(handled)

    def is_due(self) -> bool:
        """Whether a waiting document's time has come; the next record of the log releases it."""
        return self._due is not None and self._clock.now() >= self._due

    def _append(self, messages: Sequence[Message]) -> list[Receipt]:
        return self._apply(self.append(messages))

    def _note_due(self) -> None:
        queue = self._built.value(PENDING)
        first = first_time(queue) if isinstance(queue, Scope) else None
        self._due = first - SKEW if first is not None else None

    def _tick_if_due(self) -> None:
        if self.is_due():
            self._append([Message(value=None, headers=(TICK,))])

    def _receipt(self, handled: AppliedRecord[DecodedRecord, Effects]) -> Receipt:
        return receipt_of(handled.record.offset, handled.decoded.statement, handled.effects, self.ruleset)

    def _ask(self, question: Question[T]) -> T:
        """The answer, after what is due; a state or index found damaged is built anew from the log, once."""
        self._require_open()
        self._tick_if_due()
        try:
            return at_once(question(self._built, DEFAULT_OPTIONS))
        except Halted as halted:
            self._mend(halted)
            return at_once(question(self._built, DEFAULT_OPTIONS))

    async def gently(
        self, question: Question[T], give_way: Callable[[], Awaitable[bool]], timed: StageTimer = untimed
    ) -> T:
        """The same answer, in pieces: `give_way` is awaited between them, and others may go first meanwhile.

        The answer is of one moment all the same: where something was applied meanwhile it begins again.
        """
        while True:
            self._require_open()
            self._tick_if_due()
            built = self._built

            async def give_way_to_others(built: Built = built) -> bool:
                has_waited = await give_way()
                if self._built is not built:
                    raise _Switched
                return has_waited

            try:
                return await question(built, ReadOptions(yield_control=give_way_to_others, timer=timed))
            except _Switched:
                continue
            except Halted as halted:
                self._mend(halted)
                return at_once(question(self._built, DEFAULT_OPTIONS))

    def _mend(self, halted: Halted) -> None:
        self._built.reset_if_damaged(halted)
        self._apply(self._end())

    def publish(self, documents: Publishables) -> Published:
        """Keep documents durably and apply them; a receipt for each, in order.

        A document is a `Document`, a mapping, or JSON as text or bytes; one may be given alone. Bad input is no
        error here: its receipt says `rejected`, with a code, and its bytes are kept.
        """
        self._require_open()
        receipts: list[Receipt] = []
        for messages in _batches(iterate_documents(documents)):
            receipts += self._append(messages)
        return Published(receipts=tuple(receipts))

    def retract(self, name: str, revision: int | None = None) -> Receipt:
        """Say that a document should never have been said: its revision, or the one now stored."""
        return self.publish([Retraction(id=name, revision=revision)]).receipts[0]

    def settle(self) -> None:
        """Wait until no vector is behind; without an encoder nothing ever is."""
        self._require_open()
        self._built.index.settle()

    def replay(
        self, mended: Mapping[int, bytes] | None = None, *, only: Collection[int] = (), trial: bool = False
    ) -> tuple[Replayed, ...]:
        """Send refused input again, each at most once: as it came, or with mended bytes by offset.

        Without `mended` or `only` all refused input is meant. What would be refused again is not sent, and
        neither is anything in a `trial`.
        """
        plan = self.replaying(mended or {}, only)
        receipts = self._append(list(plan.sent.values())) if plan.sent and not trial else []
        return plan.told(dict(zip(plan.sent, receipts, strict=False)))

    def replaying(self, mended: Mapping[int, bytes], only: Collection[int]) -> Plan:
        """What `replay` would send."""
        rejected = self._ask(lambda built, _: refused_among(built.journal, {*only, *mended}))
        return planned(self._log, self._built.fold, self.standing, rejected, mended, only)

    def rebuild(
        self, packs: Sequence[str | Path] | None = None, *, ruleset: Ruleset | None = None, future: Future | None = None
    ) -> Rebuild:
        """Begin to build another generation beside this one, from the log; see `Rebuild`.

        Without `packs` those that this folder goes by are read again, as they are now; what was given as a rule set
        stays as it is. With `ruleset`, `packs` are those of its packs that can be read again the next time. The
        engine goes on answering and publishing under the old rules until `Rebuild.switch`.
        """
        self._require_open()
        next_one = generations.following(self.going_by, ruleset, packs, future)
        return Rebuild(self._made(next_one), self._built, next_one, self._switch)

    def _switch(self, generation: Generation, built: Built) -> None:
        """From now on another generation answers. What is remembered on disk decides; the rest follows.

        The old one first comes to where the new one is, so that every record has been heard of.
        """
        while self.next_offset < built.next_offset:
            self._step(min(BATCH_MAX, built.next_offset - self.next_offset))
        generations.remember(self.path, generation)
        self._built, self.going_by = built, generation
        self._note_due()


def _temporary(opened: ExitStack) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="stream-car-"))
    opened.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _batches(documents: Iterable[Publishable]) -> Iterator[list[Message]]:
    batch: list[Message] = []
    size = 0
    for document in documents:
        message = Message(value=encode_document(document))
        batch.append(message)
        size += len(message.value or b"")
        if len(batch) == PUBLISH_MAX or size > PUBLISH_BYTES_MAX:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def open_engine(
    path: Path | str | None = None,
    *,
    domains: Sequence[str | Path] = (),
    future: Future | None = None,
    ranking: Settings = SETTINGS,
    encoder: Encoder | str | Path | None = None,
) -> Engine:
    """An engine over a folder, which is made if need be; without a path a temporary one.

    `packs` are names of shipped rule packs or paths of pack files; none means those that the folder goes
    by, and for a new one all shipped packs. `future="apply"` makes documents count whatever their date, as
    a closed collection needs it. `ranking` holds the numbers that Stage 1 and the order of groups go by.
    With an `encoder`, one's own or a model's folder, Stage 1 also compares meanings, by vectors that are made in
    the background.
    """
    chosen = encoders.encoder(encoder) if isinstance(encoder, str | Path) else encoder
    return Engine(path, packs=domains, future=future, ranking=ranking, encoder=chosen)

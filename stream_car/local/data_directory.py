"""A data directory: the log of documents, the rules, and the projection that follows from both.

Promise: what `publish` has returned for is durable, applied, and found by the next question. The log is the only truth:
a projection that is missing, out of date, damaged or of another release is built from it. The directory remembers its
rules; only a rebuild changes them, in one step. Not to be used from several threads at once, except `append`.
"""

import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.adapters.system_clock import SystemClock
from stream_car.api.replay_plan import ReplayPlan
from stream_car.core.revisions import SKEW
from stream_car.core.rules import Ruleset
from stream_car.core.stored import Scope, StoredDocument
from stream_car.core.timeline import first_time
from stream_car.errors import Halted, InvalidRequest
from stream_car.local import generation as generations
from stream_car.local.generation import LOG, Generation
from stream_car.local.projection import Projection
from stream_car.local.rebuild import NewGeneration
from stream_car.local.replay import plan_replay, rejected_offsets
from stream_car.local.run_sync import run_sync
from stream_car.ports import Clock, Encoder, MarkedLog, Message
from stream_car.processing.effects import DecodedRecord, Effects, Future
from stream_car.processing.fold import CHANGES, TICK
from stream_car.processing.headers import Header
from stream_car.processing.receipts import Receipt, receipts_of
from stream_car.processing.shard import BATCH_MAX, AppliedRecord
from stream_car.processing.state import PENDING
from stream_car.queries.cache import BYTES_MAX, AnswerCache
from stream_car.ranking.settings import SETTINGS, Settings
from stream_car.subscriptions.events import Notice, Selection
from stream_car.subscriptions.subscription import SubscriptionReader

T = TypeVar("T")


class DataDirectory:
    """The log, rules and projection of one folder; without a path, of a temporary one. `close` it."""

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        ruleset: Ruleset | None = None,
        rules: Sequence[str | Path] = (),
        future: Future | None = None,
        clock: Clock | None = None,
        cache_bytes: int = BYTES_MAX,
        ranking: Settings = SETTINGS,
        encoder: Encoder | None = None,
    ) -> None:
        """Open a folder, which is made if need be.

        Args:
            ruleset: rules in hand, instead of `rules`.
            rules: names of shipped rule packs, or paths of pack files; none means those that the folder was built with.
            future: whether documents ahead of their time wait for it or count at once; `None` as the folder was built.

        Raises:
            InvalidRequest: the folder was built with other rules (`rules`), or cannot be made (`path`).
            Busy: another process has the folder open.
        """
        self._clock = clock if clock is not None else SystemClock()
        self._cache_bytes = cache_bytes
        self._ranking = ranking
        self._encoder = encoder
        self._due: int | None = None
        self._is_closed = False
        self._appending = threading.Lock()
        self.on_receipts: Callable[[Sequence[Receipt]], None] | None = None
        with _reported_errors(path), ExitStack() as opened:
            self.path = Path(path) if path is not None else _temporary(opened)
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._require_log()
            self._log = SqliteLog(self.path / LOG, self._clock)
            opened.callback(self._log.close)
            self.built_with = self._choose(ruleset, rules, future)
            generations.remove_abandoned(self.path, self.built_with)
            self.projection = self._project(self.built_with)
            opened.callback(lambda: self.projection.close())  # noqa: PLW0108  whichever it is by then
            self.projection.begin()
            self._apply(self._end(), self._end())
            self._note_due()
            self._tick_if_due()
            self._opened = opened.pop_all()

    def _require_log(self) -> None:
        """Raise `Halted` (`lost_history`) if the log is gone, but not what was built from it."""
        if (self.path / LOG).exists():
            return
        for name in (generations.BUILT, generations.FILE):
            if (self.path / name).exists():
                cure = (
                    f"Restore a backup, or remove `{generations.BUILT}` and {generations.FILE} to begin with no data."
                )
                raise Halted("lost_history", f"{LOG} is missing from {self.path}, but `{name}` is there. {cure}")

    def _choose(self, ruleset: Ruleset | None, rules: Sequence[str | Path], future: Future | None) -> Generation:
        known = generations.read_generation(self.path, self._log)
        requested = generations.request(known, ruleset, rules, future)
        chosen = generations.choose(known, requested, is_empty=not self._end())
        if chosen != known or self._log.rules() is None:
            generations.write_generation(self.path, self._log, chosen)
        elif not generations.has_copy(self.path, chosen):
            generations.write_copy(self.path, chosen)
        return chosen

    def _project(self, generation: Generation) -> Projection:
        return Projection(
            self.path / generation.folder,
            self._log,
            generation.ruleset(),
            generation.future,
            ranking=self._ranking,
            encoder=self._encoder,
            cache_bytes=self._cache_bytes,
        )

    def close(self) -> None:
        """Close the files; closing again is harmless. A temporary folder is removed."""
        self._is_closed = True
        self._opened.close()

    def require_open(self) -> None:
        """Raise `InvalidRequest` (`closed`) after `close`."""
        if self._is_closed:
            raise InvalidRequest("closed", f"This engine is closed. Open its folder again: {self.path}.")

    # What it is

    @property
    def ruleset(self) -> Ruleset:
        """The rules in force."""
        return self.projection.ruleset

    @property
    def generation(self) -> str:
        """The name of the rules and the format that the state was built with."""
        return self.projection.shard.generation

    @property
    def next_offset(self) -> int:
        """How many records of the log have been applied."""
        return self.projection.next_offset

    @property
    def lag(self) -> int:
        """How many records of the log have not been applied yet."""
        return self.projection.end - self.next_offset

    @property
    def marks(self) -> MarkedLog:
        """What tells this log from others."""
        return self._log

    @property
    def clock_lead(self) -> int:
        """How far the last record is ahead of the clock, in microseconds."""
        return self._log.clock_lead

    @property
    def index_lag(self) -> int:
        """How many records would be indexed again after a crash."""
        return self.next_offset - self.projection.index.committed

    @property
    def cache(self) -> AnswerCache | None:
        """The answers that are remembered."""
        return self.projection.queries.cache

    def stored(self, name: str) -> StoredDocument | None:
        """What is known of an id: its current revision, and whether it is retracted or pending."""
        return self.projection.stored(name)

    def header(self) -> Header:
        """The counts of the state: documents, pending ones, outcomes."""
        return self.projection.header()

    # Publishing

    def publish(self, messages: Sequence[Message]) -> list[Receipt]:
        """Store messages durably and apply them; their receipts, in order."""
        first = self.append(messages)
        return self._apply(first, first + len(messages))

    def append(self, messages: Sequence[Message]) -> int:
        """Store messages durably without applying them; the offset of the first.

        The one call that another thread may make: it waits for the disk, and nothing else does.
        """
        with self._appending:
            return run_sync(self._log.append(0, messages))

    def advance(self, limit: int) -> bool:
        """Apply up to `limit` records of the log; whether there were any. Receipts go to `on_receipts`."""
        try:
            return bool(self._step(limit))
        except Halted as halted:
            self.projection.reset_if_damaged(halted)
            return bool(self._step(limit))

    def is_due(self) -> bool:
        """Whether the time of a pending document has come; the next record of the log releases it."""
        return self._due is not None and self._clock.now() >= self._due

    def _end(self) -> int:
        return run_sync(self._log.range(0))[1]

    def _apply(self, first: int, end: int) -> list[Receipt]:
        """Apply the log up to `end`, or further, and return the receipts from record `first` on.

        A damaged projection is built from the log.
        """
        try:
            return self._receipts(first, end)
        except Halted as halted:
            self.projection.reset_if_damaged(halted)
            return self._receipts(first, end)

    def _receipts(self, first: int, end: int) -> list[Receipt]:
        receipts = []
        while applied := self._step(BATCH_MAX):
            receipts += receipts_of(applied, self.projection.ruleset, first=first)
            if applied[-1].record.offset + 1 >= end:
                break
        return receipts

    def _step(self, limit: int) -> list[AppliedRecord[DecodedRecord, Effects]]:
        applied = self.projection.step(limit)
        if applied and self.on_receipts is not None:
            self.on_receipts(receipts_of(applied, self.projection.ruleset))
        if any(PENDING in record.effects.touched for record in applied):
            self._note_due()
        return applied

    def _note_due(self) -> None:
        queue = self.projection.value(PENDING)
        first = first_time(queue) if isinstance(queue, Scope) else None
        self._due = first - SKEW if first is not None else None

    def _tick_if_due(self) -> None:
        if self.is_due():
            self.publish([Message(value=None, headers=(TICK,))])

    # Reading

    def prepare_read(self) -> Projection:
        """Return what questions read now, with every document that is due released."""
        self.require_open()
        self._tick_if_due()
        return self.projection

    def recover(self, halted: Halted) -> Projection:
        """Build a damaged projection from the log; any other error is raised again."""
        self.projection.reset_if_damaged(halted)
        self._apply(self._end(), self._end())
        return self.projection

    def settle(self) -> None:
        """Wait until every vector is made; without an encoder there are none."""
        self.require_open()
        self.projection.index.settle()

    # Changes

    def last_change(self) -> int:
        """The number of the last change."""
        return run_sync(self.projection.change_log.last(0))

    def changes_deleted_up_to(self) -> int:
        """Changes up to this number may be gone."""
        return run_sync(self.projection.change_log.deleted_up_to(0))

    def delete_changes(self, keep: int, limit: int) -> bool:
        """Delete changes beyond the last `keep`, at most `limit` now; whether there may be more to delete."""
        up_to = self.last_change() - keep
        if up_to <= self.changes_deleted_up_to():
            return False
        return run_sync(self.projection.change_log.delete_up_to(0, CHANGES, up_to, limit)) == limit

    def subscription(self, selection: Selection, *, cursor: Sequence[int], with_snapshot: bool) -> SubscriptionReader:
        """Return a place in the stream of changes; `pull` from it."""
        return SubscriptionReader(self.projection.sources(), selection, cursor=cursor, with_snapshot=with_snapshot)

    def pull(self, reader: SubscriptionReader) -> tuple[list[Notice], bool]:
        """Return the next notices, and whether the reader has caught up; one of another generation must restart."""
        if reader.generation == self.generation:
            reader.sources = self.projection.sources()  # the same rules may have been built again meanwhile
        return run_sync(reader.step()), run_sync(reader.has_caught_up())

    # Maintenance

    def plan_replay(self, corrected: Mapping[int, bytes], offsets: Collection[int]) -> ReplayPlan:
        """Return what to send of the rejected inputs that are named."""
        self.require_open()
        rejected = rejected_offsets(self.projection.change_log, {*offsets, *corrected})
        return plan_replay(self._log, self.projection.fold, self.stored, rejected, corrected, offsets)

    def rebuild(
        self, rules: Sequence[str | Path] | None = None, *, ruleset: Ruleset | None = None, future: Future | None = None
    ) -> NewGeneration:
        """Begin to build another generation beside this one, from the log.

        Without `rules`, those of this folder are read again as they are now; rules that were given as a `ruleset` stay
        as they are. With a `ruleset`, `rules` are those of its packs that can be read again next time. Publishing and
        answering continue under the old rules until `NewGeneration.switch`.
        """
        self.require_open()
        successor = generations.successor(self.built_with, ruleset, rules, future)
        return NewGeneration(self._project(successor), self.projection, successor, self._switch)

    def _switch(self, generation: Generation, projection: Projection) -> None:
        """From now on another generation answers. What is remembered on disk decides; the rest follows.

        The old one is first brought to where the new one is, so that every record has its receipt.
        """
        while self.next_offset < projection.next_offset:
            self._step(min(BATCH_MAX, projection.next_offset - self.next_offset))
        generations.write_generation(self.path, self._log, generation)
        self.projection, self.built_with = projection, generation
        self._note_due()


@contextmanager
def _reported_errors(path: Path | str | None) -> Iterator[None]:
    """Raise `InvalidRequest` (`path`) for what the system reports about a folder."""
    try:
        yield
    except OSError as error:
        is_file = isinstance(error, FileExistsError | NotADirectoryError)
        reason = "It is not a folder" if is_file else error.strerror or str(error)
        cure = "Check its permissions, or choose another folder."
        raise InvalidRequest(
            "path", f"{path or 'The temporary folder'} cannot hold the data. {reason}. {cure}"
        ) from error


def _temporary(opened: ExitStack) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="stream-car-"))
    opened.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder

"""Check a data directory: its rules, the hash chain of the log, the state against a replay, the index against the
state.

Promise: nothing is changed. The folder must not be in use. Cost: the log is read and folded once, in a temporary
folder; memory does not grow with the log.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice, zip_longest
from pathlib import Path

from stream_car.adapters.database import find_fault
from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.search.index_faults import find_index_fault
from stream_car.adapters.sqlite.journal import SqliteJournal
from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.adapters.sqlite.read_only import ReadOnlyState
from stream_car.adapters.sqlite.state_file import StateFile
from stream_car.adapters.sqlite.store import SqliteStore
from stream_car.adapters.system_clock import CLOCK_CURE, SystemClock, clock_notice
from stream_car.core.revisions import document_key
from stream_car.core.scope_names import scope_parts
from stream_car.core.stored import StoredDocument
from stream_car.errors import Halted, InvalidRequest, InvalidRules, StreamCarError, Unavailable
from stream_car.files.seals import compare_with_seal
from stream_car.local.generation import BUILT, FILE, LOG, Generation, has_copy, read_generation, successor
from stream_car.local.run_sync import run_sync
from stream_car.processing.findings import Check, Finding, damaged, notice, ok
from stream_car.processing.fold import Fold
from stream_car.processing.index_feed import is_indexed
from stream_car.processing.shard import BATCH_MAX, Shard
from stream_car.processing.state import decode_value
from stream_car.webhooks.in_service import FOLDER as WEBHOOKS
from stream_car.webhooks.outbox import SET_ASIDE

RESTORE = "Restore a backup: stream-car restore FOLDER"
REBUILD = "Remove the folder `built`. The next command builds it from the log."
SET_ASIDE_CURE = "The service sets it aside when it starts next. See what changed: stream-car changes --since DATE"
DISK_FACTOR = 2  # times the size of the log: what a rebuild needs on disk
OUTBOX_END = ".sqlite"
NAMES_MAX = 256  # documents compared with the index at a time

Progress = Callable[[int, int], None]


def examine(folder: Path, progress: Progress = lambda done, total: None) -> Iterator[Finding]:
    """Yield the finding of each check, as far as the checks before it allow.

    `progress` is called with the number of records replayed and their total.

    Raises:
        InvalidRequest: the folder has no log (`no_data`).
        Busy: another process has the folder open.
        Unavailable: a file cannot be read now.
    """
    if not (folder / LOG).is_file():
        if not (folder / BUILT).exists() and not (folder / FILE).exists():
            raise InvalidRequest("no_data", f"There is nothing in {folder} yet. Publish something first.")
        yield _damaged("log", f"{LOG} is missing, but what was built from it is there.", RESTORE)
        return
    yield _check_disk(folder)
    yield from _check_webhooks(folder / WEBHOOKS)
    log, finding = _check_log(folder)
    yield finding
    if log is None:
        return
    try:
        if finding.status == "damaged":
            return
        yield _check_clock(log)
        generation, finding = _check_rules(folder, log)
        yield finding
        if generation is not None:
            yield from _check_built(folder / generation.folder, log, generation, progress)
    finally:
        log.close()


def _check_rules(folder: Path, log: SqliteLog) -> tuple[Generation | None, Finding]:
    try:
        known = read_generation(folder, log)
    except Halted as halted:
        return None, _damaged("rules", str(halted), RESTORE)
    if known is None:
        return None, _damaged("rules", "They are not known.", "Give them to the next command with --rules.")
    names = known.description
    try:
        current = successor(known, None, None, None)
    except InvalidRules as error:
        detail = f"Built with {names}. These packs cannot be read again: {error.problems[0]}"
        return known, notice("rules", detail, "Correct the pack before the next rebuild.")
    if not current.decides_like(known):
        detail = f"Built with {names}, which have changed since."
        return known, notice("rules", detail, "Preview a rebuild: stream-car rebuild --dry-run")
    if not has_copy(folder, known):
        return known, notice("rules", f"{FILE} is not what the log records.", "The next command corrects it.")
    return known, ok("rules", f"Built with {names}.")


def _check_disk(folder: Path) -> Finding:
    free, needed = shutil.disk_usage(folder).free, (folder / LOG).stat().st_size * DISK_FACTOR
    if free < needed:
        detail = f"{free >> 20:,} MB are free on the disk. A rebuild may need {needed >> 20:,} MB."
        return notice("disk", detail, "Free some space before you rebuild.")
    return ok("disk", f"{free >> 20:,} MB are free on the disk.")


def _check_webhooks(folder: Path) -> Iterator[Finding]:
    """Check the outboxes, if there are any."""
    if not folder.is_dir():
        return
    is_sound = True
    for path in sorted(folder.iterdir()):
        if path.suffix == OUTBOX_END and (finding := _check_outbox(path)) is not None:
            yield finding
            is_sound = False
        elif path.name.partition(OUTBOX_END)[2].startswith(SET_ASIDE) and not path.name.endswith(("-wal", "-shm")):
            detail = f"{path.name} was damaged and set aside: its messages were not delivered."
            yield notice("webhooks", detail, "See what changed: stream-car changes --since DATE. Then remove the file.")
            is_sound = False
    if is_sound:
        yield ok("webhooks", "All outboxes are intact.")


def _check_outbox(path: Path) -> Finding | None:
    try:
        fault = find_fault(path, "none")
    except Unavailable as error:
        return notice("webhooks", f"The outbox was not checked. {error}", "Then run `stream-car doctor` again.")
    return _damaged("webhooks", f"The outbox {path.name} {fault}.", SET_ASIDE_CURE) if fault else None


def _check_clock(log: SqliteLog) -> Finding:
    if detail := clock_notice(log.clock_lead):
        return notice("clock", detail, CLOCK_CURE)
    return ok("clock", "The last record is not ahead of the clock.")


def _check_log(folder: Path) -> tuple[SqliteLog | None, Finding]:
    if not (folder / LOG).stat().st_size:  # opening it would write the schema of a new log
        return None, _damaged("log", f"{LOG} is empty.", RESTORE)
    try:
        log = SqliteLog(folder / LOG, SystemClock())
    except Halted as halted:
        return None, _damaged("log", str(halted), RESTORE)
    try:
        [count] = log.verify()
    except Halted as halted:
        return log, _damaged("log", str(halted), RESTORE)
    return log, ok("log", f"The hash chain of all {count:,} records is intact.")


def _check_built(built: Path, log: SqliteLog, generation: Generation, progress: Progress) -> Iterator[Finding]:
    """Replay the log in a temporary folder as far as the state goes, and compare state and index with the result."""
    if not built.exists():  # after a restore
        yield notice("state", "It is not built yet.", "The next command builds it from the log.")
        return
    with tempfile.TemporaryDirectory(prefix="doctor-", dir=built.parent) as temporary:
        replayed = StateFile(Path(temporary) / "state.sqlite")
        try:
            finding = _check_state(built / "state.sqlite", replayed, log, generation, progress)
            yield finding
            if finding.status == "ok":
                yield _check_index(built / "index", Path(temporary) / "index", replayed, log)
        finally:
            replayed.close()


def _check_state(
    path: Path, replayed: StateFile, log: SqliteLog, generation: Generation, progress: Progress
) -> Finding:
    """Compare every value and every change."""
    if not path.is_file():
        return _damaged("state", "It is missing.")
    if fault := find_fault(path, compare_with_seal(path)):
        return _damaged("state", f"The file {path.name} {fault}.")
    try:
        with ReadOnlyState(path) as stored:
            up_to = stored.next_offset()
            end = run_sync(log.range(0))[1]
            if up_to > end:
                detail = f"The state has applied {up_to:,} records, but the log has {end:,}: it has lost its end."
                return _damaged("log", detail, RESTORE)
            _replay(replayed, log, generation, up_to, progress)
            with ReadOnlyState(replayed.path) as expected:
                difference = _first_difference(stored, expected)
    except Halted as halted:
        return _damaged("state", str(halted))
    return _damaged("state", difference) if difference else ok("state", f"It equals a replay of {up_to:,} records.")


def _replay(file: StateFile, log: SqliteLog, generation: Generation, up_to: int, progress: Progress) -> None:
    fold = Fold(generation.ruleset(), future=generation.future)
    journal = SqliteJournal(file)
    shard = Shard(shard=0, log=log, store=SqliteStore(file, journal), event_sink=journal, fold=fold)
    run_sync(shard.start())
    while shard.next_offset < up_to:
        run_sync(shard.run_once(min(BATCH_MAX, up_to - shard.next_offset)))
        progress(shard.next_offset, up_to)


def _first_difference(stored: ReadOnlyState, expected: ReadOnlyState) -> str:
    """Return the first difference as a sentence, or an empty string."""
    for entry, expected_entry in zip_longest(stored.entries(), expected.entries()):
        if entry != expected_entry:
            key = min(item[0] for item in (entry, expected_entry) if item is not None)
            return f"The value of {key!r} is not what a replay gives."
    first = stored.first_change()
    for change, expected_change in zip_longest(stored.changes(first), expected.changes(first)):
        if change != expected_change:
            number = min(item[0] for item in (change, expected_change) if item is not None)
            return f"Change {number} is not what a replay gives."
    return ""


def _check_index(folder: Path, copied: Path, state: StateFile, log: SqliteLog) -> Finding:
    """Compare a copy of the index with a state: the current revision of every document, and the name of every scope."""
    if fault := find_index_fault(folder):
        return _damaged("index", fault)
    shutil.copytree(folder, copied)
    index = TantivyIndex(copied)
    try:
        position, end = run_sync(index.position()), run_sync(log.range(0))[1]
        if position > end:
            return _damaged("index", f"It has {position:,} records, but the log has {end:,}.")
        return _compare_index(index, SqliteStore(state), position)
    except StreamCarError as error:
        return _damaged("index", str(error))
    finally:
        index.close()


def _compare_index(index: TantivyIndex, store: SqliteStore, position: int) -> Finding:
    names = (key[len(document_key("")) :].decode() for key in store.keys(0, document_key("")))
    count, is_whole = 0, True
    while batch := list(islice(names, NAMES_MAX)):
        _, values = run_sync(store.peek(0, [document_key(name) for name in batch]))
        documents = run_sync(index.documents(batch))
        scopes: set[str] = set()
        for name in batch:
            stored = decode_value(document_key(name), values.get(document_key(name)))
            if not isinstance(stored, StoredDocument) or stored.offset >= position:
                is_whole = False
                continue
            if not is_indexed(stored, documents.get(name)):
                return _damaged("index", f"It does not have document {name!r} at its current revision.")
            scopes.update(stored.scopes)
            count += not stored.retracted
        for scope in scopes:
            if scope not in run_sync(index.scopes(list(scope_parts(scope)), NAMES_MAX)):
                return _damaged("index", f"It does not have the scope {scope!r}.")
    if is_whole and index.document_count != count:
        return _damaged("index", f"It has {index.document_count:,} documents, and the state has {count:,}.")
    return ok("index", f"It has the current text of {count:,} documents.")


def _damaged(check: Check, detail: str, cure: str = REBUILD) -> Finding:
    return damaged(check, detail, cure)

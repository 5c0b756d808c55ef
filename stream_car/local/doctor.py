"""Whether a folder is sound: rules, chain of the log, state against a replay, index against the state.

Promise: nothing is changed; the folder must not be in use. Cost: the log is read and folded once, in a
folder that is removed again; memory does not grow with the log.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice, zip_longest
from pathlib import Path
from typing import Literal

from msgspec import Struct

from stream_car.adapters.search.checksums import intact
from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.journal import SqliteJournal
from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.adapters.sqlite.read_only import Inspected
from stream_car.adapters.sqlite.state_file import StateFile
from stream_car.adapters.sqlite.store import SqliteStore
from stream_car.core.revisions import document_key
from stream_car.core.stored import StoredDocument
from stream_car.errors import Halted, InvalidRequest, InvalidRules, StreamCarError
from stream_car.local.generation import FILE, Generation, following, remembered
from stream_car.local.run_sync import at_once
from stream_car.local.system_clock import SystemClock
from stream_car.processing.fold import Fold
from stream_car.processing.shard import BATCH_MAX, Shard
from stream_car.processing.state import decode_value

LOG = "documents.sqlite"
REBUILD = "remove the folder `built`; the next command builds it from the log"
ROOM = 2  # times the log, to build beside it
AT_ONCE = 256


class Finding(Struct, frozen=True, kw_only=True):
    """What one check found. `notice`: nothing is wrong, but worth knowing. `cure` says what to do."""

    check: Literal["rules", "room", "log", "state", "index"]
    verdict: Literal["sound", "notice", "wrong"]
    said: str
    cure: str = ""


Progress = Callable[[int, int], None]


def examine(folder: Path, progress: Progress = lambda done, total: None) -> Iterator[Finding]:
    """Every check, as far as those before it allow. Raises `StreamCarError` where the folder is in use."""
    if not (folder / LOG).is_file():
        raise InvalidRequest("no_data", f"there is nothing at {folder} yet; publish something first")
    generation, found = _rules(folder)
    yield found
    yield _room(folder)
    log: SqliteLog | None = None
    try:
        log, found = _log(folder)
        yield found
        if log is not None and generation is not None and found.verdict == "sound":
            state = _state(folder / generation.folder, log, generation, progress)
            yield state
            if state.verdict == "sound":
                yield _index(folder / generation.folder, log)
    finally:
        if log is not None:
            log.close()


def _rules(folder: Path) -> tuple[Generation | None, Finding]:
    try:
        known = remembered(folder)
    except Halted as halted:
        return None, Finding(check="rules", verdict="wrong", said=str(halted), cure=f"restore {FILE} from a backup")
    if known is None:
        said = f"there is no {FILE}: the folder does not know its rules"
        return None, Finding(check="rules", verdict="wrong", said=said, cure="name them with the next command: --rules")
    names = known.called
    try:
        now = following(known, None, None, None)
    except InvalidRules as broken:
        said = f"goes by {names} as they were read; they cannot be read again: {broken.problems[0]}"
        return known, Finding(check="rules", verdict="notice", said=said, cure="mend the pack before the next rebuild")
    if not now.is_like(known):
        said = f"goes by {names} as they were read; they have changed since"
        return known, Finding(check="rules", verdict="notice", said=said, cure="stream-car rebuild --dry-run")
    return known, Finding(check="rules", verdict="sound", said=f"goes by {names}")


def _room(folder: Path) -> Finding:
    free, needed = shutil.disk_usage(folder).free, (folder / LOG).stat().st_size * ROOM
    if free < needed:
        said = f"{free >> 20:,} MB are free on the disk, a rebuild may need {needed >> 20:,} MB"
        return Finding(check="room", verdict="notice", said=said, cure="free some space before you rebuild")
    return Finding(check="room", verdict="sound", said=f"{free >> 20:,} MB are free on the disk")


def _log(folder: Path) -> tuple[SqliteLog | None, Finding]:
    cure = "restore a backup: stream-car restore"
    try:
        log = SqliteLog(folder / LOG, SystemClock())
    except Halted as halted:
        return None, Finding(check="log", verdict="wrong", said=str(halted), cure=cure)
    try:
        [count] = log.verify()
    except Halted as halted:
        return log, Finding(check="log", verdict="wrong", said=str(halted), cure=cure)
    return log, Finding(check="log", verdict="sound", said=f"{count:,} records, every link of their chain holds")


def _state(built: Path, log: SqliteLog, generation: Generation, progress: Progress) -> Finding:
    """Fold the log anew as far as the state goes, and compare every value and every change told."""
    if not built.exists():  # after a restore
        said = "it is not built yet; the next command builds it from the log"
        return Finding(check="state", verdict="notice", said=said, cure="stream-car query ...")
    if not (built / "state.sqlite").is_file():
        return _wrong("state", "it is missing")
    with tempfile.TemporaryDirectory(prefix="doctor-", dir=built.parent) as beside:
        anew = StateFile(Path(beside) / "state.sqlite")
        try:
            with Inspected(built / "state.sqlite") as there:
                upto = there.next_offset()
                end = at_once(log.range(0))[1]
                if upto > end:
                    return _wrong("state", f"it has applied {upto:,} records, the log holds {end:,}")
                _replay(anew, log, generation, upto, progress)
                with Inspected(anew.path) as here:
                    fault = _first_difference(there, here)
        except Halted as halted:
            return _wrong("state", str(halted))
        finally:
            anew.close()
    if fault:
        return _wrong("state", fault)
    return Finding(check="state", verdict="sound", said=f"equals a replay of {upto:,} records, value by value")


def _wrong(check: Literal["state", "index"], said: str) -> Finding:
    return Finding(check=check, verdict="wrong", said=said, cure=REBUILD)


def _replay(anew: StateFile, log: SqliteLog, generation: Generation, upto: int, progress: Progress) -> None:
    fold = Fold(generation.ruleset(), future=generation.future)
    shard = Shard(shard=0, log=log, store=SqliteStore(anew), event_sink=SqliteJournal(anew), fold=fold)
    at_once(shard.start())
    while shard.next_offset < upto:
        at_once(shard.run_once(min(BATCH_MAX, upto - shard.next_offset)))
        progress(shard.next_offset, upto)


def _first_difference(there: Inspected, here: Inspected) -> str:
    """What differs first; empty where nothing does."""
    for value, expected in zip_longest(there.entries(), here.entries()):
        if value != expected:
            named = min(one[0] for one in (value, expected) if one is not None)
            return f"the value of {named!r} is not what a replay gives"
    first = there.first_change()
    for event, told in zip_longest(there.changes(first), here.changes(first)):
        if event != told:
            number = min(one[0] for one in (event, told) if one is not None)
            return f"event {number} is not what a replay gives"
    return ""


def _index(built: Path, log: SqliteLog) -> Finding:
    """Whether the index holds, of every document, the revision that stands, and nothing that was taken back."""
    if not intact(built / "index" / "tantivy"):
        return _wrong("index", "its files are missing or are not as they were written")
    index = TantivyIndex(built / "index")
    file = StateFile(built / "state.sqlite")
    try:
        store = SqliteStore(file)
        position, end = at_once(index.position()), at_once(log.range(0))[1]
        if position > end:
            return _wrong("index", f"it has seen {position:,} records, the log holds {end:,}")
        names, count = (key[len(document_key("")) :].decode() for key in store.keys(0, document_key(""))), 0
        while some := list(islice(names, AT_ONCE)):
            _, values = at_once(store.peek(0, [document_key(name) for name in some]))
            found = at_once(index.documents(some))
            for name in some:
                held = decode_value(document_key(name), values.get(document_key(name)))
                document = found.get(name)
                if not isinstance(held, StoredDocument) or held.offset >= position:
                    continue
                stands = None if held.retracted else held.revision
                if (document.revision if document is not None else None) != stands:
                    return _wrong("index", f"document {name!r} is not there as it stands")
                count += stands is not None
        return Finding(check="index", verdict="sound", said=f"has the text of {count:,} documents as they stand")
    except StreamCarError as error:
        return _wrong("index", str(error))
    finally:
        file.close()
        index.close()

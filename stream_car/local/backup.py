"""Backup and restore: a consistent copy of what is original, taken while others write, and proven before it counts.

Promise: a copy is a folder like the one it was taken from, with the log as of one moment, the rules, and how
far feeds were read (never further than the copied log goes), without what follows from these. It bears its
name only when its chain of hashes has been verified, so a copy that was interrupted is never taken for one;
nothing is ever overwritten. Writers are not held up. Cost: the log is read twice.
"""

import shutil
from pathlib import Path

from msgspec import Struct

from stream_car.adapters.sqlite.feed_positions import CURE as POSITIONS_CURE
from stream_car.adapters.sqlite.feed_positions import FILE as POSITIONS
from stream_car.adapters.sqlite.feed_positions import PositionFile
from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.errors import InvalidRequest
from stream_car.files.database import settle, snapshot, sync_file, sync_folder
from stream_car.local.generation import FILE
from stream_car.local.system_clock import SystemClock

LOG = "documents.sqlite"
PARTIAL = ".partial"


class Copied(Struct, frozen=True, kw_only=True):
    """A copy that was verified: where it is, and how many messages it holds."""

    path: str
    records: int
    bytes: int


def copy(source: Path, target: Path) -> Copied:
    """Copy the originals of one folder to another, which must not hold any yet.

    Raises `InvalidRequest` (`no_data`, `exists`, `folder`), and `Halted` where the source's chain is broken.
    """
    if not (source / LOG).is_file():
        raise InvalidRequest("no_data", f"there is no log in {source}; name a folder that has a {LOG}")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidRequest("exists", f"{target} is there already, and nothing is overwritten; move it")
    partial = target.with_name(target.name + PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True, mode=0o700)
    except OSError as error:
        raise InvalidRequest("folder", f"{target} cannot be made: {error.strerror}; name another folder") from None
    try:
        if (source / POSITIONS).is_file():  # before the log, which is always the first to move on
            snapshot(source / POSITIONS, partial / POSITIONS, POSITIONS_CURE)
        snapshot(source / LOG, partial / LOG)
        if (source / FILE).is_file():
            shutil.copyfile(source / FILE, partial / FILE)
            (partial / FILE).chmod(0o600)
            sync_file(partial / FILE)
        records = verified(partial)
        settle(partial / LOG)
        if (partial / POSITIONS).is_file():
            PositionFile(partial / POSITIONS, end=records).close()  # forgets what the log does not hold
            settle(partial / POSITIONS)
        size = sum(file.stat().st_size for file in partial.iterdir())
        sync_folder(partial)
        if target.exists():
            target.rmdir()
        partial.rename(target)
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return Copied(path=str(target), records=records, bytes=size)


def verified(folder: Path) -> int:
    """How many records the log of a folder nobody writes to has; raises `Halted` at the first fault in their chain."""
    log = SqliteLog(folder / LOG, SystemClock())
    try:
        return sum(log.verify())
    finally:
        log.close()
        (folder / f"{LOG}.lock").unlink(missing_ok=True)

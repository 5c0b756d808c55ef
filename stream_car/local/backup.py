"""Backup and restore: a consistent copy of the original data, taken while others write, and verified.

Promise: a copy is a data directory with the log as of one moment, the rules, and the feed positions (never beyond the
end of the copied log), without what is derived from them. It gets its name only after its hash chain has been verified,
so an interrupted copy is never taken for a complete one. Nothing is overwritten, and writers do not wait. Cost: the log
is read twice.
"""

import shutil
from pathlib import Path

from msgspec import Struct

from stream_car.adapters.database import copy_database, sync_file, to_single_file
from stream_car.adapters.sqlite.feed_positions import CURE as POSITIONS_CURE, FILE as POSITIONS, FeedPositionFile
from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.adapters.system_clock import SystemClock
from stream_car.errors import InvalidRequest
from stream_car.files.atomic import sync_folder
from stream_car.local.generation import FILE, LOG

PARTIAL = ".partial"


class Copied(Struct, frozen=True, kw_only=True):
    """A verified copy: where it is, the records of its log, and its size."""

    path: str
    records: int
    bytes: int


def copy(source: Path, target: Path) -> Copied:
    """Copy the original data of one folder to another, which must not exist or be empty.

    Raises:
        InvalidRequest: the source has no log (`no_data`), the target has files (`exists`) or cannot be made (`folder`).
        Halted: the log or the feed positions of the source are damaged.
    """
    if not (source / LOG).is_file():
        raise InvalidRequest("no_data", f"{source} has no log. Name a folder that contains {LOG}.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidRequest(
            "exists", f"{target} already exists, and nothing is overwritten. Move it or name another folder."
        )
    partial = target.with_name(target.name + PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True, mode=0o700)
    except OSError as error:
        raise InvalidRequest("folder", f"{target} cannot be created ({error.strerror}). Name another folder.") from None
    try:
        if (source / POSITIONS).is_file():  # before the log, which always moves first
            copy_database(source / POSITIONS, partial / POSITIONS, POSITIONS_CURE)
        copy_database(source / LOG, partial / LOG)
        if (source / FILE).is_file():
            shutil.copyfile(source / FILE, partial / FILE)
            (partial / FILE).chmod(0o600)
            sync_file(partial / FILE)
        records = verify(partial)
        to_single_file(partial / LOG)
        if (partial / POSITIONS).is_file():
            FeedPositionFile(partial / POSITIONS, end=records).close()  # drops positions beyond the end of the log
            to_single_file(partial / POSITIONS)
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


def verify(folder: Path) -> int:
    """Verify the hash chain of a log that nobody writes to, and return the number of its records.

    Raises:
        Halted: the chain is broken.
    """
    log = SqliteLog(folder / LOG, SystemClock())
    try:
        return sum(log.verify())
    finally:
        log.close()
        (folder / f"{LOG}.lock").unlink(missing_ok=True)

"""A second process that reads and decodes the records of a long log before they are applied.

Promise: nothing depends on it. What it delivers is what this process would have decoded itself, and whatever it does
not deliver in time is decoded here. It is never more than about 10 MB ahead, and jumps ahead if it has been overtaken.
It ends with the process that started it, or after the last record.
Cost: a process of about 60 MB. Applying a prefetched record takes two thirds of the time.
"""

import fcntl
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stream_car.adapters.database import open_read_only
from stream_car.adapters.search.schema import analyse
from stream_car.adapters.sqlite.hash_chain import Chain
from stream_car.core.documents import Document
from stream_car.core.revisions import Input
from stream_car.core.rule_pack import RulePack
from stream_car.core.rules import Ruleset
from stream_car.ports import IndexedDocument, Record
from stream_car.processing.effects import DecodedRecord, Future
from stream_car.processing.fold import Fold
from stream_car.ranking.bm25 import DocumentTerms
from stream_car.ranking.settings import Settings
from stream_car.version import __version__

RECORDS_MIN = 10_000  # fewer records are decoded sooner than a process starts
HEAD_START = 4000  # records that are applied while it starts
PARCEL_MAX = 64  # records that are delivered together
PARCEL_BYTES = 1 << 20  # the same in bytes of their values, so that a parcel fits into the buffer
BUFFER_MAX = 8 << 20  # bytes delivered that wait to be applied
LEAD = 512  # records that it jumps ahead if it has been overtaken

_HOME = str(Path(__file__).parents[2])
_PROGRAM = "from stream_car.local.prefetch import main; main()"
_PIPE = 1 << 20
_POSITION = struct.Struct(">q")
_HEAD = struct.Struct(">qqq")  # of a parcel: its first record, the number of records, and the bytes that follow


class Task(Struct, frozen=True, kw_only=True):
    """The records to decode, and the rules. Another release might decode them differently, so it does nothing."""

    log: str
    first: int
    end: int
    packs: tuple[RulePack, ...]
    future: Future
    settings: Settings
    release: str = __version__


class Prefetched(Struct, frozen=True, array_like=True, gc=False):
    """A document of the log, its scopes, the digest of its content, and its terms."""

    document: Document
    scopes: tuple[str, ...]
    digest: bytes
    terms: DocumentTerms


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Prefetched | None]).decode


class Prefetch:
    """The second process, and what it has delivered so far. Nothing here waits for it."""

    def __init__(self, task: Task) -> None:
        self.end = task.end
        self._first = task.first
        self._parcel: list[Prefetched | None] = []
        self._input = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  closed with the process
        self._pipe, out = os.pipe()
        try:
            self._input.write(_POSITION.pack(0) + msgspec.json.encode(task))
            os.set_blocking(self._pipe, False)
            with suppress(OSError, AttributeError):  # on systems without this call the pipe is small
                fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, _PIPE)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, str(out)],
                stdin=self._input,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[out],
                env={**os.environ, "PYTHONPATH": os.pathsep.join([*_path(), _HOME])},
            )
        except BaseException:
            self._close_files()
            raise
        finally:
            os.close(out)
        self._buffer = bytearray()

    def receive(self, position: int) -> None:
        """Take what has been delivered. Records before `position` are not needed any more.

        Until the next call, the process can deliver as much as the pipe has room for.
        """
        with suppress(OSError):  # nothing more for now
            os.pwrite(self._input.fileno(), _POSITION.pack(position), 0)
            while len(self._buffer) < BUFFER_MAX:
                piece = os.read(self._pipe, _PIPE)
                if not piece:
                    break
                self._buffer += piece

    def decoded(self, record: Record) -> tuple[DecodedRecord, DocumentTerms] | None:
        """Return the decoded record and its terms, or `None` if it was not delivered or is not a document."""
        if record.offset >= self._first + len(self._parcel) and not self._open_parcel(record.offset):
            return None
        if record.offset < self._first:
            return None
        prefetched = self._parcel[record.offset - self._first]
        if prefetched is None:
            return None
        at = Input(record.offset, record.append_time, prefetched.digest)
        return DecodedRecord(prefetched.document, prefetched.scopes, at), prefetched.terms

    def _open_parcel(self, offset: int) -> bool:
        """Open the parcel that this record is in, or the first one after it. Parcels before it are dropped."""
        self.receive(offset)
        while len(self._buffer) >= _HEAD.size:
            first, count, size = _HEAD.unpack_from(self._buffer)
            end = _HEAD.size + size
            if len(self._buffer) < end:
                return False
            parcel = bytes(self._buffer[_HEAD.size : end]) if offset < first + count else None
            del self._buffer[:end]
            if parcel is not None:
                self._first, self._parcel = first, _decode_parcel(parcel)
                return bool(self._parcel)
        return False

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._close_files()

    def _close_files(self) -> None:
        self._input.close()
        os.close(self._pipe)


def begin_prefetch(task: Task) -> Prefetch | None:
    """Start a process that decodes these records, or return `None` if there are few or no process can be started."""
    if task.end - task.first < RECORDS_MIN or not _has_spare_core():
        return None
    try:
        return Prefetch(replace(task, first=task.first + HEAD_START))
    except (OSError, ValueError, TypeError):  # whatever is wrong with the environment
        return None


def _has_spare_core() -> bool:
    """Return whether there is a second core, and an interpreter that can be started."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores > 1 and bool(sys.executable) and not getattr(sys, "frozen", False)


def _path() -> list[str]:
    return [place for place in sys.path if place and isinstance(place, str)]


def _decode_parcel(parcel: bytes) -> list[Prefetched | None]:
    try:
        return _decode(parcel)
    except msgspec.DecodeError:
        return []


def parcels(task: Task, position: Callable[[], int]) -> Iterator[bytes]:
    """Yield what the process delivers. `position` returns the next record to apply; those before it are left out."""
    fold = Fold(Ruleset(task.packs), future=task.future)
    with closing(open_read_only(Path(task.log))) as connection:
        chain = Chain(Path(task.log), connection)
        first = task.first
        while first < task.end:
            parcel: list[Prefetched | None] = []
            size = 0
            for record in chain.records(0, first, min(PARCEL_MAX, task.end - first)):
                parcel.append(_prefetched(fold.read(record), task.settings))
                size += len(record.value or b"")
                if size >= PARCEL_BYTES:
                    break
            encoded = _encode(parcel)
            yield _HEAD.pack(first, len(parcel), len(encoded)) + encoded
            first += len(parcel)
            if first < position():
                first = position() + LEAD


def _prefetched(decoded: DecodedRecord, settings: Settings) -> Prefetched | None:
    document = decoded.content
    if not isinstance(document, Document):
        return None
    terms = analyse(IndexedDocument(document=document, scopes=decoded.scopes), settings)
    return Prefetched(document, decoded.scopes, decoded.at.digest, terms)


def main() -> None:
    """Read the task from the standard input, and write parcels to the file whose number is the argument."""
    source = sys.stdin.fileno()
    task = msgspec.json.decode(os.pread(source, os.fstat(source).st_size, _POSITION.size), type=Task)
    if task.release != __version__:
        return
    with os.fdopen(int(sys.argv[1]), "wb") as out:
        for parcel in parcels(task, lambda: int(_POSITION.unpack(os.pread(source, _POSITION.size, 0))[0])):
            out.write(parcel)
            out.flush()

"""The records of a long log, read and taken apart by a process of its own before they are applied.

Promise: what it hands over is what this process would have read itself, and whatever it does not hand over, or not
in time, is read here: nothing depends on it. It never leads by more than some 10 MB, and goes on ahead of whoever has
overtaken it. It ends with whoever began it, and after the last record.
Cost: a process of some 60 MB; to apply a record that was read ahead takes two thirds of the time.
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

from stream_car.adapters.search.schema import analysed
from stream_car.adapters.sqlite.hash_chain import Chain
from stream_car.core.documents import Document
from stream_car.core.revisions import Input
from stream_car.core.rule_pack import RulePack
from stream_car.core.rules import Ruleset
from stream_car.files.database import reading_only
from stream_car.ports import IndexedDocument, Record
from stream_car.processing.effects import DecodedRecord, Future
from stream_car.processing.fold import Fold
from stream_car.ranking.bm25 import DocumentTerms
from stream_car.ranking.settings import Settings
from stream_car.version import __version__

WORTH = 10_000  # records; fewer are read sooner than a process begins
HEAD_START = 4000  # records that are applied while it begins
AT_ONCE = 64  # records that are handed over together
AT_ONCE_BYTES = 1 << 20  # the same in bytes of their values: a parcel has room in what is kept
KEPT_MAX = 8 << 20  # bytes of what was handed over and waits to be applied
LEAD = 512  # records between where the other process is and where to go on, for whoever has fallen behind

_HOME = str(Path(__file__).parents[2])
_PROGRAM = "from stream_car.local.prefetch import main; main()"
_PIPE = 1 << 20
_POSITION = struct.Struct(">q")
_HEAD = struct.Struct(">qqq")  # the first record, how many there are, and the bytes that say so


class Task(Struct, frozen=True, kw_only=True):
    """What is to be read, and by which rules; another release may read otherwise."""

    log: str
    first: int
    end: int
    domains: tuple[RulePack, ...]
    future: Future
    settings: Settings
    release: str = __version__


class Said(Struct, frozen=True, array_like=True, gc=False):
    """A document of the log, its scopes, the digest of its content, and its words."""

    document: Document
    scopes: tuple[str, ...]
    digest: bytes
    words: DocumentTerms


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Said | None]).decode


class Ahead:
    """A process that reads on, and what it has handed over so far. Never waits for it."""

    def __init__(self, task: Task) -> None:
        self.end = task.end
        self._first = task.first
        self._said: list[Said | None] = []
        self._given = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  closed with the process
        self._pipe, out = os.pipe()
        try:
            self._given.write(_POSITION.pack(0) + msgspec.json.encode(task))
            os.set_blocking(self._pipe, False)
            with suppress(OSError, AttributeError):  # where there is no such call, less is on its way at a time
                fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, _PIPE)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, str(out)],
                stdin=self._given,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[out],
                env={**os.environ, "PYTHONPATH": os.pathsep.join([*_path(), _HOME])},
            )
        except BaseException:
            self._let_go()
            raise
        finally:
            os.close(out)
        self._buffer = bytearray()

    def take_in(self, position: int) -> None:
        """Take what has come, and say that records before this one are not needed any more.

        As much as the pipe holds can come until the next time.
        """
        with suppress(OSError):  # there is nothing more now
            os.pwrite(self._given.fileno(), _POSITION.pack(position), 0)
            while len(self._buffer) < KEPT_MAX:
                piece = os.read(self._pipe, _PIPE)
                if not piece:
                    break
                self._buffer += piece

    def read(self, record: Record) -> tuple[DecodedRecord, DocumentTerms] | None:
        """A record as it was read, and its words; `None` where nobody did, or it is no document."""
        if record.offset >= self._first + len(self._said) and not self._turn_to(record.offset):
            return None
        if record.offset < self._first:
            return None
        said = self._said[record.offset - self._first]
        if said is None:
            return None
        at = Input(record.offset, record.append_time, said.digest)
        return DecodedRecord(said.document, said.scopes, at), said.words

    def _turn_to(self, offset: int) -> bool:
        """Unpack the parcel that this record is in, or that begins after it; those before it are thrown away."""
        self.take_in(offset)
        while len(self._buffer) >= _HEAD.size:
            first, count, size = _HEAD.unpack_from(self._buffer)
            end = _HEAD.size + size
            if len(self._buffer) < end:
                return False
            parcel = bytes(self._buffer[_HEAD.size : end]) if offset < first + count else None
            del self._buffer[:end]
            if parcel is not None:
                self._first, self._said = first, _unpacked(parcel)
                return bool(self._said)
        return False

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._let_go()

    def _let_go(self) -> None:
        self._given.close()
        os.close(self._pipe)


def begun(task: Task) -> Ahead | None:
    """A process that reads these records; `None` where they are few, or no process can be begun."""
    if task.end - task.first < WORTH or not _is_free():
        return None
    try:
        return Ahead(replace(task, first=task.first + HEAD_START))
    except (OSError, ValueError, TypeError):  # whatever is wrong with the environment
        return None


def _is_free() -> bool:
    """Whether there is a second core, and an interpreter that can be begun."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores > 1 and bool(sys.executable) and not getattr(sys, "frozen", False)


def _path() -> list[str]:
    return [place for place in sys.path if place and isinstance(place, str)]


def _unpacked(parcel: bytes) -> list[Said | None]:
    try:
        return _decode(parcel)
    except msgspec.DecodeError:
        return []


def parcels(task: Task, position: Callable[[], int]) -> Iterator[bytes]:
    """What the process hands over. `position` is asked how far the other one is: what is behind it is left out."""
    fold = Fold(Ruleset(task.domains), future=task.future)
    with closing(reading_only(Path(task.log))) as connection:
        chain = Chain(Path(task.log), connection)
        first = task.first
        while first < task.end:
            said: list[Said | None] = []
            size = 0
            for record in chain.records(0, first, min(AT_ONCE, task.end - first)):
                said.append(_said(fold.read(record), task.settings))
                size += len(record.value or b"")
                if size >= AT_ONCE_BYTES:
                    break
            encoded = _encode(said)
            yield _HEAD.pack(first, len(said), len(encoded)) + encoded
            first += len(said)
            if first < position():
                first = position() + LEAD


def _said(read: DecodedRecord, settings: Settings) -> Said | None:
    said = read.content
    if not isinstance(said, Document):
        return None
    words = analysed(IndexedDocument(document=said, scopes=read.scopes), settings)
    return Said(said, read.scopes, read.at.digest, words)


def main() -> None:
    """Read the task from the standard input, and write what was read to the file whose number is the argument."""
    given = sys.stdin.fileno()
    task = msgspec.json.decode(os.pread(given, os.fstat(given).st_size, _POSITION.size), type=Task)
    if task.release != __version__:
        return
    with os.fdopen(int(sys.argv[1]), "wb") as out:
        for parcel in parcels(task, lambda: int(_POSITION.unpack(os.pread(given, _POSITION.size, 0))[0])):
            out.write(parcel)
            out.flush()

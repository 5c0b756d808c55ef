"""Feeds into the engine: files, directories and pipes of a format, from where they were last read to.

Promise: documents are published before the position moves on, so that a crash repeats and never skips; a
file that is as it was (or a pipe that brings what the last one brought) is not read again, a file that has
grown is read from its old end, and whatever is read again says nothing new. A piece that is refused stops
nothing else. Cost: memory for one batch and one piece.
"""

import io
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from stream_car.adapters.sqlite.feed_positions import FILE as POSITIONS
from stream_car.adapters.sqlite.feed_positions import PositionFile
from stream_car.errors import InvalidDocument
from stream_car.feeds import Converted, Format, Seen
from stream_car.feeds.splitting import Piece, Readable, Start
from stream_car.ingest.destinations import Destination
from stream_car.ingest.files import STANDARD_INPUT, Source
from stream_car.processing.receipts import Receipt

BATCH = 2_000  # documents or records between two commits
PREFIX_CHUNK = 1 << 20


class FilePosition(Struct, frozen=True, array_like=True, gc=False):
    """How far a file was read: so many bytes, and what they were. `refused` of its pieces could not be read."""

    size: int
    digest: bytes
    refused: int = 0


class Step(Struct, frozen=True, kw_only=True, gc=False):
    """One piece of a source, converted or refused; `position` is how far its file is read with it.

    `unchanged` stands alone: the file is as it was.
    """

    source: Source
    where: str = ""
    converted: Converted | None = None
    refused: InvalidDocument | None = None
    position: FilePosition | None = None
    passed: int = 0  # bytes read of the source so far
    unchanged: FilePosition | None = None


class Memory:
    """What a feed has seen: rows on disk, and over them what this run has added since the last commit."""

    def __init__(self, feed: str, kept: PositionFile) -> None:
        self._feed = feed
        self._kept = kept
        self._seen: dict[str, Seen] = {}
        self._files: dict[str, FilePosition] = {}

    def get(self, record: str, /) -> Seen | None:
        """What is known of a record."""
        found = self._seen.get(record)
        if found is None:
            row = self._kept.get(self._feed, f"r:{record}")
            found = msgspec.msgpack.decode(row, type=Seen) if row is not None else None
        return found

    def file(self, name: str) -> FilePosition | None:
        """How far a file was read."""
        row = self._kept.get(self._feed, f"f:{name}")
        return msgspec.msgpack.decode(row, type=FilePosition) if row is not None else None

    def note(self, step: Step) -> None:
        """Add what a step found."""
        if step.converted is not None:
            self._seen.update(step.converted.seen)
        if step.position is not None:
            self._files[step.source.name] = step.position

    @property
    def pending(self) -> int:
        """How many rows wait for the next commit."""
        return len(self._seen) + len(self._files)

    def commit(self, *, reached: int) -> None:
        """Keep what was noted."""
        encode = msgspec.msgpack.encode
        rows = [(f"r:{name}", encode(seen)) for name, seen in self._seen.items()]
        rows += [(f"f:{name}", encode(position)) for name, position in self._files.items()]
        self._kept.put(self._feed, rows, reached=reached)
        self._seen.clear()
        self._files.clear()


class _Told:
    """A stream that hashes what is read of it, so that a position can say what it stands behind."""

    def __init__(self, stream: Readable) -> None:
        self.stream = stream
        self.hash = blake2b(digest_size=16)
        self.count = 0
        self.head = b""

    def skip(self, size: int) -> None:
        """Read on to byte `size`, without handing anything out but the first line, in `head`."""
        self.head = self.readline(size)
        while self.count < size and self.read(min(PREFIX_CHUNK, size - self.count)):
            pass

    def _noted(self, data: bytes) -> bytes:
        self.hash.update(data)
        self.count += len(data)
        return data

    def read(self, size: int = -1, /) -> bytes:
        """Bytes, as of the stream itself."""
        return self._noted(self.stream.read(size))

    def readline(self, size: int = -1, /) -> bytes:
        """A line, as of the stream itself."""
        return self._noted(self.stream.readline(size))


class _Joined:
    """Two streams, one after the other."""

    def __init__(self, first: Readable, second: Readable) -> None:
        self.first = first
        self.second = second

    def read(self, size: int = -1, /) -> bytes:
        """Bytes of both."""
        data = self.first.read(size)
        return data + self.second.read(size - len(data) if size >= 0 else -1) if len(data) != size else data

    def readline(self, size: int = -1, /) -> bytes:
        """A line, which may begin in the first and end in the second."""
        data = self.first.readline(size)
        if data.endswith(b"\n") or len(data) == size:
            return data
        return data + self.second.readline(size - len(data) if size >= 0 else -1)


def steps(form: Format, memory: Memory, sources: Iterable[Source], *, growing: bool = False) -> Iterator[Step]:
    """Every piece of every source, converted; whoever takes a step must `note` it before the next.

    With `growing` a last line that does not end yet is left for later.
    """
    for source in sources:
        if source.name == STANDARD_INPUT:
            yield from _pipe(form, memory, source, sys.stdin.buffer, growing=growing)
            continue
        with source.path.open("rb") as stream:
            yield from _file(form, memory, source, stream, growing=growing)


def _pipe(form: Format, memory: Memory, source: Source, stream: Readable, *, growing: bool) -> Iterator[Step]:
    """Standard input is a file of that name: piped again as it was the last time, it says nothing new.

    What has to be read to know that, as much as there was the last time, is kept on disk meanwhile.
    """
    known = memory.file(source.name)
    if known is None:
        yield from _pieces(form, memory, source, stream, None, growing=growing)
        return
    with tempfile.SpooledTemporaryFile(max_size=PREFIX_CHUNK) as held:
        told = blake2b(digest_size=16)
        while data := stream.read(min(PREFIX_CHUNK, known.size + 1 - held.tell())):
            told.update(data)
            held.write(data)
        if told.digest() == known.digest:
            yield Step(source=source, unchanged=known, passed=known.size)
            return
        held.seek(0)
        yield from _pieces(form, memory, source, _Joined(held, stream), None, growing=growing)


def _file(form: Format, memory: Memory, source: Source, stream: BinaryIO, *, growing: bool) -> Iterator[Step]:
    known = memory.file(source.name)
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    if known is not None and size >= known.size:
        told = _Told(stream)
        told.skip(known.size)
        if told.hash.digest() == known.digest:
            if size == known.size:
                yield Step(source=source, unchanged=known, passed=size)
                return
            if source.name.endswith(form.growing):
                yield from _pieces(form, memory, source, told, known, growing=growing)
                return
        stream.seek(0)
    yield from _pieces(form, memory, source, stream, None, growing=growing)


def _pieces(
    form: Format,
    memory: Memory,
    source: Source,
    stream: Readable,
    known: FilePosition | None,
    *,
    growing: bool,
) -> Iterator[Step]:
    told = stream if isinstance(stream, _Told) else _Told(stream)
    start = Start(known.size, told.head) if known is not None else Start()
    refused = known.refused if known is not None else 0
    goes_on = source.name.endswith(form.growing)
    is_whole = True
    for piece in form.split(told, source.name, start):
        if growing and not piece.closed:
            is_whole = False
            break
        step = _step(form, memory, source, piece, told)
        refused += step.refused is not None
        is_whole = is_whole and (piece.closed or source.name == STANDARD_INPUT)  # a pipe has ended
        if goes_on and piece.closed:
            step = msgspec.structs.replace(step, position=FilePosition(piece.end, told.hash.digest(), refused))
        yield step
    if not goes_on and not refused and is_whole:
        yield Step(source=source, position=FilePosition(told.count, told.hash.digest()), passed=told.count)


def _step(form: Format, memory: Memory, source: Source, piece: Piece, told: _Told) -> Step:
    error = piece.refused
    converted = None
    if error is None:
        try:
            converted = form.convert(memory, piece.data)
        except InvalidDocument as refusal:
            error = refusal
    return Step(source=source, where=piece.where, converted=converted, refused=error, passed=told.count)


class Fed(Struct, frozen=True, kw_only=True):
    """One batch: its steps, and what became of their documents."""

    steps: Sequence[Step]
    receipts: Sequence[Receipt]


def feed(to: Destination, form: Format, sources: Iterable[Source], *, growing: bool = False) -> Iterator[Fed]:
    """Publish what sources say beyond what is known of them, batch by batch."""
    kept = PositionFile(to.positions, end=to.end())
    try:
        memory = Memory(form.name, kept)
        batch: list[Step] = []
        documents = 0
        for step in steps(form, memory, sources, growing=growing):
            memory.note(step)
            batch.append(step)
            documents += len(step.converted.documents) if step.converted is not None else 0
            if documents >= BATCH or len(batch) >= BATCH:
                yield _publish(to, memory, batch)
                batch, documents = [], 0
        if batch:
            yield _publish(to, memory, batch)
    finally:
        kept.close()


def _publish(to: Destination, memory: Memory, batch: Sequence[Step]) -> Fed:
    said = [document for step in batch if step.converted is not None for document in step.converted.documents]
    receipts = to.taker.publish(said).receipts if said else ()
    if memory.pending:
        memory.commit(reached=to.end())
    return Fed(steps=batch, receipts=receipts)


def converted(form: Format, sources: Iterable[Source]) -> Iterator[Step]:
    """What sources say, read from their beginning and published nowhere."""
    with tempfile.TemporaryDirectory(prefix="stream-car-") as folder:
        kept = PositionFile(Path(folder) / POSITIONS, end=0)
        try:
            memory = Memory(form.name, kept)
            for step in steps(form, memory, sources):
                memory.note(step)
                if memory.pending >= BATCH:
                    memory.commit(reached=0)
                yield step
        finally:
            kept.close()

"""Publishes feeds: files, directories and pipes of a format, each from where it was last read.

Promise: documents are published before the position is committed, so a crash repeats and never skips. A file that has
not changed (or a pipe with the same bytes as the last one) is not read again, a file that has grown is read from its
old end, and whatever is read again adds nothing new. A rejected piece does not stop the others. Cost: memory for one
batch and one piece.
"""

import io
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import msgspec
from msgspec import Struct

from stream_car.adapters.sqlite.feed_positions import FILE as POSITIONS, FeedPositionFile
from stream_car.errors import InvalidDocument
from stream_car.feeds import Conversion, Format
from stream_car.feeds.fields import PIECE_MAX
from stream_car.feeds.splitting import BEGINNING, ConcatenatedStream, Piece, Readable, Start
from stream_car.ingest.destinations import Destination
from stream_car.ingest.files import STANDARD_INPUT, InputFile, unreadable
from stream_car.ingest.git_history import ChangedFile, GitInput, opened
from stream_car.local.feed_checkpoint import FeedCheckpoint, FilePosition
from stream_car.processing.receipts import Receipt

BATCH = 2_000  # documents or steps between two commits
PREFIX_CHUNK = 1 << 20  # bytes


class FeedStep(Struct, frozen=True, kw_only=True, gc=False):
    """One piece of a file, converted or rejected. `position` is how far the file was read, up to this piece.

    If `unchanged` is set, the step has no piece: the file has not changed since that position.
    """

    file: InputFile
    where: str = ""
    conversion: Conversion | None = None
    rejected: InvalidDocument | None = None
    position: FilePosition | None = None
    bytes_read: int = 0  # of the file, up to this piece
    unchanged: FilePosition | None = None


class _HashingStream:
    """A stream that hashes and counts what is read from it, for the position."""

    def __init__(self, stream: Readable) -> None:
        self.stream = stream
        self.hash = blake2b(digest_size=16)
        self.bytes_read = 0
        self.head = b""

    def skip(self, size: int) -> None:
        """Read up to byte `size` without returning it. The first line is kept in `head`."""
        self.head = self.readline(size)
        while self.bytes_read < size and self.read(min(PREFIX_CHUNK, size - self.bytes_read)):
            pass

    def _hash(self, data: bytes) -> bytes:
        self.hash.update(data)
        self.bytes_read += len(data)
        return data

    def read(self, size: int = -1, /) -> bytes:
        return self._hash(self.stream.read(size))

    def readline(self, size: int = -1, /) -> bytes:
        return self._hash(self.stream.readline(size))


class _Reader(Struct, frozen=True, kw_only=True):
    """Reads the files of a feed. With `growing`, they are still written to: an unfinished end is left for later."""

    form: Format
    checkpoint: FeedCheckpoint
    growing: bool = False

    def read(self, files: Iterable[InputFile]) -> Iterator[FeedStep]:
        """Yield every new piece of every file, converted, after adding it to the checkpoint.

        With `growing`, a file that is gone is skipped. Raises `InvalidRequest` (`source`) if a file cannot be read.
        """
        for file in files:
            try:
                for step in self._steps_of(file):
                    if step.conversion is not None:
                        self.checkpoint.add(step.conversion.states)
                    if step.position is not None:
                        self.checkpoint.add_position(file.name, step.position)
                    yield step
            except OSError as error:
                if self.growing and isinstance(error, FileNotFoundError):
                    continue  # it was removed after it was listed
                raise unreadable(file.shown, error) from error

    def _steps_of(self, file: InputFile) -> Iterator[FeedStep]:
        if isinstance(file, GitInput):
            return self._read_history(file)
        return self._read_pipe(file) if file.name == STANDARD_INPUT else self._read_file(file)

    def _read_history(self, repository: GitInput) -> Iterator[FeedStep]:
        """Yield the pieces of each commit, then a position. It has the number of commits and the name of the last one.

        If the branch has another history than the last time, it is read from its beginning, which adds nothing that is
        known.
        """
        known = self.checkpoint.file_position(repository.name)
        with opened(repository) as history:
            after = known.digest.decode() if known is not None else ""
            if known is not None and after == history.tip:
                yield FeedStep(file=repository, unchanged=known, bytes_read=known.size)
                return
            if known is None or not history.has(after):
                known, after = FilePosition(0, b""), ""
            rejected, last = known.rejected, after
            for change in history.changes(self.form.suffixes, after):
                if change.commit != last:
                    yield self._position(repository, known.size + change.number - 1, last, rejected)
                    last = change.commit
                for step in self._read_change(repository, change, known.size):
                    rejected += step.rejected is not None
                    yield step
            yield self._position(repository, known.size + history.count(after), history.tip, rejected)

    def _position(self, repository: GitInput, size: int, commit: str, rejected: int) -> FeedStep:
        position = FilePosition(size, commit.encode(), rejected) if commit else None
        return FeedStep(file=repository, position=position, bytes_read=size)

    def _read_change(self, repository: GitInput, change: ChangedFile, before: int) -> Iterator[FeedStep]:
        place, number = f"{change.commit[:12]}:{change.path}", before + change.number
        if change.content is None:
            error = InvalidDocument("size", f"The file is larger than {PIECE_MAX >> 20} MiB.")
            yield FeedStep(file=repository, where=place, rejected=error, bytes_read=number)
            return
        for piece in self.form.split(io.BytesIO(change.content), change.path, BEGINNING):
            data = self.form.at_time(piece.data, change.time) if piece.rejected is None else piece.data
            dated = Piece(f"{place} {piece.where}".rstrip(), data, piece.end, piece.rejected)
            yield self._convert(repository, dated, number)

    def _read_pipe(self, file: InputFile) -> Iterator[FeedStep]:
        """Read standard input as a file of that name: the same bytes as the last time add nothing new.

        To detect this, as many bytes as the last time are read first and buffered on disk.
        """
        stream, known = sys.stdin.buffer, self.checkpoint.file_position(file.name)
        if known is None:
            yield from self._read_pieces(file, stream)
            return
        with tempfile.SpooledTemporaryFile(max_size=PREFIX_CHUNK) as buffer:
            digest = blake2b(digest_size=16)
            while data := stream.read(min(PREFIX_CHUNK, known.size + 1 - buffer.tell())):
                digest.update(data)
                buffer.write(data)
            if digest.digest() == known.digest:
                yield FeedStep(file=file, unchanged=known, bytes_read=known.size)
                return
            buffer.seek(0)
            yield from self._read_pieces(file, ConcatenatedStream(buffer, stream))

    def _read_file(self, file: InputFile) -> Iterator[FeedStep]:
        known = self.checkpoint.file_position(file.name)
        with file.path.open("rb") as stream:
            size = stream.seek(0, io.SEEK_END)
            stream.seek(0)
            if known is not None and size >= known.size:
                hashing = _HashingStream(stream)
                hashing.skip(known.size)
                if hashing.hash.digest() == known.digest:
                    if size == known.size:
                        yield FeedStep(file=file, unchanged=known, bytes_read=size)
                        return
                    if file.name.endswith(self.form.line_suffixes):
                        yield from self._read_pieces(file, hashing, known)
                        return
                stream.seek(0)
            yield from self._read_pieces(file, stream)

    def _read_pieces(self, file: InputFile, stream: Readable, known: FilePosition | None = None) -> Iterator[FeedStep]:
        """Yield the pieces after the known position.

        A file of lines gets a position per line, any other one at its end.
        """
        hashing = stream if isinstance(stream, _HashingStream) else _HashingStream(stream)
        start = Start(known.size, hashing.head) if known is not None else Start()
        rejected = known.rejected if known is not None else 0
        has_lines = file.name.endswith(self.form.line_suffixes)
        is_complete = True
        for piece in self.form.split(hashing, file.name, start):
            if self.growing and not piece.closed:
                is_complete = False
                break
            step = self._convert(file, piece, hashing.bytes_read)
            rejected += step.rejected is not None
            is_complete = is_complete and (piece.closed or file.name == STANDARD_INPUT)  # a pipe has ended
            if has_lines and piece.closed:
                position = FilePosition(piece.end, hashing.hash.digest(), rejected)
                step = msgspec.structs.replace(step, position=position)
            yield step
        if not has_lines and not rejected and is_complete:
            position = FilePosition(hashing.bytes_read, hashing.hash.digest())
            yield FeedStep(file=file, position=position, bytes_read=hashing.bytes_read)

    def _convert(self, file: InputFile, piece: Piece, bytes_read: int) -> FeedStep:
        rejected, conversion = piece.rejected, None
        if rejected is None:
            try:
                conversion = self.form.convert(self.checkpoint, piece.data)
            except InvalidDocument as error:
                rejected = error
        return FeedStep(file=file, where=piece.where, conversion=conversion, rejected=rejected, bytes_read=bytes_read)


class IngestedBatch(Struct, frozen=True, kw_only=True):
    """A batch of steps, and the receipts of their documents."""

    steps: Sequence[FeedStep]
    receipts: Sequence[Receipt]


def feed(
    to: Destination, form: Format, files: Iterable[InputFile], *, growing: bool = False
) -> Iterator[IngestedBatch]:
    """Publish what is new in the files, batch by batch.

    With `growing`, a last line without a newline is left for later.
    """
    with closing(FeedPositionFile(to.positions, end=to.log_end())) as rows:
        checkpoint = FeedCheckpoint(form.name, rows)
        batch: list[FeedStep] = []
        documents = 0
        for step in _Reader(form=form, checkpoint=checkpoint, growing=growing).read(files):
            batch.append(step)
            documents += len(step.conversion.documents) if step.conversion is not None else 0
            if documents >= BATCH or len(batch) >= BATCH:
                yield _publish(to, checkpoint, batch)
                batch, documents = [], 0
        if batch:
            yield _publish(to, checkpoint, batch)


def _publish(to: Destination, checkpoint: FeedCheckpoint, batch: Sequence[FeedStep]) -> IngestedBatch:
    conversions = [step.conversion for step in batch if step.conversion is not None]
    documents = [document for conversion in conversions for document in conversion.documents]
    receipts = to.sink.publish(documents, on_rejected="ignore").receipts if documents else ()
    if checkpoint.uncommitted:
        checkpoint.commit(reached=to.log_end())
    return IngestedBatch(steps=batch, receipts=receipts)


def convert(form: Format, files: Iterable[InputFile]) -> Iterator[FeedStep]:
    """Convert files from their beginning and publish nothing."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-car-") as folder,
        closing(FeedPositionFile(Path(folder) / POSITIONS, end=0)) as rows,
    ):
        checkpoint = FeedCheckpoint(form.name, rows)
        for step in _Reader(form=form, checkpoint=checkpoint).read(files):
            if checkpoint.uncommitted >= BATCH:
                checkpoint.commit(reached=0)
            yield step

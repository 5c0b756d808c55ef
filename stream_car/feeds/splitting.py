"""Splits a file or pipe into the pieces that a format converts one by one.

Promise: a piece is one record, or a whole snapshot. It names its place in the file and the byte at which reading can
continue after it. JSON Lines hold one line in memory. Other JSON is checked to its end before the first piece is
returned, so a truncated file yields none. Cost: that of the parser.
"""

from collections.abc import Iterator
from io import BytesIO
from typing import Protocol

import msgspec
from msgspec import Struct

from stream_car.errors import InvalidDocument
from stream_car.feeds.fields import PIECE_MAX

LINE_SUFFIXES = (".jsonl", ".ndjson")
WHOLE_SUFFIXES = (".json",)
FILE_MAX = 1 << 30  # bytes
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_Members = list[msgspec.Raw]


class Readable(Protocol):
    """Bytes that are read once, from their beginning."""

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes, or all remaining ones."""
        ...

    def readline(self, size: int = -1, /) -> bytes:
        """Return a line with its end, or its first `size` bytes."""
        ...


class Piece(Struct, frozen=True, gc=False):
    """Bytes to convert. `where` names their place in the file, `end` is the byte at which the next piece begins.

    If `rejected` is set, there are no bytes to convert. Only a `closed` piece is certainly complete: a file may still
    grow at the end of an open one.
    """

    where: str
    data: bytes
    end: int
    rejected: InvalidDocument | None = None
    closed: bool = True


class Start(Struct, frozen=True):
    """Where reading starts: at byte `at`. `head` is the first line of the whole file."""

    at: int = 0
    head: bytes = b""


BEGINNING = Start()


class ConcatenatedStream:
    """Two streams, one after the other."""

    def __init__(self, first: Readable, second: Readable) -> None:
        self.first = first
        self.second = second

    def read(self, size: int = -1, /) -> bytes:
        data = self.first.read(size)
        return data + self.second.read(size - len(data) if size >= 0 else -1) if len(data) != size else data

    def readline(self, size: int = -1, /) -> bytes:
        """Return a line, which may begin in the first stream and end in the second."""
        data = self.first.readline(size)
        if data.endswith(b"\n") or len(data) == size:
            return data
        return data + self.second.readline(size - len(data) if size >= 0 else -1)


def peek(stream: Readable) -> tuple[bytes, Readable]:
    """Return the first line of a stream, and a stream that begins with this line."""
    first = stream.readline(PIECE_MAX + 1)
    return first, ConcatenatedStream(BytesIO(first), stream)


def decode_text(data: bytes) -> str:
    """Decode UTF-8 without its byte order mark. Raises `InvalidDocument` (`encoding`)."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidDocument("encoding", f"Byte {error.start} is not valid UTF-8.") from None


def rejected_piece(where: str, end: int, error: InvalidDocument, *, closed: bool = True) -> Piece:
    """Return a piece that cannot be converted."""
    return Piece(where, b"", end, error, closed)


def _empty(end: int) -> Piece:
    return rejected_piece("file", end, InvalidDocument("empty", "The file is empty."))


def _too_large(limit: int, end: int) -> Piece:
    return rejected_piece("file", end, InvalidDocument("size", f"The file exceeds {limit >> 20} MiB; split it."))


def whole_file(stream: Readable, name: str = "", start: Start = BEGINNING) -> Iterator[Piece]:
    """Yield the file as one piece."""
    data = stream.read(FILE_MAX + 1)
    if len(data) > FILE_MAX:
        yield _too_large(FILE_MAX, start.at)
    elif data.strip(_BLANK):
        yield Piece("file", data, start.at + len(data))
    else:
        yield _empty(start.at)


def records(
    stream: Readable, name: str = "", start: Start = BEGINNING, *, inside: tuple[str, ...] = ()
) -> Iterator[Piece]:
    """Yield JSON records: one per line, one in the file, or the members of an array.

    `inside` are the fields of an object that may hold such an array. Files named `.jsonl` or `.ndjson` are read line
    by line, `.json` files as a whole; otherwise the first line decides.
    """
    if start.at or name.endswith(LINE_SUFFIXES):
        return lines(stream, start)
    if name.endswith(WHOLE_SUFFIXES):
        return _members(stream.read(FILE_MAX + 1), inside)
    first, stream = peek(stream)
    return lines(stream) if _is_record(first) else _members(stream.read(FILE_MAX + 1), inside)


def lines(stream: Readable, start: Start = BEGINNING) -> Iterator[Piece]:
    """Yield one piece for each line that is not blank."""
    at, number = start.at, 0
    # If reading continues in the middle of a file, lines are counted from that byte.
    prefix = f"byte {at}, line" if at else "line"
    while text := stream.readline(PIECE_MAX + 1):
        number += 1
        at += len(text)
        where, closed = f"{prefix} {number}", text.endswith(b"\n")
        if len(text) > PIECE_MAX and not closed:
            while text and not text.endswith(b"\n"):
                text = stream.readline(PIECE_MAX)
                at += len(text)
            reason = f"The line exceeds {PIECE_MAX >> 20} MiB; split the record."
            yield rejected_piece(where, at, InvalidDocument("size", reason))
        elif text.strip(_BLANK):
            yield Piece(where, text.strip(_BLANK), at, None, closed)


def _is_record(first: bytes) -> bool:
    """Return whether the first line is a complete JSON object."""
    try:
        return first.lstrip(_BLANK).startswith(b"{") and bool(msgspec.json.decode(first, type=msgspec.Raw))
    except msgspec.DecodeError:
        return False


def _members(data: bytes, inside: tuple[str, ...]) -> Iterator[Piece]:
    end = len(data)
    if end > FILE_MAX:
        yield _too_large(FILE_MAX, end)
        return
    data = data.removeprefix(BYTE_ORDER_MARK)
    if not data.strip(_BLANK):
        yield _empty(end)
        return
    try:
        decode_text(data)
        if data.lstrip(_BLANK).startswith(b"["):
            yield from _array_items("item", msgspec.json.decode(data, type=_Members), end)
            return
        if len(data) > PIECE_MAX and not inside:
            yield _too_large(PIECE_MAX, end)
            return
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        for name in inside:
            if name in fields:
                yield from _array_items(name, msgspec.json.decode(fields[name], type=_Members), end)
                return
    except InvalidDocument as error:
        yield rejected_piece("file", end, error)
        return
    except msgspec.DecodeError as error:
        yield rejected_piece("file", end, InvalidDocument("syntax", f"The file is not complete, valid JSON: {error}."))
        return
    yield Piece("file", data, end)


def _array_items(name: str, members: _Members, end: int) -> Iterator[Piece]:
    for number, member in enumerate(members, 1):
        yield Piece(f"{name} {number}", bytes(member), end)

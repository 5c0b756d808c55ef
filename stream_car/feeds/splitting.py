"""A file or pipe, cut into the pieces that a format converts one by one.

Promise: a piece is a record, or a whole snapshot; it knows where it stands and where reading goes on behind
it. JSON Lines hold one line in memory; other JSON is checked to its end before the first piece is handed out,
so that a file that breaks off yields nothing. Cost: that of the parser.
"""

from collections.abc import Iterator
from typing import Protocol

import msgspec
from msgspec import Struct

from stream_car.errors import InvalidDocument
from stream_car.feeds.reading import PIECE_MAX

LINES = (".jsonl", ".ndjson")
WHOLE = (".json",)
FILE_MAX = 1 << 30
_BLANK = b" \t\r\n"
_Members = list[msgspec.Raw]


class Readable(Protocol):
    """Bytes that are read once, from their beginning."""

    def read(self, size: int = -1, /) -> bytes:
        """So many bytes, or all that are left."""
        ...

    def readline(self, size: int = -1, /) -> bytes:
        """A line with its end, or so many bytes of it."""
        ...


class Piece(Struct, frozen=True, gc=False):
    """Bytes to convert; `where` names their place in the file, `end` is where the next piece begins.

    `refused` stands instead of bytes where there is nothing to convert. Only a `closed` piece is sure to
    be complete: one behind which a growing file may still go on is not.
    """

    where: str
    data: bytes
    end: int
    refused: InvalidDocument | None = None
    closed: bool = True


class Start(Struct, frozen=True):
    """Where a file is read from: byte `at`, and the first line of the whole file."""

    at: int = 0
    head: bytes = b""


BEGINNING = Start()


class Again:
    """A stream whose first line was looked at, and is read again."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self.first = stream.readline(PIECE_MAX + 1)
        self._left = self.first

    def _taken(self, size: int) -> bytes:
        size = len(self._left) if size < 0 else size
        taken, self._left = self._left[:size], self._left[size:]
        return taken

    def read(self, size: int = -1, /) -> bytes:
        """So many bytes, or all that are left."""
        taken = self._taken(size)
        return taken + self._stream.read(size if size < 0 else size - len(taken))

    def readline(self, size: int = -1, /) -> bytes:
        """A line with its end, or so many bytes of it."""
        return self._taken(size) if self._left else self._stream.readline(size)


def refusal(where: str, end: int, error: InvalidDocument, *, closed: bool = True) -> Piece:
    """A piece that cannot be converted."""
    return Piece(where, b"", end, error, closed)


def whole(stream: Readable, name: str = "", start: Start = BEGINNING) -> Iterator[Piece]:
    """The file as one piece."""
    data = stream.read(FILE_MAX + 1)
    if len(data) > FILE_MAX:
        yield refusal("file", start.at, InvalidDocument("size", f"a file may have {FILE_MAX >> 20} MiB; split it"))
    elif data.strip(_BLANK):
        yield Piece("file", data, start.at + len(data))
    else:
        yield refusal("file", start.at, InvalidDocument("empty", "there is nothing in it"))


def records(
    stream: Readable, name: str = "", start: Start = BEGINNING, *, inside: tuple[str, ...] = ()
) -> Iterator[Piece]:
    """JSON records: one a line, one in the file, or the members of an array.

    `inside` are fields of an object that hold such an array. Names that end in `.jsonl` or `.ndjson` are read
    line by line, `.json` as a whole; of anything else the first line decides.
    """
    if start.at or name.endswith(LINES):
        return lines(stream, start)
    if name.endswith(WHOLE):
        return _members(stream.read(FILE_MAX), inside)
    again = Again(stream)
    return lines(again) if _is_record(again.first) else _members(again.read(FILE_MAX), inside)


def lines(stream: Readable, start: Start = BEGINNING) -> Iterator[Piece]:
    """One piece a line that is not blank."""
    at, number = start.at, 0
    # Where reading goes on in the middle, lines are counted from there.
    counted = f"byte {at}, line" if at else "line"
    while text := stream.readline(PIECE_MAX + 1):
        number += 1
        at += len(text)
        where, closed = f"{counted} {number}", text.endswith(b"\n")
        if len(text) > PIECE_MAX and not closed:
            while text and not text.endswith(b"\n"):
                text = stream.readline(PIECE_MAX)
                at += len(text)
            yield refusal(where, at, InvalidDocument("size", f"a line may have {PIECE_MAX >> 20} MiB"))
        elif text.strip(_BLANK):
            yield Piece(where, text.strip(_BLANK), at, None, closed)


def _is_record(first: bytes) -> bool:
    """Whether the first line is an object on its own."""
    try:
        return first.lstrip(_BLANK).startswith(b"{") and bool(msgspec.json.decode(first, type=msgspec.Raw))
    except msgspec.DecodeError:
        return False


def _members(data: bytes, inside: tuple[str, ...]) -> Iterator[Piece]:
    end = len(data)
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip(_BLANK):
        yield refusal("file", end, InvalidDocument("empty", "there is nothing in it"))
        return
    try:
        data.decode()
        if data.lstrip(_BLANK).startswith(b"["):
            yield from _numbered("item", msgspec.json.decode(data, type=_Members), end)
            return
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        for name in inside:
            if name in fields:
                yield from _numbered(name, msgspec.json.decode(fields[name], type=_Members), end)
                return
    except UnicodeDecodeError as error:
        yield refusal("file", end, InvalidDocument("encoding", f"byte {error.start} is not UTF-8"))
        return
    except msgspec.DecodeError as error:
        yield refusal("file", end, InvalidDocument("syntax", f"the file is not JSON to its end: {error}"))
        return
    yield Piece("file", data, end)


def _numbered(name: str, members: _Members, end: int) -> Iterator[Piece]:
    for number, member in enumerate(members, 1):
        yield Piece(f"{name} {number}", bytes(member), end)

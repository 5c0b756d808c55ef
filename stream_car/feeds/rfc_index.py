"""Splits the XML of the RFC index into its entries.

Promise: the text is read as a stream and never expanded: a document type or an entity declaration rejects it. An
index is a snapshot, so its entries are returned only after its end was read. Cost: memory for the entries.
"""

from collections.abc import Iterator
from xml.parsers import expat

import msgspec

from stream_car.errors import InvalidDocument
from stream_car.feeds.fields import MONTHS
from stream_car.feeds.splitting import Piece, Readable, Start, rejected_piece

CHUNK = 1 << 16  # bytes
ENTRIES_MAX = 1_000_000
DEPTH_MAX = 20
TEXT_MAX = 1 << 20  # characters of an entry
_LINKS = ("obsoletes", "obsoleted-by", "updates", "updated-by", "is-also", "see-also")


def entries(stream: Readable, name: str, start: Start) -> Iterator[Piece]:
    """Yield one piece for every RFC."""
    parser = _IndexParser()
    size = start.at
    try:
        while chunk := stream.read(CHUNK):
            size += len(chunk)
            parser.expat.Parse(chunk, False)  # noqa: FBT003  # expat takes it by position only
        parser.expat.Parse(b"", True)  # noqa: FBT003
    except expat.ExpatError as error:
        reason = f"The index is not complete, valid XML: {expat.ErrorString(error.code)}, line {error.lineno}."
        yield rejected_piece("file", size, InvalidDocument("syntax", reason))
        return
    except InvalidDocument as error:
        yield rejected_piece("file", size, error)
        return
    if not parser.entries:
        yield rejected_piece("file", size, InvalidDocument("field", "The XML contains no `rfc-entry`."))
    for number, entry in enumerate(parser.entries, 1):
        yield Piece(f"entry {number}", entry, size)


class _IndexParser:
    """Collects the entries while expat parses."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.expat = expat.ParserCreate()
        self.expat.buffer_text = True
        self.expat.StartDoctypeDeclHandler = self._reject_declaration
        self.expat.EntityDeclHandler = self._reject_declaration
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self.expat.CharacterDataHandler = self._add_text
        self._path: list[str] = []
        self._entry: dict[str, list[str]] | None = None  # texts by path below the entry
        self._size = 0

    def _reject_declaration(self, *_: object) -> None:
        raise InvalidDocument("entity", "The XML declares a document type or an entity; remove the declaration.")

    def _start(self, name: str, _: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self._path.append(name)
        if len(self._path) > DEPTH_MAX:
            raise InvalidDocument("depth", f"Elements are nested more than {DEPTH_MAX} deep.")
        if name == "rfc-entry":
            self._entry, self._size = {}, 0
        elif self._entry is not None:
            self._entry.setdefault(self._path_in_entry(), []).append("")

    def _path_in_entry(self) -> str:
        return "/".join(self._path[self._path.index("rfc-entry") + 1 :])

    def _add_text(self, text: str) -> None:
        if self._entry is None or self._path[-1] == "rfc-entry":
            return
        self._size += len(text)
        if self._size > TEXT_MAX:
            raise InvalidDocument("size", f"An entry has more than {TEXT_MAX} characters.")
        self._entry[self._path_in_entry()][-1] += text

    def _end(self, name: str) -> None:
        if self._path[-1] == "rfc-entry" and self._entry is not None:
            if len(self.entries) == ENTRIES_MAX:
                raise InvalidDocument("size", f"The index has more than {ENTRIES_MAX} entries.")
            self.entries.append(_encode(self._entry))
            self._entry = None
        self._path.pop()


def _encode(entry: dict[str, list[str]]) -> bytes:
    """Encode an entry as JSON for the converter."""

    def first(path: str) -> str:
        return " ".join(entry.get(path, [""])[0].split())

    month, day = first("date/month")[:3].lower(), first("date/day") or "1"
    is_dated = month in MONTHS and day.isascii() and day.isdigit()
    date = f"{first('date/year')}-{MONTHS.index(month) + 1:02}-{int(day):02}" if is_dated else ""
    fields = {
        "rfc": first("doc-id"),
        "title": first("title"),
        "abstract": "\n\n".join(" ".join(text.split()) for text in entry.get("abstract/p", [])),
        "date": date,
        "status": first("current-status"),
        "stream": first("stream"),
        "authors": [" ".join(name.split()) for name in entry.get("author/name", [])],
        **{link: [name.strip() for name in entry.get(f"{link}/doc-id", [])] for link in _LINKS},
    }
    return msgspec.json.encode({key: value for key, value in fields.items() if value})

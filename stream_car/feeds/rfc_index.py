"""The XML of the RFC index, cut into its entries.

Promise: the text is read as a stream and never expanded: a document type or an entity refuses it. An index
is a snapshot, so its entries are handed out only once its end was seen. Cost: memory for the entries.
"""

from collections.abc import Iterator
from xml.parsers import expat

import msgspec

from stream_car.errors import InvalidDocument
from stream_car.feeds.splitting import Piece, Readable, Start, refusal

CHUNK = 1 << 16
ENTRIES_MAX = 1_000_000
DEPTH_MAX = 20
TEXT_MAX = 1 << 20
_LINKS = ("obsoletes", "obsoleted-by", "updates", "updated-by", "is-also", "see-also")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def entries(stream: Readable, name: str, start: Start) -> Iterator[Piece]:
    """One piece for every RFC."""
    reader = _Reader()
    size = start.at
    try:
        while chunk := stream.read(CHUNK):
            size += len(chunk)
            reader.parser.Parse(chunk, False)  # noqa: FBT003  # the only spelling that expat knows
        reader.parser.Parse(b"", True)  # noqa: FBT003
    except expat.ExpatError as error:
        reason = f"the index is not XML to its end: {expat.ErrorString(error.code)}, line {error.lineno}"
        yield refusal("file", size, InvalidDocument("syntax", reason))
        return
    except InvalidDocument as error:
        yield refusal("file", size, error)
        return
    if not reader.found:
        yield refusal("file", size, InvalidDocument("field", "the XML holds no `rfc-entry`"))
    for number, entry in enumerate(reader.found, 1):
        yield Piece(f"entry {number}", entry, size)


class _Reader:
    """Gathers the entries while expat reads."""

    def __init__(self) -> None:
        self.found: list[bytes] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.parser.StartElementHandler = self._open
        self.parser.EndElementHandler = self._close
        self.parser.CharacterDataHandler = self._text
        self._path: list[str] = []
        self._entry: dict[str, list[str]] | None = None
        self._size = 0

    def _refuse(self, *_: object) -> None:
        raise InvalidDocument("entity", "the XML declares a document type or an entity, which is never read")

    def _open(self, name: str, _: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self._path.append(name)
        if len(self._path) > DEPTH_MAX:
            raise InvalidDocument("depth", f"elements may be nested {DEPTH_MAX} deep")
        if name == "rfc-entry":
            self._entry, self._size = {}, 0
        elif self._entry is not None:
            self._entry.setdefault(self._place(), []).append("")

    def _place(self) -> str:
        return "/".join(self._path[self._path.index("rfc-entry") + 1 :])

    def _text(self, text: str) -> None:
        if self._entry is None or self._path[-1] == "rfc-entry":
            return
        self._size += len(text)
        if self._size > TEXT_MAX:
            raise InvalidDocument("size", "an entry is longer than any entry of the index")
        self._entry[self._place()][-1] += text

    def _close(self, name: str) -> None:
        if self._path[-1] == "rfc-entry" and self._entry is not None:
            if len(self.found) == ENTRIES_MAX:
                raise InvalidDocument("size", f"an index may have {ENTRIES_MAX} entries")
            self.found.append(_entry(self._entry))
            self._entry = None
        self._path.pop()


def _entry(said: dict[str, list[str]]) -> bytes:
    """The entry as JSON, for the converter."""

    def first(place: str) -> str:
        return " ".join(said.get(place, [""])[0].split())

    month, day = first("date/month")[:3].lower(), first("date/day") or "1"
    is_dated = month in _MONTHS and day.isascii() and day.isdigit()
    date = f"{first('date/year')}-{_MONTHS.index(month) + 1:02}-{int(day):02}" if is_dated else ""
    read = {
        "rfc": first("doc-id"),
        "title": first("title"),
        "abstract": "\n\n".join(" ".join(text.split()) for text in said.get("abstract/p", [])),
        "date": date,
        "status": first("current-status"),
        "stream": first("stream"),
        "authors": [" ".join(name.split()) for name in said.get("author/name", [])],
        **{link: [name.strip() for name in said.get(f"{link}/doc-id", [])] for link in _LINKS},
    }
    return msgspec.json.encode({key: value for key, value in read.items() if value})

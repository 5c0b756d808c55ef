"""Standards that replace and amend one another: the RFC index and the headers of PEPs.

What decides. The publisher's numbers are the documents' ids (`RFC9110`, `PEP-8`), of type `standard`. Links are
said on either side and both count: `obsoletes` and `Replaces` on the new one, `obsoleted-by` and `Superseded-By`
on the old one. `updates` amends and voids nothing. Statuses are kept and decide nothing, for they disagree with
the links. What an index says about a standard is no statement of the standard: a changed entry is a correction
(a higher `revision`) of the same document, in the order of arrival.
"""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct, structs

from stream_car.core.documents import Document
from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import NOTHING_SEEN, Converted, Edition, Position, Seen, digest_of
from stream_car.feeds.reading import body, fitted, line, moment, rest_of, scope_of, shaped, tree_of

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
READ_RFC = ("rfc", "title", "abstract", "date", "obsoletes", "obsoleted-by", "updates")
READ_PEP = ("number", "title", "created", "superseded_by", "replaces", "path", "topic", "url")
HEADERS_MAX = 200  # lines
_NUMBER = re.compile(r"[0-9]+")
_HEADER = re.compile(r"([A-Za-z][A-Za-z-]*):[ \t]*(.*)\Z")
_DATE = re.compile(r"([0-9]{1,2})-([A-Za-z]{3})[A-Za-z]*-([0-9]{4})\Z")


class Rfc(Struct, rename="kebab"):
    """An entry of the RFC index, as the reader of its XML hands it over."""

    rfc: str
    date: str
    title: str = ""
    abstract: str = ""
    obsoletes: list[str] = []
    obsoleted_by: list[str] = []
    updates: list[str] = []


class Pep(Struct):
    """The headers of a PEP."""

    number: int
    title: str = ""
    created: str = ""
    superseded_by: str | None = None
    replaces: str | None = None


def convert(position: Position, data: bytes) -> Converted:
    """An entry of the RFC index, the headers of a PEP, or a table of such headers by number."""
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return _converted(position, [_pep(_headers(data))])
    tree = tree_of(data)
    if "rfc" in tree:
        return _converted(position, [_rfc(tree)])
    if "number" in tree:
        return _converted(position, [_pep(tree)])
    rows = [row for row in tree.values() if isinstance(row, dict) and "number" in row]
    if not rows or len(rows) < len(tree):
        raise InvalidDocument("field", "this is no PEP's headers: there is no `number`")
    return _converted(position, [_pep(row) for row in rows])


def _converted(position: Position, entries: list[Document]) -> Converted:
    documents: list[Document] = []
    seen: dict[str, Seen] = {}
    for entry in entries:
        before = seen.get(entry.id) or position.get(entry.id) or NOTHING_SEEN
        digest = digest_of(entry)
        if before.editions and before.editions[-1].digest == digest:
            continue
        nth = before.editions[-1].order + 1 if before.editions else 1
        documents.append(fitted(structs.replace(entry, revision=nth)))
        seen[entry.id] = Seen((Edition(0, entry.time, nth, digest),))
    return Converted(documents=documents, seen=seen, records=len(entries), known=len(entries) - len(documents))


def _rfc(tree: dict[str, object]) -> Document:
    said = shaped(tree, Rfc)
    time = moment(said.date, what="the date", name=said.rfc)
    if time is None:
        raise InvalidDocument("time", "the entry has no date", said.rfc)
    return Document(
        id=said.rfc,
        type="standard",
        time=time,
        scope=scope_of({"record": (said.rfc,)}),
        supersedes=_others(said.obsoletes, said.rfc),
        superseded_by=_others(said.obsoleted_by, said.rfc),
        amends=_others(said.updates, said.rfc),
        attributes=rest_of(tree, READ_RFC),
        title=line(f"{said.rfc}: {said.title}"),
        text=body(said.title, said.abstract),
        source="RFC Editor",
        url=f"https://www.rfc-editor.org/info/{said.rfc.lower()}",
    )


def _others(names: list[str], own: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name != own))


def _pep(tree: Mapping[str, object]) -> Document:
    said = shaped(dict(tree), Pep)
    name = f"PEP-{said.number}"
    return Document(
        id=name,
        type="standard",
        time=_created(said.created, name),
        scope=scope_of({"record": (name,)}),
        supersedes=tuple(_peps(said.replaces, name)),
        superseded_by=tuple(_peps(said.superseded_by, name)),
        attributes={key: value for key, value in rest_of(tree, READ_PEP).items() if value is not None},
        title=line(f"PEP {said.number}: {said.title}"),
        text=body(said.title),
        source="Python",
        url=f"https://peps.python.org/pep-{said.number:04}/",
    )


def _peps(text: str | None, own: str) -> Iterator[str]:
    for number in dict.fromkeys(_NUMBER.findall(text or "")):
        if (name := f"PEP-{int(number)}") != own:
            yield name


def _created(text: str, name: str) -> int:
    match = _DATE.match(text.strip())
    if match is not None and match[2].lower() in MONTHS:
        text = f"{match[3]}-{MONTHS.index(match[2].lower()) + 1:02}-{int(match[1]):02}"
    found = moment(text, what="`Created`", name=name)
    if found is None:
        raise InvalidDocument("time", "`Created` says no date", name)
    return found


def _headers(data: bytes) -> dict[str, object]:
    """The header fields of a PEP's source, folded lines joined."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidDocument("encoding", f"byte {error.start} is not UTF-8") from None
    fields: dict[str, str] = {}
    last = ""
    for row in text.splitlines()[:HEADERS_MAX]:
        match = _HEADER.match(row)
        if match is not None:
            last = match[1].lower().replace("-", "_")
            fields[last] = match[2].strip()
        elif row[:1] in (" ", "\t") and last:
            fields[last] = f"{fields[last]} {row.strip()}"
        else:
            break
    else:
        raise InvalidDocument("truncated", "the headers do not end with an empty line")
    number = fields.pop("pep", "")
    if not number.isascii() or not number.isdigit():
        raise InvalidDocument("field", "the text does not begin with the header `PEP: NUMBER`")
    return {"number": int(number), **fields}

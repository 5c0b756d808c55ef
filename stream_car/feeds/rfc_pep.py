"""Standards that replace and amend one another: the RFC index and the headers of PEPs.

What decides. The publisher's numbers are the ids of the documents (`RFC9110`, `PEP-8`), of type `standard`. Links are
published on both sides and both count: `obsoletes` and `Replaces` on the newer document, `obsoleted-by` and
`Superseded-By` on the older one. `updates` amends and voids nothing. Statuses are kept as attributes and decide
nothing, because they disagree with the links. An index only describes a standard, so a changed entry is a correction
(a higher `revision`) of the same document, ordered by arrival.
"""

import re
from collections.abc import Mapping

from msgspec import Struct, structs

from stream_car.core.documents import Document
from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import EMPTY_STATE, Conversion, Edition, FeedState, RecordState, digest_of
from stream_car.feeds.fields import MONTHS, decode_fields, make_document, other_fields, parse_object, require_date
from stream_car.feeds.splitting import BYTE_ORDER_MARK, decode_text

RFC_CONVERTED = ("rfc", "title", "abstract", "date", "obsoletes", "obsoleted-by", "updates")
PEP_CONVERTED = ("number", "title", "created", "superseded_by", "replaces", "path", "topic", "url")
HEADERS_MAX = 200  # lines
_NUMBER = re.compile(r"[0-9]+")
_HEADER = re.compile(r"([A-Za-z][A-Za-z-]*):[ \t]*(.*)\Z")
_DATE = re.compile(r"([0-9]{1,2})-([A-Za-z]{3})[A-Za-z]*-([0-9]{4})\Z")


class Rfc(Struct, rename="kebab"):
    """An entry of the RFC index, as `rfc_index` encodes it."""

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


def convert(state: FeedState, data: bytes) -> Conversion:
    """Convert an entry of the RFC index, the headers of a PEP, or a table of such headers by number."""
    if not data.lstrip(BYTE_ORDER_MARK + b" \t\r\n").startswith(b"{"):
        return _conversion(state, [_pep(_parse_headers(data))])
    tree = parse_object(data)
    if "rfc" in tree:
        return _conversion(state, [_rfc(tree)])
    if "number" in tree:
        return _conversion(state, [_pep(tree)])
    rows = [row for row in tree.values() if isinstance(row, dict) and "number" in row]
    if not rows or len(rows) < len(tree):
        raise InvalidDocument("field", "The headers of a PEP need a `number`.")
    return _conversion(state, [_pep(row) for row in rows])


def _conversion(state: FeedState, standards: list[Document]) -> Conversion:
    documents: list[Document] = []
    states: dict[str, RecordState] = {}
    for standard in standards:
        before = states.get(standard.id) or state.get(standard.id) or EMPTY_STATE
        digest = digest_of(standard)
        if before.editions and before.editions[-1].digest == digest:
            continue
        revision = before.editions[-1].order + 1 if before.editions else 1
        documents.append(structs.replace(standard, revision=revision))
        states[standard.id] = RecordState((Edition(0, standard.time, revision, digest),))
    known = len(standards) - len(documents)
    return Conversion(documents=documents, states=states, records=len(standards), known=known)


def _rfc(tree: dict[str, object]) -> Document:
    rfc = decode_fields(tree, Rfc)
    return make_document(
        {"record": (rfc.rfc,)},
        id=rfc.rfc,
        type="standard",
        time=require_date(rfc.date, "`date`", rfc.rfc),
        supersedes=_without(rfc.obsoletes, rfc.rfc),
        superseded_by=_without(rfc.obsoleted_by, rfc.rfc),
        amends=_without(rfc.updates, rfc.rfc),
        attributes=other_fields(tree, RFC_CONVERTED),
        title=f"{rfc.rfc}: {rfc.title}",
        text=(rfc.title, rfc.abstract),
        source="RFC Editor",
        url=f"https://www.rfc-editor.org/info/{rfc.rfc.lower()}",
    )


def _without(names: list[str], own_name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name != own_name))


def _pep(tree: Mapping[str, object]) -> Document:
    pep = decode_fields(dict(tree), Pep)
    name = f"PEP-{pep.number}"
    return make_document(
        {"record": (name,)},
        id=name,
        type="standard",
        time=_parse_created(pep.created, name),
        supersedes=_without(_pep_names(pep.replaces), name),
        superseded_by=_without(_pep_names(pep.superseded_by), name),
        attributes={key: value for key, value in other_fields(tree, PEP_CONVERTED).items() if value is not None},
        title=f"PEP {pep.number}: {pep.title}",
        text=(pep.title,),
        source="Python",
        url=f"https://peps.python.org/pep-{pep.number:04}/",
    )


def _pep_names(text: str | None) -> list[str]:
    return [f"PEP-{int(number)}" for number in _NUMBER.findall(text or "")]


def _parse_created(text: str, name: str) -> int:
    match = _DATE.match(text.strip())
    if match is not None and match[2].lower() in MONTHS:
        text = f"{match[3]}-{MONTHS.index(match[2].lower()) + 1:02}-{int(match[1]):02}"
    return require_date(text, "`Created`", name)


def _parse_headers(data: bytes) -> dict[str, object]:
    """Parse the header fields of a PEP's source. Folded lines are joined."""
    fields: dict[str, str] = {}
    last = ""
    for row in decode_text(data).splitlines()[:HEADERS_MAX]:
        match = _HEADER.match(row)
        if match is not None:
            last = match[1].lower().replace("-", "_")
            fields[last] = match[2].strip()
        elif row[:1] in (" ", "\t") and last:
            fields[last] = f"{fields[last]} {row.strip()}"
        else:
            break
    else:
        raise InvalidDocument("truncated", "The headers must end with an empty line.")
    number = fields.pop("pep", "")
    if not number.isascii() or not number.isdigit():
        raise InvalidDocument("field", "The text must begin with the header `PEP: NUMBER`.")
    return {"number": int(number), **fields}

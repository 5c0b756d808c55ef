"""The catalogue of known exploited vulnerabilities: each file is a snapshot of all of it.

What decides. Order: `dateReleased`; a snapshot older than the last one read is refused, for what has vanished
since could not be told from what had not come yet. An entry that changed is a new edition (`known_exploited`);
one that is no longer there is retracted with all its editions. A catalogue counts whole or not at all: one that
breaks off, names an entry twice or holds another number of entries than its `count` changes nothing. Scope: the
CVE with the product. Link: an entry amends the CVE's own record, also where that was edited later. An edition
is called `KEV:CVE@RELEASED`, its record `KEV:CVE`.
"""

import re

from msgspec import Struct

from stream_car.codec import format_time
from stream_car.core.documents import Document, Retraction
from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import (
    NOTHING_SEEN,
    Converted,
    Edition,
    Position,
    Seen,
    digest_of,
    next_edition,
    remembered,
)
from stream_car.feeds.reading import body, fitted, line, moment, rest_of, scope_of, shaped, tree_of

READ = ("cveID", "vulnerabilityName", "shortDescription", "requiredAction", "notes", "vendorProject", "product")
CATALOGUE = "catalogue"
_CVE = re.compile(r"CVE-[0-9]{4}-[0-9]{4,}\Z")


class Entry(Struct):
    """A vulnerability that is exploited."""

    cveID: str
    vendorProject: str = ""
    product: str = ""
    vulnerabilityName: str = ""
    shortDescription: str = ""
    requiredAction: str = ""
    notes: str = ""


class Catalogue(Struct):
    """All of them, at one time."""

    dateReleased: str
    vulnerabilities: list[Entry]
    count: int | None = None


def convert(position: Position, data: bytes) -> Converted:
    """One snapshot: what came, what changed and what is gone since the one before."""
    tree = tree_of(data)
    said = shaped(tree, Catalogue)
    released = moment(said.dateReleased, what="`dateReleased`")
    if released is None:
        raise InvalidDocument("time", "`dateReleased` says no date")
    listed = _listed(said)
    before = position.get(CATALOGUE) or NOTHING_SEEN
    last = before.editions[-1] if before.editions else None
    digest = digest_of(tree)
    if last is not None and last.digest == digest:
        return Converted(records=len(listed), known=len(listed))
    if last is not None and released < last.time:
        raise InvalidDocument("older", f"this catalogue is older than the last one read ({format_time(last.time)})")
    raw = tree["vulnerabilities"]
    assert isinstance(raw, list)
    statements: list[Document | Retraction] = []
    seen: dict[str, Seen] = {}
    for entry, whole in zip(said.vulnerabilities, raw, strict=True):
        record = position.get(entry.cveID) or NOTHING_SEEN
        following = next_edition(record, digest=digest_of(whole), time=released)
        if following is None:
            continue
        document = _document(entry, whole, following.edition, sum(e.time == released for e in record.editions))
        statements.append(fitted(document))
        after = remembered(record, following.edition)
        seen[entry.cveID] = Seen(after.editions, (*record.listed, document.id))
    for gone in sorted(set(before.listed) - set(listed)):
        record = position.get(gone) or NOTHING_SEEN
        statements += [Retraction(id=name, revision=1) for name in record.listed]
        seen[gone] = NOTHING_SEEN
    order = last.order + 1 if last is not None else 0
    seen[CATALOGUE] = Seen((Edition(0, released, order, digest),), tuple(listed))
    return Converted(documents=statements, seen=seen, records=len(listed), known=len(listed) - _new(statements))


def _new(statements: list[Document | Retraction]) -> int:
    return sum(isinstance(one, Document) for one in statements)


def _listed(said: Catalogue) -> list[str]:
    names = [entry.cveID for entry in said.vulnerabilities]
    if said.count is not None and said.count != len(names):
        raise InvalidDocument("count", f"the catalogue holds {len(names)} entries and says {said.count}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidDocument("duplicate", f"the catalogue names {twice[:40]!r} twice")
    for name in names:
        if _CVE.match(name) is None:
            raise InvalidDocument("field", f"the catalogue names {name[:40]!r}, which is no CVE")
    return names


def _document(entry: Entry, whole: dict[str, object], edition: Edition, nth: int) -> Document:
    label = format_time(edition.time) + (f".{nth + 1}" if nth else "")
    return Document(
        id=f"KEV:{entry.cveID}@{label}",
        type="known_exploited",
        time=edition.time,
        order=edition.order,
        scope=scope_of(
            {"record": (f"KEV:{entry.cveID}",)}, {"vulnerability": (entry.cveID,), "package": (entry.product,)}
        ),
        amends=(entry.cveID,),
        attributes={**rest_of(whole, READ), "vendor": entry.vendorProject, "notes": entry.notes},
        title=line(f"Exploited: {entry.vulnerabilityName or entry.cveID}"),
        text=body(f"{entry.cveID} is known to be exploited.", entry.shortDescription, entry.requiredAction),
        source="CISA KEV",
        url=f"https://www.cisa.gov/known-exploited-vulnerabilities-catalog?search_api_fulltext={entry.cveID}",
    )

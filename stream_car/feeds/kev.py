"""The catalogue of known exploited vulnerabilities: each file is a snapshot of the whole catalogue.

What decides. Order: `dateReleased`; a snapshot older than the last one read is rejected, because entries removed since
then look the same as entries not added yet. A changed entry is a new edition (`known_exploited`); an entry that is no
longer listed is retracted with all its editions. A catalogue counts completely or not at all: if it is truncated,
lists an entry twice or does not match its `count`, nothing changes. Scope: the CVE with the product. Link: an entry
amends the CVE's own record, also after that record is edited. An edition's id is `KEV:CVE@RELEASED`, its record
`KEV:CVE`. Material: the product, the action, its due date, and whether ransomware uses it. An entry with another name,
description or notes is only `revised`.
"""

import re

from msgspec import Struct

from stream_car.codec import format_time
from stream_car.core.documents import Document, Retraction
from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import (
    EMPTY_STATE,
    Conversion,
    Edition,
    FeedState,
    RecordState,
    add_edition,
    digest_of,
    material_digest,
    next_edition,
)
from stream_car.feeds.fields import decode_fields, make_document, other_fields, parse_object, require_date

CONVERTED = ("cveID", "vulnerabilityName", "shortDescription", "requiredAction", "notes", "vendorProject", "product")
CATALOGUE = "catalogue"  # the record that keeps the state of the snapshots themselves
MATERIAL = ("vendorProject", "product", "requiredAction", "dueDate", "knownRansomwareCampaignUse")
_CVE = re.compile(r"CVE-[0-9]{4}-[0-9]{4,}\Z")


class ExploitedVulnerability(Struct):
    """An entry of the catalogue."""

    cveID: str
    vendorProject: str = ""
    product: str = ""
    vulnerabilityName: str = ""
    shortDescription: str = ""
    requiredAction: str = ""
    notes: str = ""


class Catalogue(Struct):
    """All entries at one time."""

    dateReleased: str
    vulnerabilities: list[ExploitedVulnerability]
    count: int | None = None


def convert(state: FeedState, data: bytes) -> Conversion:
    """Convert one snapshot: entries that were added, changed or removed since the previous one."""
    tree = parse_object(data)
    catalogue = decode_fields(tree, Catalogue)
    released = require_date(catalogue.dateReleased, "`dateReleased`")
    listed = _cve_ids(catalogue)
    before = state.get(CATALOGUE) or EMPTY_STATE
    last = before.editions[-1] if before.editions else None
    digest = digest_of(tree)
    if last is not None and last.digest == digest:
        return Conversion(records=len(listed), known=len(listed))
    if last is not None and released < last.time:
        reason = f"The catalogue is older than the last one read, released {format_time(last.time)}; give a later one."
        raise InvalidDocument("older", reason)
    raw_entries = tree["vulnerabilities"]
    assert isinstance(raw_entries, list)
    statements: list[Document | Retraction] = []
    states: dict[str, RecordState] = {}
    for entry, raw_entry in zip(catalogue.vulnerabilities, raw_entries, strict=True):
        record = state.get(entry.cveID) or EMPTY_STATE
        new = next_edition(record, digest=digest_of(raw_entry), time=released)
        if new is None:
            continue
        nth = sum(edition.time == released for edition in record.editions)
        document = _document(entry, raw_entry, new.edition, nth)
        statements.append(document)
        editions = add_edition(record, new.edition).editions
        states[entry.cveID] = RecordState(editions, (*record.listed, document.id))
    added_or_changed = len(statements)
    for removed in sorted(set(before.listed) - set(listed)):
        record = state.get(removed) or EMPTY_STATE
        statements += [Retraction(id=name, revision=1) for name in record.listed]
        states[removed] = EMPTY_STATE
    order = last.order + 1 if last is not None else 0
    states[CATALOGUE] = RecordState((Edition(0, released, order, digest),), tuple(listed))
    known = len(listed) - added_or_changed
    return Conversion(documents=statements, states=states, records=len(listed), known=known)


def _cve_ids(catalogue: Catalogue) -> list[str]:
    """Return the CVEs of the entries. Raises `InvalidDocument` if the catalogue is not consistent."""
    names = [entry.cveID for entry in catalogue.vulnerabilities]
    if catalogue.count is not None and catalogue.count != len(names):
        reason = f"The catalogue has {len(names)} entries, but its `count` is {catalogue.count}; download it again."
        raise InvalidDocument("count", reason)
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise InvalidDocument("duplicate", f"The catalogue lists {repeated[:40]!r} twice.")
    for name in names:
        if _CVE.match(name) is None:
            raise InvalidDocument("field", f"The catalogue lists {name[:40]!r}, which is not a CVE id (CVE-2024-1234).")
    return names


def _document(entry: ExploitedVulnerability, raw_entry: dict[str, object], edition: Edition, nth: int) -> Document:
    label = format_time(edition.time) + (f".{nth + 1}" if nth else "")
    return make_document(
        {"record": (f"KEV:{entry.cveID}",)},
        {"vulnerability": (entry.cveID,), "package": (entry.product,)},
        id=f"KEV:{entry.cveID}@{label}",
        type="known_exploited",
        time=edition.time,
        order=edition.order,
        amends=(entry.cveID,),
        attributes={
            **other_fields(raw_entry, CONVERTED),
            "vendor": entry.vendorProject,
            "notes": entry.notes,
            "material": material_digest([raw_entry.get(field) for field in MATERIAL]),
        },
        title=f"Exploited: {entry.vulnerabilityName or entry.cveID}",
        text=(f"{entry.cveID} is known to be exploited.", entry.shortDescription, entry.requiredAction),
        source="CISA KEV",
        url=f"https://www.cisa.gov/known-exploited-vulnerabilities-catalog?search_api_fulltext={entry.cveID}",
    )

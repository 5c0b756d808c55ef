"""CVE records, format 5: PUBLISHED and REJECTED.

What decides. Record: `cveMetadata.cveId`. Order: arrival, because `dateUpdated` goes back and records change without
it. Time: `dateUpdated` as far as it agrees with that order (then `dateRejected`, then `datePublished`). Types:
`cve_disclosed` while published, `cve_rejected` once rejected; a record that is published again voids its rejection.
A rejected record is superseded by the records in `replacedBy`; names in the text of the reason are not links.
Scope: the CVE with the products of all containers; without products if they are more than 1,000, which `left_out` then
lists. An edition's id is `CVE@N`. Material: the state, `replacedBy`, and what `affected` says of products and versions.
An edition with other texts, metrics or references is only `revised`. `datePublished` opens the record.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, to_builtins

from stream_car.codec import format_time
from stream_car.codec.times import EARLIEST
from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import (
    EMPTY_STATE,
    Conversion,
    FeedState,
    add_edition,
    digest_of,
    material_digest,
    next_edition,
)
from stream_car.feeds.fields import (
    LEFT_OUT,
    decode_fields,
    first_sentence,
    make_document,
    other_fields,
    parse_date,
    parse_object,
    record_since,
)

CONVERTED = ("dataType", "dataVersion", "cveMetadata", "containers")
TYPES = {"PUBLISHED": "cve_disclosed", "REJECTED": "cve_rejected"}
NO_PRODUCT = frozenset({"", "n/a", "unspecified", "unknown"})
PRODUCTS_MAX = 1000


class CveMetadata(Struct):
    """The id, state and dates of the record."""

    cveId: str
    state: str
    dateUpdated: str | None = None
    datePublished: str | None = None
    dateRejected: str | None = None
    assignerShortName: str = ""


class Text(Struct):
    """A text in a language."""

    value: str = ""
    lang: str = ""


class AffectedProduct(Struct):
    """A product."""

    product: str = ""
    packageName: str = ""
    vendor: object = None
    collectionURL: object = None
    defaultStatus: object = None
    versions: object = None
    platforms: object = None


class Container(Struct):
    """What one organisation publishes about the CVE."""

    affected: list[AffectedProduct] = []
    title: str = ""
    descriptions: list[Text] = []
    rejectedReasons: list[Text] = []
    replacedBy: list[str] = []
    tags: list[str] = []


class Containers(Struct):
    """The assigner's container, and those that others add."""

    cna: Container
    adp: list[Container] = []


class CveRecord(Struct):
    """A CVE record."""

    cveMetadata: CveMetadata
    containers: Containers


def convert(state: FeedState, data: bytes) -> Conversion:
    """Convert one record."""
    tree = parse_object(data)
    record = decode_fields(tree, CveRecord)
    metadata, cna = record.cveMetadata, record.containers.cna
    name = metadata.cveId.strip().upper()
    if not name.startswith("CVE-"):
        raise InvalidDocument("field", f"`cveId` is {metadata.cveId[:40]!r}; it must be a CVE id (CVE-2024-1234).")
    if metadata.state not in TYPES:
        reason = f"`state` is {metadata.state[:40]!r}; it must be PUBLISHED or REJECTED."
        raise InvalidDocument("field", reason, name)
    before = state.get(name) or EMPTY_STATE
    new = next_edition(before, digest=digest_of(tree), time=_time(metadata, name))
    if new is None:
        return Conversion(known=1)
    edition = new.edition
    reasons = _texts(cna.rejectedReasons)
    descriptions = _texts(cna.descriptions)
    is_rejected = metadata.state == "REJECTED"
    title = cna.title or first_sentence(descriptions[0] if descriptions else "")
    successors = dict.fromkeys(other.strip().upper() for other in cna.replacedBy) if is_rejected else ()
    products = _products(record.containers)
    has_too_many_products = len(products) > PRODUCTS_MAX
    document = make_document(
        {"record": (name,)},
        {"vulnerability": (name,), "package": () if has_too_many_products else products},
        id=f"{name}@{len(before.editions) + 1}",
        type=TYPES[metadata.state],
        time=edition.time,
        order=edition.order,
        superseded_by=tuple(other for other in successors if other and other != name),
        attributes={
            **other_fields(tree, CONVERTED),
            "state": metadata.state,
            "material": _material(record),
            **_state_since(metadata, name),
            **record_since(metadata.datePublished),
            **({"tags": cna.tags} if cna.tags else {}),
            **({"cve_affected": affected} if (affected := _affected(tree)) else {}),
            **({LEFT_OUT: ["products"]} if has_too_many_products else {}),
        },
        title=f"{name} is rejected" if is_rejected else f"{name}: {title}",
        text=reasons if is_rejected else (cna.title, *descriptions),
        source=metadata.assignerShortName,
        url=f"https://www.cve.org/CVERecord?id={name}",
    )
    return Conversion(documents=(document,), states={name: add_edition(before, edition)})


def _material(record: CveRecord) -> str:
    containers = (record.containers.cna, *record.containers.adp)
    affected = {digest_of(to_builtins(product)).hex() for container in containers for product in container.affected}
    return material_digest([record.cveMetadata.state, sorted(record.containers.cna.replacedBy), sorted(affected)])


def _affected(tree: Mapping[str, object]) -> list[object]:
    """Return what all containers say of products and versions, as it was published."""
    containers = tree["containers"]
    assert isinstance(containers, dict)
    return [
        entry
        for container in (containers["cna"], *containers.get("adp", ()))
        for entry in container.get("affected", ())
    ]


def _state_since(metadata: CveMetadata, name: str) -> dict[str, object]:
    """Return the attribute that says since when a record is rejected, if it says so."""
    rejected = metadata.dateRejected if metadata.state == "REJECTED" else None
    since = parse_date(rejected, "`dateRejected`", name)
    return {"state_since": format_time(since)} if since is not None else {}


def _time(metadata: CveMetadata, name: str) -> int:
    rejected = metadata.dateRejected if metadata.state == "REJECTED" else None
    for text in (metadata.dateUpdated, rejected, metadata.datePublished):
        if (time := parse_date(text, "A date of `cveMetadata`", name)) is not None:
            return time
    return EARLIEST


def _texts(texts: Sequence[Text]) -> list[str]:
    """Return the English texts, or all if none is English."""
    return [text.value for text in texts if text.lang.lower().startswith("en")] or [text.value for text in texts]


def _products(containers: Containers) -> tuple[str, ...]:
    """Return the products of all containers, each once."""
    products = dict.fromkeys(
        name.strip()
        for container in (containers.cna, *containers.adp)
        for affected in container.affected
        if (name := affected.packageName or affected.product).strip().lower() not in NO_PRODUCT
    )
    return tuple(products)

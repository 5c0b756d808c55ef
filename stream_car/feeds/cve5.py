"""CVE records, format 5: PUBLISHED and REJECTED.

What decides. Record: `cveMetadata.cveId`. Order: that of arrival, for `dateUpdated` goes back and records change
without it; it is the time as far as it agrees (then `dateRejected`, `datePublished`). Types: `cve_disclosed`
while published, `cve_rejected` once rejected; a record that is published again voids its rejection. A rejected
record is void in favour of those that `replacedBy` names; names in the reason's text are no links. Scope: the
CVE with the products of all containers. An edition is called `CVE@N`.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from stream_car.codec.times import EARLIEST
from stream_car.core.documents import Document
from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import NOTHING_SEEN, Converted, Position, digest_of, next_edition, remembered
from stream_car.feeds.reading import body, first_sentence, fitted, line, moment, rest_of, scope_of, shaped, tree_of

READ = ("dataType", "dataVersion", "cveMetadata", "containers")
TYPES = {"PUBLISHED": "cve_disclosed", "REJECTED": "cve_rejected"}
NO_PRODUCT = frozenset({"", "n/a", "unspecified", "unknown"})
PRODUCTS_MAX = 1000


class Metadata(Struct):
    """Which record this is, and what became of it."""

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


class Affected(Struct):
    """A product."""

    product: str = ""
    packageName: str = ""


class Container(Struct):
    """What one organisation says of it."""

    affected: list[Affected] = []
    title: str = ""
    descriptions: list[Text] = []
    rejectedReasons: list[Text] = []
    replacedBy: list[str] = []
    tags: list[str] = []


class Containers(Struct):
    """What the assigner says, and what others add."""

    cna: Container
    adp: list[Container] = []


class Record(Struct):
    """A CVE record."""

    cveMetadata: Metadata
    containers: Containers


def convert(position: Position, data: bytes) -> Converted:
    """One record."""
    tree = tree_of(data)
    said = shaped(tree, Record)
    meta, cna = said.cveMetadata, said.containers.cna
    name = meta.cveId.strip().upper()
    if not name.startswith("CVE-"):
        raise InvalidDocument("field", f"`cveId` is {meta.cveId[:40]!r}, which names no CVE")
    if meta.state not in TYPES:
        raise InvalidDocument("field", f"`state` is {meta.state[:40]!r}, neither PUBLISHED nor REJECTED", name)
    seen = position.get(name) or NOTHING_SEEN
    following = next_edition(seen, digest=digest_of(tree), time=_time(meta, name))
    if following is None:
        return Converted(known=1)
    edition = following.edition
    reasons = _texts(cna.rejectedReasons)
    descriptions = _texts(cna.descriptions)
    is_rejected = meta.state == "REJECTED"
    title = cna.title or first_sentence(descriptions[0] if descriptions else "")
    successors = tuple(dict.fromkeys(one.strip().upper() for one in cna.replacedBy)) if is_rejected else ()
    document = Document(
        id=f"{name}@{len(seen.editions) + 1}",
        type=TYPES[meta.state],
        time=edition.time,
        order=edition.order,
        scope=scope_of({"record": (name,)}, {"vulnerability": (name,), "package": tuple(_products(said.containers))}),
        superseded_by=tuple(one for one in successors if one and one != name),
        attributes={**rest_of(tree, READ), "state": meta.state, **({"tags": cna.tags} if cna.tags else {})},
        title=line(f"{name} is rejected" if is_rejected else f"{name}: {title}"),
        text=body(*(reasons if is_rejected else (cna.title, *descriptions))),
        source=line(meta.assignerShortName),
        url=f"https://www.cve.org/CVERecord?id={name}",
    )
    return Converted(documents=(fitted(document),), seen={name: remembered(seen, edition)})


def _time(meta: Metadata, name: str) -> int:
    for text in (meta.dateUpdated, meta.dateRejected if meta.state == "REJECTED" else None, meta.datePublished):
        if (found := moment(text, what="a date of `cveMetadata`", name=name)) is not None:
            return found
    return EARLIEST


def _texts(some: Sequence[Text]) -> list[str]:
    """The English texts; where there are none, all."""
    return [one.value for one in some if one.lang.lower().startswith("en")] or [one.value for one in some]


def _products(containers: Containers) -> Iterator[str]:
    found = dict.fromkeys(
        name.strip()
        for container in (containers.cna, *containers.adp)
        for one in container.affected
        if (name := one.packageName or one.product).strip().lower() not in NO_PRODUCT
    )
    if len(found) <= PRODUCTS_MAX:
        yield from found

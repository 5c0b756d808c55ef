"""CSAF 2.0 and 2.1 advisories.

What decides. Record: `tracking.id`, whatever its case, of one publisher (`publisher.namespace`); links name it
by its file name as well, as references do. Order: `tracking.version`, and under one version the order of
arrival, for publishers change files silently; `current_release_date` is the time as far as it agrees, since it
sometimes goes back. Scope: one map for every vulnerability with the products that its own `product_status`
names; products go by the name of their `product_name` branch. Beyond 1,000 pairs a document is found by its
record and vulnerabilities only. Types: `csaf_withdrawn` is `advisory_withdrawn`; `csaf_superseded` is
`advisory_superseded`, and void in favour of what its `external` references name; all others are `advisory`.
An edition is called `ID@VERSION`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from stream_car.core.documents import Document
from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import NOTHING_SEEN, Converted, Position, digest_of, next_edition, remembered
from stream_car.feeds.reading import LEFT_OUT, body, fitted, line, moment, rest_of, scope_of, shaped, tree_of, word

PAIRS_MAX = 1000
PART_MAX = 1000  # of a version: three such parts and the editions under one version make one order
TYPES = {"csaf_withdrawn": "advisory_withdrawn", "csaf_superseded": "advisory_superseded"}
READ = ("document", "product_tree", "vulnerabilities", "$schema")
_FILE_NAME = re.compile(r"[^+\-a-z0-9]+")
_JSON_FILE = re.compile(r"/([^/?#]+)\.json(?:[?#].*)?\Z", re.IGNORECASE)


class Tracking(Struct):
    """Which document this is, and which version of it."""

    id: str
    version: str
    current_release_date: str
    status: str = ""
    initial_release_date: str | None = None


class Publisher(Struct):
    """Who says it."""

    name: str = ""
    namespace: str = ""


class Reference(Struct):
    """Where else to read."""

    url: str = ""
    category: str = ""
    summary: str = ""


class Note(Struct):
    """Text for people."""

    text: str = ""
    category: str = ""


class Head(Struct):
    """The part about the document itself."""

    tracking: Tracking
    publisher: Publisher
    category: str = ""
    title: str = ""
    references: list[Reference] = []
    notes: list[Note] = []


class Product(Struct):
    """A product by its id."""

    product_id: str
    name: str = ""


class Branch(Struct):
    """A part of the product tree."""

    name: str = ""
    category: str = ""
    product: Product | None = None
    branches: list["Branch"] = []


class Relationship(Struct):
    """A product that is another one, installed somewhere."""

    full_product_name: Product
    product_reference: str = ""


class Tree(Struct):
    """All products of the document."""

    branches: list[Branch] = []
    full_product_names: list[Product] = []
    relationships: list[Relationship] = []


class Name(Struct):
    """A vulnerability's name in some system."""

    text: str = ""


class Remediation(Struct):
    """What to do about it."""

    category: str = ""
    details: str = ""


class Vulnerability(Struct):
    """A vulnerability, and the products that it concerns."""

    cve: str | None = None
    ids: list[Name] = []
    title: str = ""
    product_status: dict[str, list[str]] = {}
    remediations: list[Remediation] = []
    notes: list[Note] = []


class Advisory(Struct):
    """A CSAF document."""

    document: Head
    product_tree: Tree | None = None
    vulnerabilities: list[Vulnerability] | None = None


def convert(position: Position, data: bytes) -> Converted:
    """One advisory."""
    tree = tree_of(data)
    said = shaped(tree, Advisory)
    head, tracking = said.document, said.document.tracking
    name = word(tracking.id).upper()
    file_name = file_name_of(tracking.id)
    if not name:
        raise InvalidDocument("field", "`document.tracking.id` is empty")
    seen = position.get(file_name) or NOTHING_SEEN
    if seen.editions and seen.owner != head.publisher.namespace:
        raise InvalidDocument("publisher", f"{seen.owner or 'another publisher'} has used this tracking id", name)
    rank = _rank(tracking.version, name)
    time = moment(tracking.current_release_date, what="`current_release_date`", name=name)
    if time is None:
        raise InvalidDocument("time", "`current_release_date` says no date", name)
    digest = digest_of(tree)
    following = next_edition(seen, digest=digest, time=time, rank=rank, base=rank * PART_MAX)
    if following is None:
        return Converted(known=1)
    kind = TYPES.get(head.category, "advisory")
    pairs, is_whole = _pairs(said)
    attributes = {
        **rest_of(tree, READ),
        "category": head.category,
        "version": tracking.version,
        "status": tracking.status,
        "released": tracking.current_release_date,
        "remediations": [
            {"vulnerability": _names(one)[:1], "category": remedy.category, "details": remedy.details}
            for one in said.vulnerabilities or ()
            for remedy in one.remediations
        ],
        **({} if is_whole else {LEFT_OUT: ["products"]}),
    }
    label = tracking.version + (f".seen{following.nth + 1}" if following.nth else "")
    document = Document(
        id=f"{name}@{label}",
        type=kind,
        time=following.edition.time,
        order=following.edition.order,
        scope=scope_of({"record": (name, file_name)}, *pairs),
        superseded_by=_successors(head, file_name) if kind == "advisory_superseded" else (),
        attributes=attributes,
        title=line(head.title),
        text=_text(said),
        source=line(head.publisher.name),
        url=_url(head.references),
    )
    after = remembered(seen, following.edition)
    after = type(after)(after.editions, after.listed, head.publisher.namespace)
    return Converted(documents=(fitted(document),), seen={file_name: after})


def file_name_of(tracking_id: str) -> str:
    """The name of the file that holds a document, without its end, as the standard makes it of the id."""
    return _FILE_NAME.sub("_", tracking_id.strip().lower())


def _rank(version: str, name: str) -> int:
    """Versions are integers or semantic ones; a pre-release counts as its release."""
    parts = version.partition("-")[0].partition("+")[0].split(".")
    if len(parts) > 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise InvalidDocument("field", f"`tracking.version` is {version[:40]!r}, neither 4 nor 1.4.0", name)
    major, minor, patch = [*map(int, parts), 0, 0][:3]
    if max(minor, patch) >= PART_MAX or major >= PART_MAX**2:
        raise InvalidDocument("range", f"`tracking.version` is {version[:40]!r}, beyond what can be ordered", name)
    return (major * PART_MAX + minor) * PART_MAX + patch


def _names(one: Vulnerability) -> list[str]:
    return [name for name in (one.cve, *(other.text for other in one.ids)) if name]


def _pairs(said: Advisory) -> tuple[list[Mapping[str, Sequence[str]]], bool]:
    """One map a vulnerability; without products where they would be too many."""
    products = _products(said.product_tree or Tree())
    maps: list[Mapping[str, Sequence[str]]] = []
    for one in said.vulnerabilities or ():
        ids = dict.fromkeys(name for listed in one.product_status.values() for name in listed)
        named = tuple(dict.fromkeys(products.get(name, name) for name in ids))
        maps.append({"vulnerability": _names(one), "package": named})
    if sum(len(part["vulnerability"]) * len(part["package"]) for part in maps) <= PAIRS_MAX:
        return maps, True
    return [{"vulnerability": part["vulnerability"]} for part in maps], False


def _products(tree: Tree) -> dict[str, str]:
    """What each product id is called."""
    found = {product.product_id: product.name for product in tree.full_product_names}
    waiting = [(branch, "") for branch in tree.branches]
    while waiting:
        branch, product = waiting.pop()
        product = branch.name if branch.category == "product_name" else product
        if branch.product is not None:
            found[branch.product.product_id] = product or branch.product.name
        waiting += [(child, product) for child in branch.branches]
    for relation in tree.relationships:
        whole = relation.full_product_name
        found[whole.product_id] = found.get(relation.product_reference, whole.name)
    return {key: value for key, value in found.items() if value}


def _successors(head: Head, own: str) -> tuple[str, ...]:
    """The records that the references outside of this document name."""
    urls = [one.url for one in head.references if one.category == "external"]
    names = [file_name_of(match.group(1)) for url in urls if (match := _JSON_FILE.search(url))]
    return tuple(dict.fromkeys(name for name in names if name != own))


def _text(said: Advisory) -> str:
    notes = [note.text for note in said.document.notes if note.category in ("summary", "description")]
    return body(said.document.title, *notes, *_told(said.vulnerabilities or ()))


def _told(vulnerabilities: Sequence[Vulnerability]) -> Iterator[str]:
    for one in vulnerabilities:
        names = ", ".join(_names(one))
        titled = f"{names}: {one.title}" if one.title and one.title not in names else names
        notes = [note.text for note in one.notes if note.category in ("summary", "description")]
        fixes = [remedy.details for remedy in one.remediations if remedy.category == "vendor_fix"]
        yield " ".join([f"{titled}.", *notes, *dict.fromkeys(fixes)])


def _url(references: Sequence[Reference]) -> str:
    """Where a person reads it: the publisher's own page rather than its file."""
    own = [one.url for one in references if one.category == "self" and one.url.startswith("http")]
    return line(next((url for url in own if not url.endswith(".json")), own[0] if own else ""))

"""CSAF 2.0 and 2.1 advisories.

What decides. Record: `tracking.id`, ignoring case, of one publisher (`publisher.namespace`); links also name it by
its file name, as references do. Order: `tracking.version`; editions with the same version are ordered by arrival,
because publishers change files silently. Time: `current_release_date` as far as it agrees with that order, because
it sometimes goes back. Scope: one map per vulnerability with the products in its own `product_status`; a product is
named after its `product_name` branch. Beyond 1,000 (vulnerability, product) pairs a document is in the scopes of
its record and its vulnerabilities only. Types: `csaf_withdrawn` becomes `advisory_withdrawn`; `csaf_superseded`
becomes `advisory_superseded`, superseded by the documents that its `external` references name; everything else is
an `advisory`. An edition's id is `ID@VERSION`. Material: the category, the names of each vulnerability with the status
of its products, and the remediations with their products; of those that are not a fix, without their text. An edition
with other notes, titles, scores or references is only `revised`. `initial_release_date` opens the record.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

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
    make_document,
    other_fields,
    parse_object,
    record_since,
    require_date,
    scope_value,
)

PAIRS_MAX = 1000
REPEATED_MAX = 1 << 20  # characters of a list that repeats names; a document has room for less
NAME_MAX = 1000  # characters; a digest stands for a longer name in `material`
PART_MAX = 1000  # per part of a version: three parts and the editions of one version share one integer, the order
TYPES = {"csaf_withdrawn": "advisory_withdrawn", "csaf_superseded": "advisory_superseded"}
CONVERTED = ("document", "product_tree", "vulnerabilities", "$schema")
TEXT_NOTES = ("summary", "description")  # categories of notes that become part of the text
_NOT_IN_FILE_NAMES = re.compile(r"[^+\-a-z0-9]+")
_JSON_FILE = re.compile(r"/([^/?#]+)\.json(?:[?#].*)?\Z", re.IGNORECASE)


class Tracking(Struct):
    """The id and version of the advisory."""

    id: str
    version: str
    current_release_date: str
    status: str = ""
    initial_release_date: str | None = None


class AdvisoryPublisher(Struct):
    """The organisation that publishes the advisory."""

    name: str = ""
    namespace: str = ""


class Reference(Struct):
    """A link to this advisory or another document."""

    url: str = ""
    category: str = ""
    summary: str = ""


class Note(Struct):
    """Text for people."""

    text: str = ""
    category: str = ""


class DocumentMetadata(Struct):
    """The field `document`: what applies to the whole advisory."""

    tracking: Tracking
    publisher: AdvisoryPublisher
    category: str = ""
    title: str = ""
    references: list[Reference] = []
    notes: list[Note] = []


class ProductHelper(Struct):
    """Other identifiers of a product."""

    purl: str = ""
    purls: list[str] = []


class FullProductName(Struct):
    """A product and its id."""

    product_id: str
    name: str = ""
    product_identification_helper: ProductHelper | None = None


class Branch(Struct):
    """A node of the product tree."""

    name: str = ""
    category: str = ""
    product: FullProductName | None = None
    branches: list["Branch"] = []


class Relationship(Struct):
    """A product made of another one, for example installed on a platform."""

    full_product_name: FullProductName
    product_reference: str = ""


class ProductTree(Struct):
    """All products of the advisory."""

    branches: list[Branch] = []
    full_product_names: list[FullProductName] = []
    relationships: list[Relationship] = []


class VulnerabilityId(Struct):
    """The name of a vulnerability in a system other than CVE."""

    text: str = ""


class Remediation(Struct):
    """How to fix or mitigate a vulnerability."""

    category: str = ""
    details: str = ""
    product_ids: object = None


class Flag(Struct):
    """Why products are not affected."""

    label: str = ""
    product_ids: list[str] = []


class AdvisoryVulnerability(Struct):
    """A vulnerability and the products that it concerns."""

    cve: str | None = None
    ids: list[VulnerabilityId] = []
    title: str = ""
    product_status: dict[str, list[str]] = {}
    flags: list[Flag] = []
    remediations: list[Remediation] = []
    notes: list[Note] = []


class Advisory(Struct):
    """A CSAF document."""

    document: DocumentMetadata
    product_tree: ProductTree | None = None
    vulnerabilities: list[AdvisoryVulnerability] | None = None


def convert(state: FeedState, data: bytes) -> Conversion:
    """Convert one advisory."""
    tree = parse_object(data)
    advisory = decode_fields(tree, Advisory)
    metadata, tracking = advisory.document, advisory.document.tracking
    name = scope_value(tracking.id).upper()
    file_name = file_name_of(tracking.id)
    if not name:
        raise InvalidDocument("field", "`document.tracking.id` must not be empty.")
    before = state.get(file_name) or EMPTY_STATE
    if before.editions and before.owner != metadata.publisher.namespace:
        owner = before.owner or "another publisher"
        raise InvalidDocument("publisher", f"This tracking id already belongs to {owner}; use another id.", name)
    rank = _rank(tracking.version, name)
    time = require_date(tracking.current_release_date, "`current_release_date`", name)
    new = next_edition(before, digest=digest_of(tree), time=time, rank=rank, base=rank * PART_MAX)
    if new is None:
        return Conversion(known=1)
    edition, kind = new.edition, TYPES.get(metadata.category, "advisory")
    pairs, is_complete = _vulnerable_products(advisory)
    products, remediations = _products(advisory), _remediations(advisory)
    lacking = {"csaf_products": products is None, "products": not is_complete, "remediations": remediations is None}
    left_out = [what for what, is_lacking in lacking.items() if is_lacking]
    attributes = {
        **other_fields(tree, CONVERTED),
        "category": metadata.category,
        "version": tracking.version,
        "status": tracking.status,
        "released": tracking.current_release_date,
        "remediations": remediations or [],
        "material": _material(advisory),
        **({"csaf_products": products} if products else {}),
        **record_since(tracking.initial_release_date),
        **({LEFT_OUT: left_out} if left_out else {}),
    }
    label = tracking.version + (f".seen{new.nth + 1}" if new.nth else "")
    document = make_document(
        {"record": (name, file_name)},
        *pairs,
        id=f"{name}@{label}",
        type=kind,
        time=edition.time,
        order=edition.order,
        superseded_by=_successors(metadata, file_name) if kind == "advisory_superseded" else (),
        attributes=attributes,
        title=metadata.title,
        text=(metadata.title, *_notes(metadata.notes), *_descriptions(advisory.vulnerabilities or ())),
        source=metadata.publisher.name,
        url=_url(metadata.references),
    )
    after = replace(add_edition(before, edition), owner=metadata.publisher.namespace)
    return Conversion(documents=(document,), states={file_name: after})


def _material(advisory: Advisory) -> str:
    names = _product_names(advisory.product_tree or ProductTree())
    vulnerabilities = []
    for vulnerability in advisory.vulnerabilities or ():
        products = {
            status: sorted([_short(names.get(product, "")), product] for product in listed)
            for status, listed in vulnerability.product_status.items()
        }
        remedies = [
            material_digest([each.category, each.details if each.category == "vendor_fix" else "", each.product_ids])
            for each in vulnerability.remediations
        ]
        vulnerabilities.append(material_digest([sorted(_names(vulnerability)), products, sorted(remedies)]))
    return material_digest([advisory.document.category, sorted(vulnerabilities)])


def _short(name: str) -> str:
    return name if len(name) <= NAME_MAX else material_digest(name)


def file_name_of(tracking_id: str) -> str:
    """Return the file name that the standard derives from an id, without `.json`."""
    return _NOT_IN_FILE_NAMES.sub("_", tracking_id.strip().lower())


def _rank(version: str, name: str) -> int:
    """Map a version to an integer. Versions are integers or semantic ones; a pre-release counts as its release."""
    parts = version.partition("-")[0].partition("+")[0].split(".")
    if len(parts) > 3 or not all(part.isascii() and part.isdigit() for part in parts):
        reason = f"`tracking.version` is {version[:40]!r}; it must be an integer (4) or a semantic version (1.4.0)."
        raise InvalidDocument("field", reason, name)
    major, minor, patch = [*map(int, parts), 0, 0][:3]
    if max(minor, patch) >= PART_MAX or major >= PART_MAX**2:
        reason = (
            f"`tracking.version` is {version[:40]!r}; the first number must be below {PART_MAX**2}, the others "
            f"below {PART_MAX}."
        )
        raise InvalidDocument("range", reason, name)
    return (major * PART_MAX + minor) * PART_MAX + patch


def _names(vulnerability: AdvisoryVulnerability) -> list[str]:
    return [name for name in (vulnerability.cve, *(other.text for other in vulnerability.ids)) if name]


def _vulnerable_products(advisory: Advisory) -> tuple[list[Mapping[str, Sequence[str]]], bool]:
    """Return one scope map per vulnerability, and whether products are included; they are not if too many."""
    products = _product_names(advisory.product_tree or ProductTree())
    maps: list[Mapping[str, Sequence[str]]] = []
    for vulnerability in advisory.vulnerabilities or ():
        ids = dict.fromkeys(product for listed in vulnerability.product_status.values() for product in listed)
        packages = tuple(dict.fromkeys(products.get(product, product) for product in ids))
        maps.append({"vulnerability": _names(vulnerability), "package": packages})
    if sum(len(part["vulnerability"]) * len(part["package"]) for part in maps) <= PAIRS_MAX:
        return maps, True
    return [{"vulnerability": part["vulnerability"]} for part in maps], False


def _product_names(tree: ProductTree) -> dict[str, str]:
    """Return the product name of each product id."""
    names = {product.product_id: product.name for product in tree.full_product_names}
    waiting = [(branch, "") for branch in tree.branches]
    while waiting:
        branch, product = waiting.pop()
        product = branch.name if branch.category == "product_name" else product
        if branch.product is not None:
            names[branch.product.product_id] = product or branch.product.name
        waiting += [(child, product) for child in branch.branches]
    for relation in tree.relationships:
        whole = relation.full_product_name
        names[whole.product_id] = names.get(relation.product_reference, whole.name)
    return {product: name for product, name in names.items() if name}


def _remediations(advisory: Advisory) -> list[dict[str, object]] | None:
    """Return the remediations of each vulnerability; `None` if they are too large for a document."""
    remediations: list[dict[str, object]] = []
    size = 0
    for vulnerability in advisory.vulnerabilities or ():
        names = _names(vulnerability)[:1]
        for remedy in vulnerability.remediations:
            size += sum(map(len, names)) + len(remedy.details)
            if size > REPEATED_MAX:
                return None
            remediations.append({"vulnerability": names, "category": remedy.category, "details": remedy.details})
    return remediations


def _products(advisory: Advisory) -> list[dict[str, object]] | None:
    """Return the products with their status for each vulnerability, as `versions.csaf_products` reads them.

    `None` if they are too large for a document: every reference to a product repeats its name.
    """
    identities = _identities(advisory.product_tree or ProductTree())
    products: list[dict[str, object]] = []
    size = 0
    for vulnerability in advisory.vulnerabilities or ():
        names = _names(vulnerability)
        size_of_names = sum(map(len, names))
        labels = {product: flag.label for flag in vulnerability.flags for product in flag.product_ids}
        for status, listed in vulnerability.product_status.items():
            for product in listed:
                identity = identities.get(product, {"product": product})
                justification = {"justification": labels[product]} if product in labels else {}
                size += size_of_names + len(status) + sum(map(len, (*identity.values(), *justification.values())))
                if size > REPEATED_MAX:
                    return None
                products.append({**identity, "status": status, "vulnerability": names, **justification})
    return products


def _identities(tree: ProductTree) -> dict[str, dict[str, str]]:
    """Return for each product id its name, its version or range of versions, and its purl."""
    identities: dict[str, dict[str, str]] = {}
    products = [(product, dict[str, str]()) for product in tree.full_product_names]
    waiting = [(branch, dict[str, str]()) for branch in tree.branches]
    while waiting:
        branch, above = waiting.pop()
        path = {**above, branch.category: branch.name}
        if branch.product is not None:
            products.append((branch.product, path))
        waiting += [(child, path) for child in branch.branches]
    for product, path in products:
        helper = product.product_identification_helper or ProductHelper()
        fields = {
            "product": path.get("product_name") or product.name,
            "version": path.get("product_version", ""),
            "range": path.get("product_version_range", ""),
            "purl": helper.purl or next(iter(helper.purls), ""),
        }
        identities[product.product_id] = {name: value for name, value in fields.items() if value}
    for relation in tree.relationships:
        whole = relation.full_product_name
        identities[whole.product_id] = identities.get(relation.product_reference, {"product": whole.name})
    return identities


def _successors(metadata: DocumentMetadata, own_file_name: str) -> tuple[str, ...]:
    """Return the records that the external references name, without this one."""
    urls = [reference.url for reference in metadata.references if reference.category == "external"]
    names = [file_name_of(match.group(1)) for url in urls if (match := _JSON_FILE.search(url))]
    return tuple(dict.fromkeys(name for name in names if name != own_file_name))


def _notes(notes: Sequence[Note]) -> list[str]:
    return [note.text for note in notes if note.category in TEXT_NOTES]


def _descriptions(vulnerabilities: Sequence[AdvisoryVulnerability]) -> Iterator[str]:
    for vulnerability in vulnerabilities:
        names, title = ", ".join(_names(vulnerability)), vulnerability.title
        headline = f"{names}: {title}" if title and title not in names else names
        fixes = [remedy.details for remedy in vulnerability.remediations if remedy.category == "vendor_fix"]
        yield " ".join([f"{headline}.", *_notes(vulnerability.notes), *dict.fromkeys(fixes)])


def _url(references: Sequence[Reference]) -> str:
    """Return the address for people: the publisher's page if there is one, else its JSON file."""
    own = [reference.url for reference in references if reference.category == "self"]
    own = [url for url in own if url.startswith("http")]
    return next((url for url in own if not url.endswith(".json")), own[0] if own else "")

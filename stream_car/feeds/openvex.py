"""OpenVEX documents: statements about a vulnerability in a product, and in a component of it.

What decides. Each statement about one product and one of its subcomponents becomes a document of type
`vex_statement`, in the scope of the vulnerability (with its aliases), the product and the subcomponent (the product
itself if none is named). Order: the statement's `timestamp`, else the document's. A later statement voids an earlier
one in the same scope; statements with the same time are both in force and counted as ties. A statement that a new
version of its document repeats is known.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from stream_car.codec import format_time
from stream_car.core.documents import Document
from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import (
    EMPTY_STATE,
    Conversion,
    FeedState,
    RecordState,
    add_edition,
    digest_of,
    next_edition,
)
from stream_car.feeds.fields import decode_fields, make_document, other_fields, parse_object, require_date

CONVERTED = ("vulnerability", "products", "timestamp")


class VexVulnerability(Struct):
    """A vulnerability by its name and its aliases."""

    name: str = ""
    id: str = msgspec.field(default="", name="@id")
    aliases: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        """All names. The address counts only if there is no name."""
        return (self.name or self.id, *self.aliases)


class VexComponent(Struct):
    """A component of a product."""

    id: str = msgspec.field(default="", name="@id")
    identifiers: dict[str, str] = {}

    @property
    def package_url(self) -> str:
        """The package URL, or empty."""
        return self.id or self.identifiers.get("purl", "")


class VexProduct(VexComponent):
    """A product, and the components that a statement concerns."""

    subcomponents: list[VexComponent] = []


class VexStatement(Struct):
    """The status of a vulnerability in some products."""

    vulnerability: VexVulnerability | str
    status: str
    products: list[VexProduct | str] = []
    timestamp: str | None = None
    justification: str = ""
    impact_statement: str = ""
    action_statement: str = ""


class VexDocument(Struct):
    """An OpenVEX document."""

    id: str = msgspec.field(name="@id")
    statements: list[VexStatement]
    author: str = ""
    timestamp: str | None = None


class _Subject(Struct, frozen=True):
    """What a statement is about: the vulnerability's names, the product, the component."""

    names: tuple[str, ...]
    product: str
    component: str


def convert(state: FeedState, data: bytes) -> Conversion:
    """Convert one document with all its statements."""
    tree = parse_object(data)
    vex = decode_fields(tree, VexDocument)
    raw_statements = tree["statements"]
    assert isinstance(raw_statements, list)
    documents: list[Document] = []
    states: dict[str, RecordState] = {}
    repeats: Counter[bytes] = Counter()
    known = ties = 0
    for statement, raw_statement in zip(vex.statements, raw_statements, strict=True):
        what = "The `timestamp` of the statement or its document"
        time = require_date(statement.timestamp or vex.timestamp, what, vex.id)
        attributes = other_fields(raw_statement, CONVERTED)
        for subject in _subjects(vex, statement):
            content = digest_of([vex.id, subject.names, subject.product, subject.component, attributes])
            repeats[content] += 1
            digest = digest_of([content.hex(), repeats[content]])  # two equal statements of one document stay two
            record = "\n".join((subject.names[0], subject.product, subject.component))
            before = states.get(record) or state.get(record) or EMPTY_STATE
            new = next_edition(before, digest=digest, time=time, rank=time)
            if new is None:
                known += 1
                continue
            ties += new.nth > 0
            states[record] = add_edition(before, new.edition)
            documents.append(_document(vex, statement, attributes, subject, time, digest))
    return Conversion(documents=documents, states=states, records=known + len(documents), known=known, ties=ties)


def _subjects(vex: VexDocument, statement: VexStatement) -> Iterator[_Subject]:
    vulnerability = statement.vulnerability
    names = (vulnerability,) if isinstance(vulnerability, str) else vulnerability.names
    products = [VexProduct(id=product) if isinstance(product, str) else product for product in statement.products]
    if not names[0] or not products or not all(product.package_url for product in products):
        raise InvalidDocument("field", "A statement must name its vulnerability and its products.", vex.id)
    for product in products:
        for component in product.subcomponents or (product,):
            yield _Subject(names, product.package_url, component.package_url or product.package_url)


def _document(
    vex: VexDocument,
    statement: VexStatement,
    attributes: dict[str, object],
    subject: _Subject,
    time: int,
    digest: bytes,
) -> Document:
    name, product, component = subject.names[0], subject.product, subject.component
    about = f"{product} is {statement.status.replace('_', ' ')}"
    if component != product:
        about += f", through {component}"
    justification = f" ({statement.justification.replace('_', ' ')})" if statement.justification else ""
    return make_document(
        {"vulnerability": subject.names, "package": (product,), "component": (component,)},
        id=f"vex:{name}@{format_time(time)}:{digest.hex()}",
        type="vex_statement",
        time=time,
        attributes={**attributes, "document": vex.id},
        title=f"{name}: {about}",
        text=(
            f"{', '.join(subject.names)}: {about}{justification}.",
            statement.impact_statement,
            statement.action_statement,
        ),
        source=vex.author,
        url=vex.id if vex.id.startswith("http") else "",
    )

"""OpenVEX documents: statements about a vulnerability in a product, and in a part of it.

What decides. Each statement about one product and one of its subcomponents is a document of its own, of type
`vex_statement`, in the scope of the vulnerability (with its aliases), the product and the subcomponent (the
product itself where none is named). Order: the statement's `timestamp`, else the document's; a later one voids
an earlier one in the same scope, and statements of one time stand side by side and are counted as ties. A
statement that a new version of its document repeats is known.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from stream_car.codec import format_time
from stream_car.core.documents import Document
from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import NOTHING_SEEN, Converted, Position, Seen, digest_of, next_edition, remembered
from stream_car.feeds.reading import body, fitted, line, moment, rest_of, scope_of, shaped, tree_of

READ = ("vulnerability", "products", "timestamp")


class Vulnerability(Struct):
    """A vulnerability by its name and its other names."""

    name: str = ""
    id: str = msgspec.field(default="", name="@id")
    aliases: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        """All of them; its address only where it has no name."""
        return (self.name or self.id, *self.aliases)


class Component(Struct):
    """A part of a product."""

    id: str = msgspec.field(default="", name="@id")
    identifiers: dict[str, str] = {}

    @property
    def called(self) -> str:
        """Its package address."""
        return self.id or self.identifiers.get("purl", "")


class Product(Component):
    """A product, and the parts that a statement is about."""

    subcomponents: list[Component] = []


class Statement(Struct):
    """What is said about a vulnerability in some products."""

    vulnerability: Vulnerability | str
    status: str
    products: list[Product | str] = []
    timestamp: str | None = None
    justification: str = ""
    impact_statement: str = ""
    action_statement: str = ""


class Vex(Struct):
    """An OpenVEX document."""

    id: str = msgspec.field(name="@id")
    statements: list[Statement]
    author: str = ""
    timestamp: str | None = None


def convert(position: Position, data: bytes) -> Converted:
    """One document with all its statements."""
    tree = tree_of(data)
    said = shaped(tree, Vex)
    raw = tree["statements"]
    assert isinstance(raw, list)
    documents: list[Document] = []
    seen: dict[str, Seen] = {}
    repeats: Counter[bytes] = Counter()
    known = ties = 0
    for statement, whole in zip(said.statements, raw, strict=True):
        time = _time(said, statement)
        for names, product, component in _subjects(said, statement):
            rest = rest_of(whole, READ)
            content = digest_of([said.id, names, product, component, rest])
            repeats[content] += 1
            digest = digest_of([content.hex(), repeats[content]])  # said twice in one document, it is twice there
            record = "\n".join((names[0], product, component))
            before = seen.get(record) or position.get(record) or NOTHING_SEEN
            following = next_edition(before, digest=digest, time=time, rank=time)
            if following is None:
                known += 1
                continue
            ties += following.nth > 0
            seen[record] = remembered(before, following.edition)
            documents.append(_document(said, statement, rest, (names, product, component), time, digest))
    return Converted(
        documents=[fitted(one) for one in documents], seen=seen, records=known + len(documents), known=known, ties=ties
    )


Subject = tuple[tuple[str, ...], str, str]


def _subjects(said: Vex, statement: Statement) -> Iterator[Subject]:
    """What a statement speaks about: the vulnerability's names, the product, the part."""
    given = statement.vulnerability
    names = (given,) if isinstance(given, str) else given.names
    products = [Product(id=one) if isinstance(one, str) else one for one in statement.products]
    if not names[0] or not products or not all(one.called for one in products):
        raise InvalidDocument("field", "a statement must name its vulnerability and its products", said.id)
    for product in products:
        for part in product.subcomponents or (product,):
            yield names, product.called, part.called or product.called


def _time(said: Vex, statement: Statement) -> int:
    time = moment(statement.timestamp or said.timestamp, what="`timestamp`", name=said.id)
    if time is None:
        raise InvalidDocument("time", "neither the statement nor its document has a `timestamp`", said.id)
    return time


def _document(
    said: Vex, statement: Statement, rest: dict[str, object], subject: Subject, time: int, digest: bytes
) -> Document:
    names, product, component = subject
    about = f"{product} is {statement.status.replace('_', ' ')}"
    return Document(
        id=f"vex:{names[0]}@{format_time(time)}:{digest.hex()}",
        type="vex_statement",
        time=time,
        scope=scope_of({"vulnerability": names, "package": (product,), "component": (component,)}),
        attributes={**rest, "document": said.id},
        title=line(f"{names[0]}: {about}" + (f", through {component}" if component != product else "")),
        text=body(
            f"{', '.join(names)}: {about}"
            + (f", through {component}" if component != product else "")
            + (f" ({statement.justification.replace('_', ' ')})" if statement.justification else "")
            + ".",
            statement.impact_statement,
            statement.action_statement,
        ),
        source=line(said.author),
        url=line(said.id) if said.id.startswith("http") else "",
    )

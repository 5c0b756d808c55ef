"""Documents as they were published, for people: every field that is set, one per line, and then the text."""

from collections.abc import Iterator

from rich.console import Group as Lines, RenderableType
from rich.text import Text

from stream_car.api.json import to_json
from stream_car.cli.console import words
from stream_car.cli.render import head
from stream_car.cli.widgets import FAINT, IN_FORCE, VOID, WARN, day, fate_text, indented
from stream_car.queries import answers as a

LINKS = ("supersedes", "superseded_by", "amends")


def lookup(lookup: a.Lookup) -> RenderableType:
    """Draw the documents that a name refers to."""
    lines: list[RenderableType] = [indented(Lines(*_original(published))) for published in lookup.documents]
    if lookup.reasons:
        lines.append(Text("It has more documents than are shown.", WARN))
    return Lines(head(lookup), *lines)


def _original(published: a.PublishedDocument) -> Iterator[RenderableType]:
    document = published.document
    title = words(document.title or document.id, IN_FORCE if published.status == "in_force" else VOID)
    yield Text.assemble(title, "  ", fate_text(published))
    about = (document.id, document.type, day(document.time), document.source, document.url)
    yield words(" · ".join(filter(None, about)), FAINT)
    for name, value in _fields(document):
        yield Text.assemble(words(name, "bold"), ": ", words(value))
    yield from map(words, document.text.splitlines())


def _fields(document: a.OriginalDocument) -> Iterator[tuple[str, str]]:
    """Yield what a document has beside its text: scope, links, attributes, and numbers that are not the usual ones."""
    yield from ((key, ", ".join(values)) for scope in document.scope for key, values in scope.items())
    yield from ((name, ", ".join(getattr(document, name))) for name in LINKS if getattr(document, name))
    if document.order:
        yield "order", str(document.order)
    if document.revision != 1:
        yield "revision", str(document.revision)
    for name, value in document.attributes.items():
        yield name, value if isinstance(value, str) else to_json(value)

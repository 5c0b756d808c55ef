"""What publishers send: small worlds of documents, in which scopes, times and names collide often.

Promise: the documents of two worlds have no id, scope or link in common, so each world has its own truth. The world of
an id is what stands before its first full stop; the shared world has no name.
"""

from collections.abc import Mapping
from random import Random

from msgspec.structs import replace

from stream_car.core.documents import Document, Retraction, Statement
from tests.support.streams import random_document

RETRACTED = 0.1
MEMBERS = 8  # ids of a world


def world_of(name: str) -> str:
    """Return the world of an id."""
    return name.partition(".")[0] if "." in name else ""


def in_world(world: str, document: Document) -> Document:
    """Return the document with ids, links and values of this world. Its title begins with the name of the world."""

    def renamed(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{world}.{name}" for name in names)

    scope: tuple[Mapping[str, tuple[str, ...]], ...] = tuple(
        {key: renamed(values) for key, values in part.items()} for part in document.scope
    )
    return replace(
        document,
        id=f"{world}.{document.id}",
        scope=scope,
        supersedes=renamed(document.supersedes),
        superseded_by=renamed(document.superseded_by),
        amends=renamed(document.amends),
        title=f"{world} {document.title}",
    )


def random_statement(random: Random, world: str, *, revision: int, members: int = MEMBERS) -> Statement:
    """Return a document, correction or retraction of a world; `revision` must rise with each statement of the world."""
    document = replace(in_world(world, random_document(random, members)), revision=revision)
    return Retraction(id=document.id, revision=revision) if random.random() < RETRACTED else document

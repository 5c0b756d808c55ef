"""What publishers say: documents, and retractions of documents.

Promise: values only. A document is checked by the codec before it gets here; `time` is integer
microseconds UTC; scope maps keep the publisher's words, rule packs fold them.
"""

from collections.abc import Mapping

from msgspec import Struct

ScopeMap = Mapping[str, tuple[str, ...]]
Precedence = tuple[int, int]


class Value(Struct, frozen=True, gc=False):
    """Fields that never change.

    mypyc drops the options of a class that it compiles; compiled modules take them from here by inheritance.
    """


class Document(Struct, frozen=True, kw_only=True, gc=False):
    """What a publisher said about some entities, and when it takes effect (Definition 1)."""

    id: str
    type: str
    time: int  # microseconds, UTC
    order: int = 0
    revision: int = 1
    scope: tuple[ScopeMap, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    amends: tuple[str, ...] = ()
    attributes: Mapping[str, object] = {}
    title: str = ""
    text: str = ""
    source: str = ""
    url: str = ""

    @property
    def precedence(self) -> Precedence:
        """What authority compares; equal pairs void nothing."""
        return self.time, self.order

    @property
    def records(self) -> tuple[str, ...]:
        """The records of which this document is an edition; links may name them."""
        named = [value for part in self.scope if "record" in part for value in part["record"]]
        return tuple(dict.fromkeys(named)) if named else ()


class Retraction(Struct, frozen=True, kw_only=True, gc=False):
    """A revision that should never have been said; `None` means the revision then stored."""

    id: str
    revision: int | None = None


Statement = Document | Retraction

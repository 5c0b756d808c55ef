"""The values that publishers send: documents, and retractions of documents.

Promise: values only. The codec has checked a document before it arrives here. `time` is in integer
microseconds UTC. Scope maps keep the publisher's spelling; the rule packs fold it.
"""

from collections.abc import Mapping

from msgspec import Struct

ScopeMap = Mapping[str, tuple[str, ...]]
Precedence = tuple[int, int]  # (time, order)


class Value(Struct, frozen=True, gc=False):
    """The base of the structs in compiled modules.

    mypyc drops the `Struct` options of a class that it compiles. The compiled classes inherit the options from here.
    """


class Document(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """What a publisher states about some entities, and when it takes effect (Definition 1)."""

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
        """What rules compare: only a document of greater precedence can void another."""
        return self.time, self.order

    @property
    def records(self) -> tuple[str, ...]:
        """The records of which this document is an edition. Links may name them."""
        records = [value for part in self.scope if "record" in part for value in part["record"]]
        return tuple(dict.fromkeys(records)) if records else ()


class Retraction(Struct, frozen=True, kw_only=True, gc=False):
    """Withdraws a revision that should never have been published; `None` means the revision stored at that point."""

    id: str
    revision: int | None = None


Statement = Document | Retraction

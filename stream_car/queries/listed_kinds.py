"""Which documents a listing of scopes or changes is limited to: their types, and how they stand.

Promise: how a document stands follows from its fate alone, so a listing and an answer about one name agree.
"""

from collections.abc import Collection
from typing import Self

from msgspec import Struct

from stream_car.core.rule_pack import REPLACED, REVISED
from stream_car.core.rules import Ruleset
from stream_car.errors import InvalidRequest
from stream_car.suggest import did_you_mean

IN_FORCE = "in_force"  # nothing supersedes the document, and its record has not ended
ENDED = "ended"  # all others


class ListedKinds(Struct, frozen=True):
    """Selects documents by type and by how they stand; nothing given selects all.

    A state is `in_force`, `ended`, or the word for what became of a document, or else for what it says of its record.
    """

    types: Collection[str] = ()
    states: Collection[str] = ()

    @classmethod
    def of(cls, ruleset: Ruleset, *, types: Collection[str] = (), states: Collection[str] = ()) -> Self:
        """Return the selection of these. Raises `InvalidRequest` (`types`, `states`) if no rule pack has one."""
        words = {IN_FORCE, ENDED, REPLACED, REVISED, *ruleset.states.values(), *ruleset.outcomes.values()}
        _require_known("types", "type", types, ruleset.pack_of)
        _require_known("states", "state", states, words)
        return cls(frozenset(types), frozenset(states))

    def has_type(self, name: str) -> bool:
        """Whether documents of this type are listed."""
        return not self.types or name in self.types

    def has_state(self, *, state: str, outcome: str, is_superseded: bool) -> bool:
        """Whether a document is listed that says `state` of its record, and of which `outcome` is what it became."""
        standing = ENDED if is_superseded or outcome else IN_FORCE
        return not self.states or standing in self.states or (outcome or state) in self.states


ALL_KINDS = ListedKinds()


def _require_known(field: str, noun: str, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise InvalidRequest(field, f"No rule pack has the {noun} {name!r}.{did_you_mean(name, sorted(known))}")

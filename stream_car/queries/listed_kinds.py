"""Which documents a listing or a subscription is limited to: their types, how they stand, and what became of them.

Promise: how a document stands follows from its fate alone, so a listing and an answer about one name agree.
"""

from collections.abc import Collection
from typing import Self

from msgspec import Struct

from stream_car.core.rule_pack import BASE_ENDED, PUBLISHED, REPLACED, REVISED
from stream_car.core.rules import Ruleset
from stream_car.errors import InvalidRequest
from stream_car.suggest import did_you_mean

IN_FORCE = "in_force"  # nothing supersedes the document, and its record has not ended
ENDED = "ended"  # all others
MOVES = (PUBLISHED, "corrected", "retracted", "reinstated")  # outcomes of changes that no rule makes


class ListedKinds(Struct, frozen=True):
    """Selects documents by type and by how they stand, and changes by their outcome; nothing given selects all.

    A state is `in_force`, `ended`, or the word for what became of a document, or else for what it says of its record.
    With `only`, changes have one of these outcomes, and with `material`, they are not merely revisions.
    """

    types: Collection[str] = ()
    states: Collection[str] = ()
    only: Collection[str] = ()
    material: bool = False

    @classmethod
    def of(
        cls,
        ruleset: Ruleset,
        *,
        types: Collection[str] = (),
        states: Collection[str] = (),
        only: Collection[str] = (),
        material: bool = False,
    ) -> Self:
        """Return the selection of these. Raises `InvalidRequest` with the field that no rule pack knows."""
        words = {IN_FORCE, ENDED, REPLACED, REVISED, *ruleset.states.values(), *ruleset.outcomes.values()}
        _require_known("types", "type", types, ruleset.pack_of)
        _require_known("states", "state", states, words)
        _require_known("only", "outcome", only, known_outcomes(ruleset))
        return cls(frozenset(types), frozenset(states), frozenset(only), material)

    @property
    def judges_fates(self) -> bool:
        """Whether the selection depends on what became of documents."""
        return bool(self.states or self.only or self.material)

    def has_type(self, name: str) -> bool:
        """Whether documents of this type are listed."""
        return not self.types or name in self.types

    def has_state(self, *, state: str, outcome: str, is_superseded: bool) -> bool:
        """Whether a document is listed that says `state` of its record, and of which `outcome` is what it became."""
        standing = ENDED if is_superseded or outcome else IN_FORCE
        return not self.states or standing in self.states or (outcome or state) in self.states

    def has_outcome(self, outcome: str) -> bool:
        """Whether a change with this outcome is listed or sent."""
        return not (self.material and outcome == REVISED) and (not self.only or outcome in self.only)


def known_outcomes(ruleset: Ruleset) -> set[str]:
    """Return every word that may say what a change made of a document or a record."""
    return {*MOVES, REPLACED, REVISED, BASE_ENDED, *ruleset.states.values(), *ruleset.outcomes.values()}


ALL_KINDS = ListedKinds()


def _require_known(field: str, noun: str, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise InvalidRequest(field, f"No rule pack has the {noun} {name!r}.{did_you_mean(name, sorted(known))}")

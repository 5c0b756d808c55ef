"""What Stage 2 finds: the documents that a walk reached, and the way to each."""

from msgspec import Struct

from stream_car.core.documents import Pair
from stream_car.core.members import Entry, Scope
from stream_car.core.standing import Held
from stream_car.core.timeline import size


class Node(Struct, gc=False):
    """A document that the walk reached, and from where: `parent` is void through it by `rule` in `scope`."""

    id: str
    held: Held | None
    entry: Entry
    parent: str | None
    rule: str
    scope: str


class Reach(Struct, gc=False):
    """All members of a type in a scope beyond `low` are reached, from node `parent` by `rule`."""

    low: Pair
    parent: str
    rule: str


class Walked(Struct, gc=False):
    """What a walk found. `nodes` are the documents that it visited; `via` says for each controlling document
    in which scope, as one of which type, it was reached without a visit, if it was.

    `closure` is `cl({anchor})`; where a scope has too many to name, `closure_more` counts them, and of the
    controlling ones there the latest are named and `controlling_more` counts the others. `voiders` are the
    direct ones that the walk met first: id, rule, scope. `scopes` are the anchor's.
    """

    anchor: str
    held: Held
    controlling: list[Entry]
    controlling_more: int
    via: dict[str, tuple[str, str] | None]
    nodes: dict[str, Node]
    reach: dict[tuple[str, str], Reach]
    is_active: bool
    missing: tuple[str, ...]
    cycle: tuple[str, ...]
    closure: set[str]
    closure_more: int
    scopes: list[Scope]
    as_of: int | None
    voiders: list[tuple[str, str, str]]
    over_budget: bool

    def path(self, name: str) -> tuple[tuple[str, str, str], ...]:
        """The steps that lead to a controlling document: (id, rule, scope), the anchor left out."""
        steps: list[tuple[str, str, str]] = []
        if (place := self.via[name]) is not None:
            reach = self.reach[place]
            steps.append((name, reach.rule, place[0]))
            name = reach.parent
        node = self.nodes[name]
        while node.parent is not None:
            steps.append((node.id, node.rule, node.scope))
            node = self.nodes[node.parent]
        return tuple(reversed(steps))

    def entry(self, name: str) -> Entry | None:
        """A document that was visited, or controls, as a member of a scope."""
        if name in self.nodes:
            return self.nodes[name].entry
        return next((entry for entry in self.controlling if entry.id == name), None)

    @property
    def around(self) -> set[str]:
        """The documents that share a scope with the anchor (Definition 5's `D_sigma`), itself included."""
        entries = (entry for scope in self.scopes for entry in scope.entries)
        return {self.anchor, *(entry.id for entry in entries if self.as_of is None or entry.time <= self.as_of)}

    @property
    def around_more(self) -> int:
        """How many these are in scopes that have too many to name."""
        return sum(size(scope) for scope in self.scopes if scope.sheets)

"""Stage 2: from an anchor to the documents that control it now, with the path that leads there.

Promise: the controlling set is the active part of `cl({anchor})` (Definition 3), as
`definitions.controlling` has it. In a scope the documents that supersede one of type U at a pair are,
for every type that voids U, all later ones: so one reached pair a (scope, type) says it all, and
only members that may be void elsewhere, that a `differ_on` rule may spare, or (where the shard has
links) that a link may name are visited one by one. Cost: rules times log n a scope, plus the visited
members and the output. Reads are asked for in rounds, by yielding keys.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TypeVar, cast

from msgspec import Struct

from stream_car.core.cycles import Span, cycles
from stream_car.core.differ_on import values_of
from stream_car.core.documents import Precedence
from stream_car.core.revisions import document_key, entry_of
from stream_car.core.rules import Ruleset, TypeRules
from stream_car.core.scope_names import link_scope, record_scope
from stream_car.core.stored import LOWEST, Compared, Entry, Page, Pages, Scope, StoredDocument
from stream_car.core.thresholds import Threshold, holds, threshold_of
from stream_car.core.timeline import (
    MissingPages,
    all_members,
    count_between,
    greatest,
    latest_from,
    members_between,
    members_voidable_elsewhere,
    require_all_pages,
    scope_key,
    size,
)

Values = dict[bytes, object]


def missing_keys(values: Values, keys: Iterable[bytes]) -> Generator[list[bytes], None, None]:
    """Ask for the keys that are not at hand, in one round."""
    lacking = list(dict.fromkeys(key for key in keys if key not in values))
    if lacking:
        yield lacking


def scope_at(values: Values, name: str) -> Scope:
    """A scope's header; one that was never seen is empty."""
    found = values.get(scope_key(name))
    return cast(Scope, found) if found is not None else Scope(name)


def document_at(values: Values, name: str) -> StoredDocument | None:
    """What is known of an id; `None` if it is not part of the corpus now."""
    found = cast("StoredDocument | None", values.get(document_key(name)))
    return found if found is not None and found.is_present else None


def pages_of(values: Values) -> Pages:
    """The pages among the values."""
    return cast(Pages, cast("dict[bytes, Page]", values))


class Node(Struct, gc=False):
    """A document that the walk reached, and from where: `parent` is void through it by `rule` in `scope`."""

    id: str
    document: StoredDocument | None
    entry: Entry
    parent: str | None
    rule: str
    scope: str


class Reach(Struct, gc=False):
    """All members of a type in a scope beyond `low` are reached, from node `parent` by `rule`."""

    low: Precedence
    parent: str
    rule: str


class WalkResult(Struct, gc=False):
    """What a walk found. `nodes` are the documents that it visited; `via` says for each controlling document
    in which scope, as one of which type, it was reached without a visit, if it was.

    `closure` is `cl({anchor})`; where a scope has too many to name, `closure_more` counts them, and of the
    controlling ones there the latest are named and `controlling_more` counts the others. `voiders` are the
    direct ones that the walk met first: id, rule, scope. `scopes` are the anchor's.
    """

    anchor: str
    document: StoredDocument
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
    superseded_by: list[tuple[str, str, str]]
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
        return sum(size(scope) for scope in self.scopes if scope.directory)


T = TypeVar("T")
Rounds = Generator[list[bytes], None, None]
Thresholds = dict[tuple[str, str], tuple[TypeRules, Threshold]]  # by scope and type, as of one moment
COUNTED_MAX = 2000  # members of one scope that a closure names; beyond, they are counted
LATEST_MAX = 1000  # controlling members of such a scope that are named


class Walk:
    """One walk from one anchor over decoded values; `run` yields the keys that it lacks, round by round."""

    def __init__(
        self,
        anchor: str,
        values: Values,
        ruleset: Ruleset,
        *,
        has_links: bool,
        as_of: int | None = None,
        visits_max: int = 100_000,
        named_max: int = COUNTED_MAX,
        thresholds: Thresholds | None = None,
    ) -> None:
        self.anchor = anchor
        self.values = values
        self.ruleset = ruleset
        self.has_links = has_links
        self.as_of = as_of
        self.visits_max = visits_max
        self.named_max = named_max
        self.nodes: dict[str, Node] = {}
        self.reach: dict[tuple[str, str], Reach] = {}
        self.differing_reach: dict[tuple[str, str, Compared, Compared], Precedence] = {}
        self.spans: dict[str, list[Span]] = {}
        self.link_edges: dict[str, list[str]] = {}
        self.missing: dict[str, None] = {}
        self.thresholds: Thresholds = thresholds if thresholds is not None else {}
        self.todo: list[Node] = []
        self.visited: set[str] = set()
        self.over_budget = False

    def run(self) -> Generator[list[bytes], None, WalkResult | None]:
        """The walk; `None` where the anchor is not part of the corpus (then, or at all)."""
        stands = yield from self.anchor_status()
        if stands is None:
            return None
        held, is_active = stands
        node = Node(self.anchor, held, entry_of(held, None), None, "", "")
        if is_active:
            return self._result(held, {self.anchor: (node.entry, None)}, {self.anchor: node}, {self.anchor}, 0, 0)
        self._reach_node(node)
        while self.todo:
            level, self.todo = self.todo, []
            if len(self.nodes) > self.visits_max:
                self.over_budget = True
                break
            yield from self._visit(level)
        return (yield from self._finish(held))

    def anchor_status(self) -> Generator[list[bytes], None, tuple[StoredDocument, bool] | None]:
        """The anchor alone: what is known of it, and whether it is active; `None` if it is not part of the corpus."""
        yield from missing_keys(self.values, (document_key(self.anchor),))
        held = document_at(self.values, self.anchor)
        if held is None or not self._counts(held.time):
            return None
        node = Node(self.anchor, held, entry_of(held, None), None, "", "")
        yield from missing_keys(self.values, self._keys_of(node))
        if self.has_links or held.superseded_by:
            yield from self._load(list(self._named_scopes(node)))
        return held, (yield from self._is_active(node))

    def _counts(self, time: int) -> bool:
        return self.as_of is None or time <= self.as_of

    def _reach_node(self, node: Node) -> None:
        if node.id not in self.nodes:
            self.nodes[node.id] = node
            self.todo.append(node)

    def _visit(self, level: list[Node]) -> Rounds:
        yield from missing_keys(self.values, (document_key(n.id) for n in level if self._needs_document(n)))
        for node in level:
            if self._needs_document(node):
                node.document = document_at(self.values, node.id)
        yield from missing_keys(self.values, (key for node in level for key in self._keys_of(node)))
        yield from self._load([name for node in level for name in self._named_scopes(node)])
        self.visited.update(node.id for node in level)
        for node in level:
            for scope, entry in self._memberships(node):
                yield from self._expand(node, scope, entry)
            self._follow_names(node)
            self._follow_links(node)

    def _needs_document(self, node: Node) -> bool:
        return node.document is None and (self.has_links or node.entry.elsewhere > 0 or node.rule in ("", "link"))

    def _scopes(self, node: Node) -> tuple[str, ...]:
        return node.document.scopes if node.document is not None else (node.scope,)

    def _keys_of(self, node: Node) -> Iterator[bytes]:
        for scope in self._scopes(node):
            yield scope_key(scope)
        for name in self._named_scopes(node):
            yield scope_key(name)
        for name in node.document.superseded_by if node.document is not None else ():
            yield document_key(name)

    def _named_scopes(self, node: Node) -> Iterator[str]:
        for name in self._link_names(node):
            yield link_scope(name)
        for name in node.document.superseded_by if node.document is not None else ():
            yield record_scope(name)

    def _link_names(self, node: Node) -> tuple[str, ...]:
        if not self.has_links or node.document is None:
            return ()
        return (node.id, *(record for record in node.document.records if record != node.id))

    def _memberships(self, node: Node) -> Iterator[tuple[Scope, Entry]]:
        if node.document is None:
            yield scope_at(self.values, node.scope), node.entry
            return
        for at, name in enumerate(node.document.scopes):
            yield scope_at(self.values, name), entry_of(node.document, at)

    def _expand(self, node: Node, scope: Scope, entry: Entry) -> Rounds:
        """Everything that voids this member in this scope, and what voids that in turn, becomes reached."""
        bearing = self.ruleset.type_rules(scope.name, entry.type)
        for clause in bearing.superseded_by:
            if clause.differ_on:
                value = values_of(entry.compared, bearing.compared, clause.differ_on)
                self._span(node, scope, clause.type, entry.precedence, clause.differ_on, value)
                yield from self._expand_differing(
                    node, scope, clause.type, clause.rule, entry.precedence, clause.differ_on, value
                )
            else:
                self._span(node, scope, clause.type, entry.precedence, (), ())
                yield from self._expand_plain(node, scope, clause.type, clause.rule, entry.precedence)

    def _span(self, node: Node, scope: Scope, kind: str, low: Precedence, names: Compared, value: Compared) -> None:
        if self.has_links:
            self.spans.setdefault(node.id, []).append(Span(scope.name, kind, low, names, value))

    def _expand_plain(self, node: Node, scope: Scope, kind: str, rule: str, low: Precedence) -> Rounds:
        seen = self.reach.get((scope.name, kind))
        if (seen is not None and seen.low <= low) or greatest(scope, kind) <= low:
            return
        self.reach[scope.name, kind] = Reach(low, node.id, rule)
        high = _after(seen.low) if seen is not None else None
        bearing = self.ruleset.type_rules(scope.name, kind)
        all_visited = self.has_links or any(clause.differ_on for clause in bearing.superseded_by)
        first = True
        for member in (yield from self._members(scope, kind, _after(low), high, visited_only=not all_visited)):
            if not self._counts(member.time):
                continue
            if first or all_visited or member.elsewhere:
                self._reach_node(Node(member.id, None, member, node.id, rule, scope.name))
            first = False

    def _expand_differing(
        self, node: Node, scope: Scope, kind: str, rule: str, low: Precedence, names: Compared, value: Compared
    ) -> Rounds:
        key = (scope.name, kind, names, value)
        seen = self.differing_reach.get(key)
        if seen is not None and seen <= low:
            return
        self.differing_reach[key] = low
        bearing = self.ruleset.type_rules(scope.name, kind)
        high = _after(seen) if seen is not None else None
        for member in (yield from self._members(scope, kind, _after(low), high, visited_only=False)):
            if self._counts(member.time) and values_of(member.compared, bearing.compared, names) != value:
                self._reach_node(Node(member.id, None, member, node.id, rule, scope.name))

    def _members(
        self, scope: Scope, kind: str, low: Precedence, high: Precedence | None, *, visited_only: bool
    ) -> Generator[list[bytes], None, list[Entry]]:
        """Members in a span: all, or the first and those that may be void elsewhere."""
        members = members_voidable_elsewhere if visited_only else members_between
        return (yield from self._with_pages(lambda: list(members(scope, pages_of(self.values), kind, low, high))))

    def _with_pages(self, ask: Callable[[], T]) -> Generator[list[bytes], None, T]:
        """The answer of a pure function over the values; pages that it lacks are read first."""
        while True:
            try:
                return ask()
            except MissingPages as absent:
                lacking = absent.keys
            yield lacking

    def _follow_links(self, node: Node) -> None:
        for name in self._link_names(node):
            scope = scope_at(self.values, link_scope(name))
            for member in self._link_members(scope):
                if member.id not in (name, node.id) and self._counts(member.time):
                    self.link_edges.setdefault(node.id, []).append(member.id)
                    self._reach_node(Node(member.id, None, member, node.id, "link", scope.name))

    def _link_members(self, scope: Scope) -> list[Entry]:
        return list(all_members(scope, pages_of(self.values)))

    def _load(self, names: list[str]) -> Rounds:
        """The pages of link and record scopes that are large enough to have some."""
        while lacking := [key for name in dict.fromkeys(names) for key in self._missing_pages(name)]:
            yield lacking

    def _missing_pages(self, name: str) -> list[bytes]:
        try:
            require_all_pages(scope_at(self.values, name), pages_of(self.values))
        except MissingPages as absent:
            return absent.keys
        return []

    def _follow_names(self, node: Node) -> None:
        if node.document is None:
            return
        for name in node.document.superseded_by:
            found = [entry for entry in self._named(name) if entry.id != node.id]
            if not found:
                self.missing[name] = None
            for entry in found:
                if self._counts(entry.time):
                    self.link_edges.setdefault(node.id, []).append(entry.id)
                    self._reach_node(Node(entry.id, None, entry, node.id, "link", link_scope(node.id)))

    def _named(self, name: str) -> list[Entry]:
        held = document_at(self.values, name)
        found = [entry_of(held, None)] if held is not None else []
        return found + self._link_members(scope_at(self.values, record_scope(name)))

    def _finish(self, held: StoredDocument) -> Generator[list[bytes], None, WalkResult]:
        controlling: dict[str, tuple[Entry, tuple[str, str] | None]] = {}
        for node in self.nodes.values():
            if node.id in self.visited and (yield from self._is_active(node)):
                controlling[node.id] = (node.entry, None)
        closure, uncounted, unnamed = set(self.nodes), 0, 0
        for (name, kind), reach in self.reach.items():
            scope = scope_at(self.values, name)
            _, bar = yield from self._threshold(scope, kind)
            low = _after(reach.low)
            members, more = yield from self._members_beyond(scope, kind, low)
            closure.update(member.id for member in members)
            uncounted += more
            if more:
                members, left = yield from self._latest_members(scope, kind, max(low, bar.plain))
                unnamed += left
            for member in members:
                if member.precedence >= bar.plain and member.id not in self.nodes and self._counts(member.time):
                    controlling.setdefault(member.id, (member, (name, kind)))
        return self._result(held, controlling, self.nodes, closure, uncounted, unnamed)

    def _result(
        self,
        held: StoredDocument,
        controlling: dict[str, tuple[Entry, tuple[str, str] | None]],
        nodes: dict[str, Node],
        closure: set[str],
        uncounted: int,
        unnamed: int,
    ) -> WalkResult:
        entries = [entry for entry, _ in controlling.values()]
        return WalkResult(
            self.anchor,
            held,
            sorted(entries, key=lambda e: (e.id == self.anchor, -e.time, -e.order, e.id)),
            unnamed,
            {name: via for name, (_, via) in controlling.items()},
            nodes,
            self.reach,
            self.anchor in controlling,
            tuple(self.missing),
            tuple(self._cycle()),
            closure,
            uncounted,
            [scope_at(self.values, name) for name in held.scopes],
            self.as_of,
            [(n.id, n.rule, n.scope) for n in nodes.values() if n.parent == self.anchor],
            self.over_budget,
        )

    def _threshold(self, scope: Scope, kind: str) -> Generator[list[bytes], None, tuple[TypeRules, Threshold]]:
        found = self.thresholds.get((scope.name, kind))
        if found is None:
            bearing, pages = self.ruleset.type_rules(scope.name, kind), pages_of(self.values)
            bar = yield from self._with_pages(
                lambda: threshold_of(scope, pages, bearing, self.ruleset, up_to=self.as_of)
            )
            found = self.thresholds[scope.name, kind] = bearing, bar
        return found

    def _is_active(self, node: Node) -> Generator[list[bytes], None, bool]:
        for scope, entry in self._memberships(node):
            bearing, bar = yield from self._threshold(scope, entry.type)
            if bearing.superseded_by and not holds(entry, bar, bearing):
                return False
        return not self._is_void_by_link(node)

    def _is_void_by_link(self, node: Node) -> bool:
        for name in self._link_names(node):
            for member in self._link_members(scope_at(self.values, link_scope(name))):
                if member.id not in (name, node.id) and self._counts(member.time):
                    return True
        return any(self._is_effective(node.id, name) for name in (node.document.superseded_by if node.document else ()))

    def _is_effective(self, own: str, name: str) -> bool:
        found = [entry for entry in self._named(name) if entry.id != own]
        return not found or any(self._counts(entry.time) for entry in found)

    def _members_beyond(
        self, scope: Scope, kind: str, low: Precedence
    ) -> Generator[list[bytes], None, tuple[list[Entry], int]]:
        """The members beyond `low`, or if they are many only how many."""
        if scope.directory or self.named_max < len(scope.entries):
            total = yield from self._count(scope, kind, low, self._end())
            if total > self.named_max:
                return [], total
        return (yield from self._members(scope, kind, low, self._end(), visited_only=False)), 0

    def _latest_members(
        self, scope: Scope, kind: str, low: Precedence
    ) -> Generator[list[bytes], None, tuple[list[Entry], int]]:
        """Of the members from `low` on the latest, and how many others there are that were not visited."""
        pages, most = pages_of(self.values), self.named_max if self.named_max > COUNTED_MAX else LATEST_MAX
        start = yield from self._with_pages(lambda: latest_from(scope, pages, kind, low, self._end(), most))
        left = yield from self._count(scope, kind, low, start)
        nodes = (node.entry for node in self.nodes.values() if node.scope == scope.name)
        left -= sum(1 for entry in nodes if entry.type == kind and low <= entry.precedence < start)
        return (yield from self._members(scope, kind, start, self._end(), visited_only=False)), left

    def _count(
        self, scope: Scope, kind: str, low: Precedence, high: Precedence | None
    ) -> Generator[list[bytes], None, int]:
        return (yield from self._with_pages(lambda: count_between(scope, pages_of(self.values), kind, low, high)))

    def _end(self) -> Precedence | None:
        return (self.as_of + 1, LOWEST[1]) if self.as_of is not None else None

    def _cycle(self) -> list[str]:
        """The documents of this walk that void one another in a ring."""
        if not self.link_edges:
            return []
        members = (
            (name, entry_of(node.document, at))
            for node in self.nodes.values()
            if node.document is not None
            for at, name in enumerate(node.document.scopes)
        )
        return cycles(self.link_edges, self.spans, members, self._compared)

    def _compared(self, scope: str, entry: Entry, names: Compared) -> Compared:
        return values_of(entry.compared, self.ruleset.type_rules(scope, entry.type).compared, names)


def _after(pair: Precedence) -> Precedence:
    """The least pair greater than this one."""
    return pair[0], pair[1] + 1

"""Stage 2: from an anchor to the documents that control it now, with the path that leads to each.

Promise: the controlling documents are the active part of `cl({anchor})` (Definition 3), as in
`definitions.controlling`. In a scope, all later documents of every type that voids type U supersede a document
of type U. So one reached precedence per scope and type describes them all. The walk visits one by one only the
members that another scope could void, that a `differ_on` rule may spare, or (if the shard has links) that a
link may name. Cost: rules times log n per scope, plus the visited members and the output. The walk requests its
reads in rounds, by yielding keys; after every `STEP` documents or scopes it yields none, so that other work may run. A
`WalkBudget` bounds it.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TypeVar, cast

from msgspec import Struct

from stream_car.core.cycles import Span, documents_in_cycles
from stream_car.core.differ_on import values_of
from stream_car.core.documents import Precedence
from stream_car.core.revisions import document_key, entry_of
from stream_car.core.rules import Clause, Ruleset, TypeRules
from stream_car.core.scope_names import link_scope, record_scope
from stream_car.core.stored import LOWEST, Compared, Entry, Page, Pages, Scope, StoredDocument
from stream_car.core.thresholds import Threshold, no_rule_supersedes, threshold_of
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
    types,
)

T = TypeVar("T")
Reads = Generator[list[bytes], None, T]  # yields keys to be read into the values, and returns a T in the end
Values = dict[bytes, object]
ScopeAndType = tuple[str, str]
Thresholds = dict[ScopeAndType, tuple[TypeRules, Threshold]]  # as of one moment

COUNTED_MAX = 2000  # members of one scope that a closure names; if there are more, they are counted
LATEST_MAX = 1000  # controlling members of such a scope that are named, the latest
STEP = 64


def read_missing(values: Values, keys: Iterable[bytes]) -> Reads[None]:
    """Request the keys that have not been read, in one round."""
    missing = list(dict.fromkeys(key for key in keys if key not in values))
    if missing:
        yield missing


def with_pages(function: Callable[[], T]) -> Reads[T]:
    """Return the result of a pure function over the values, after reading the pages that it misses."""
    while True:
        try:
            return function()
        except MissingPages as error:
            missing = error.keys
        yield missing


def scope_at(values: Values, name: str) -> Scope:
    """Return the header of a scope; that of an unknown scope is empty."""
    scope = values.get(scope_key(name))
    return cast(Scope, scope) if scope is not None else Scope(name)


def document_at(values: Values, name: str) -> StoredDocument | None:
    """Return what is stored for an id; `None` if it is not part of the corpus now."""
    document = cast("StoredDocument | None", values.get(document_key(name)))
    return document if document is not None and document.is_present else None


def pages_of(values: Values) -> Pages:
    """Return the values as pages."""
    return cast(Pages, cast("dict[bytes, Page]", values))


class Node(Struct, gc=False):
    """A document that the walk reached: it voids node `parent` by `rule` in `scope`."""

    id: str
    document: StoredDocument | None
    entry: Entry
    parent: str | None
    rule: str
    scope: str


class Reach(Struct, gc=False):
    """All members of a type in a scope that are later than `low` are reached, from node `parent` by `rule`."""

    low: Precedence
    parent: str
    rule: str


class WalkBudget(Struct, gc=False):
    """How many documents, and how many levels of them, the walks of one question may still visit together."""

    visits: int = 1 << 60
    levels: int = 1 << 60

    @property
    def is_spent(self) -> bool:
        """Whether nothing more may be visited."""
        return self.visits <= 0 or self.levels <= 0


class WalkResult(Struct, gc=False):
    """The result of a walk.

    `nodes` are the documents that it visited. A controlling document may be reached without a visit: then `via` has
    the scope and type of the `reach` that contains it, otherwise `None`. `closure` is `cl({anchor})`. If a scope has
    too many members of a type to name, `closure_counts` counts those that are reached, visited ones included; the
    latest of its controlling members are named, and `controlling_more` counts the others. `superseded_by` lists the
    visited documents that were reached from the anchor itself: id, rule, scope. `around` are the documents that share a
    scope with the anchor (`D_sigma` of Definition 5), with the anchor itself; `large_scopes` has the number of members
    of those scopes that have too many to name. `members_of_large_scopes` are the documents of `closure` that are known
    to be in a scope with pages. `next` are the documents that were reached but not visited when the budget was spent:
    what controls them controls the anchor, too.
    """

    anchor: str
    document: StoredDocument
    controlling: list[Entry]
    controlling_more: int
    via: dict[str, ScopeAndType | None]
    nodes: dict[str, Node]
    reach: dict[ScopeAndType, Reach]
    is_active: bool
    missing: tuple[str, ...]
    cycle: tuple[str, ...]
    closure: set[str]
    closure_counts: dict[ScopeAndType, int]
    around: set[str]
    large_scopes: dict[str, int]
    members_of_large_scopes: dict[ScopeAndType, dict[str, Precedence]]
    superseded_by: list[tuple[str, str, str]]
    next: tuple[str, ...]

    def path(self, name: str) -> tuple[tuple[str, str, str], ...]:
        """Return the steps from the anchor to a controlling document, (id, rule, scope) each, without the anchor."""
        steps: list[tuple[str, str, str]] = []
        if (scope_and_type := self.via[name]) is not None:
            reach = self.reach[scope_and_type]
            steps.append((name, reach.rule, scope_and_type[0]))
            name = reach.parent
        node = self.nodes[name]
        while node.parent is not None:
            steps.append((node.id, node.rule, node.scope))
            node = self.nodes[node.parent]
        return tuple(reversed(steps))

    def entry(self, name: str) -> Entry | None:
        """Return a visited or controlling document as a member of a scope."""
        if name in self.nodes:
            return self.nodes[name].entry
        return next((entry for entry in self.controlling if entry.id == name), None)


class Walk:
    """One walk from one anchor over decoded values. `run` yields the keys to be read into `values`.

    It visits the documents level by level, in breadth-first order, until the budget is spent. Walks of one moment may
    share their `thresholds` and their `budget`.
    """

    def __init__(
        self,
        anchor: str,
        values: Values,
        ruleset: Ruleset,
        *,
        has_links: bool,
        as_of: int | None = None,
        named_max: int = COUNTED_MAX,
        thresholds: Thresholds | None = None,
        budget: WalkBudget | None = None,
    ) -> None:
        self.anchor = anchor
        self.values = values
        self.ruleset = ruleset
        self.has_links = has_links
        self.as_of = as_of
        self.budget = budget if budget is not None else WalkBudget()
        self.named_max = named_max
        self.thresholds: Thresholds = thresholds if thresholds is not None else {}
        self.nodes: dict[str, Node] = {}
        self.next_level: list[Node] = []
        self.visited: set[str] = set()
        self.reach: dict[ScopeAndType, Reach] = {}
        self.differing_reach: dict[tuple[str, str, Compared, Compared], Precedence] = {}
        self.spans: dict[str, list[Span]] = {}
        self.link_edges: dict[str, list[str]] = {}
        self.missing: dict[str, None] = {}
        self.members_of_large_scopes: dict[ScopeAndType, dict[str, Precedence]] = {}
        self.steps = 0

    def run(self) -> Reads[WalkResult | None]:
        """Walk; return `None` if the anchor is not part of the corpus, or takes effect only after `as_of`."""
        status = yield from self.anchor_status()
        if status is None:
            return None
        document, is_active = status
        node = Node(self.anchor, document, entry_of(document, None), None, "", "")
        self._reach_node(node)
        if is_active:
            self.next_level.clear()
            large_scopes = yield from self._large_scopes(document)
            return self._result(document, {self.anchor: (node.entry, None)}, 0, {self.anchor}, {}, large_scopes)
        while self.next_level and not self.budget.is_spent:
            level, self.next_level = self.next_level[: self.budget.visits], self.next_level[self.budget.visits :]
            self.budget.levels -= 1
            self.budget.visits -= len(level)
            yield from self._visit(level)
        return (yield from self._finish(document))

    def anchor_status(self) -> Reads[tuple[StoredDocument, bool] | None]:
        """Return what is stored for the anchor and whether it is active; `None` if it is not part of the corpus."""
        yield from read_missing(self.values, (document_key(self.anchor),))
        document = document_at(self.values, self.anchor)
        if document is None or not self._is_in_effect(document.time):
            return None
        node = Node(self.anchor, document, entry_of(document, None), None, "", "")
        yield from read_missing(self.values, self._keys_of(node))
        if self.has_links or document.superseded_by:
            yield from self._read_all_pages(list(self._link_and_record_scopes(node)))
        return document, (yield from self._is_active(node))

    def _rest(self) -> Reads[None]:
        """Let other work run after every `STEP` calls."""
        self.steps += 1
        if not self.steps % STEP:
            yield []

    def _is_in_effect(self, time: int) -> bool:
        return self.as_of is None or time <= self.as_of

    def _end(self) -> Precedence | None:
        """Return the least precedence that is no longer in effect."""
        return (self.as_of + 1, LOWEST[1]) if self.as_of is not None else None

    def _visit(self, level: list[Node]) -> Reads[None]:
        """Read what these nodes need, all together in each round; then reach everything that voids them."""
        needed = [node for node in level if self._needs_document(node)]
        yield from read_missing(self.values, (document_key(node.id) for node in needed))
        for node in needed:
            node.document = document_at(self.values, node.id)
        yield from read_missing(self.values, (key for node in level for key in self._keys_of(node)))
        yield from self._read_all_pages([name for node in level for name in self._link_and_record_scopes(node)])
        self.visited.update(node.id for node in level)
        for node in level:
            for scope, entry in self._memberships(node):
                yield from self._reach_by_rules(node, scope, entry)
                yield from self._rest()
            self._reach_successors(node)
            self._reach_by_links(node)

    def _needs_document(self, node: Node) -> bool:
        """Return whether more must be known of a node than its entry in the scope where it was reached."""
        return node.document is None and (self.has_links or node.entry.elsewhere > 0 or node.rule in ("", "link"))

    def _keys_of(self, node: Node) -> Iterator[bytes]:
        for scope in node.document.scopes if node.document is not None else (node.scope,):
            yield scope_key(scope)
        for scope in self._link_and_record_scopes(node):
            yield scope_key(scope)
        for name in _successors(node):
            yield document_key(name)

    def _link_and_record_scopes(self, node: Node) -> Iterator[str]:
        """Yield the scopes of the links to a node, and of the records that it names as its successors."""
        for name in self._link_names(node):
            yield link_scope(name)
        for name in _successors(node):
            yield record_scope(name)

    def _link_names(self, node: Node) -> tuple[str, ...]:
        """Return the names under which a link can void a node: its id and its records."""
        if not self.has_links or node.document is None:
            return ()
        return (node.id, *(record for record in node.document.records if record != node.id))

    def _memberships(self, node: Node) -> Iterator[tuple[Scope, Entry]]:
        if node.document is None:
            yield scope_at(self.values, node.scope), node.entry
            return
        for index, name in enumerate(node.document.scopes):
            yield scope_at(self.values, name), entry_of(node.document, index)

    def _read_all_pages(self, scopes: list[str]) -> Reads[None]:
        """Read the pages of link and record scopes that are large enough to have pages."""
        while missing := [key for name in dict.fromkeys(scopes) for key in self._missing_pages(name)]:
            yield missing

    def _missing_pages(self, scope: str) -> list[bytes]:
        try:
            require_all_pages(scope_at(self.values, scope), pages_of(self.values))
        except MissingPages as error:
            return error.keys
        return []

    def _reach_node(self, node: Node) -> None:
        if node.id not in self.nodes:
            self.nodes[node.id] = node
            self.next_level.append(node)

    def _reach_by_rules(self, node: Node, scope: Scope, entry: Entry) -> Reads[None]:
        """Reach everything that voids this member in this scope, and what voids that in turn."""
        type_rules = self.ruleset.type_rules(scope.name, entry.type)
        for clause in type_rules.superseded_by:
            names = clause.differ_on
            value = values_of(entry.compared, type_rules.compared, names) if names else ()
            if self.has_links:
                span = Span(scope.name, clause.type, entry.precedence, names, value)
                self.spans.setdefault(node.id, []).append(span)
            if names:
                yield from self._reach_differing(node, scope, clause, entry.precedence, value)
            else:
                yield from self._reach_later(node, scope, clause, entry.precedence)

    def _reach_later(self, node: Node, scope: Scope, clause: Clause, low: Precedence) -> Reads[None]:
        """Reach all members of the clause's type that are later than `low`."""
        reached = self.reach.get((scope.name, clause.type))
        if (reached is not None and reached.low <= low) or greatest(scope, clause.type) <= low:
            return
        self.reach[scope.name, clause.type] = Reach(low, node.id, clause.rule)
        high = _after(reached.low) if reached is not None else None
        type_rules = self.ruleset.type_rules(scope.name, clause.type)
        visits_all = self.has_links or any(rule.differ_on for rule in type_rules.superseded_by)
        # Otherwise the first member is enough: what voids a later one in this scope is later than the first, too.
        is_first = True
        members = self._members(scope, clause.type, _after(low), high, only_voidable_elsewhere=not visits_all)
        for member in (yield from members):
            if not self._is_in_effect(member.time):
                continue
            if is_first or visits_all or member.elsewhere:
                self._reach_node(Node(member.id, None, member, node.id, clause.rule, scope.name))
            is_first = False

    def _reach_differing(
        self, node: Node, scope: Scope, clause: Clause, low: Precedence, value: Compared
    ) -> Reads[None]:
        """Reach the members of the clause's type that are later than `low` and whose value is not `value`."""
        key = (scope.name, clause.type, clause.differ_on, value)
        reached = self.differing_reach.get(key)
        if reached is not None and reached <= low:
            return
        self.differing_reach[key] = low
        type_rules = self.ruleset.type_rules(scope.name, clause.type)
        high = _after(reached) if reached is not None else None
        for member in (yield from self._members(scope, clause.type, _after(low), high)):
            differs = values_of(member.compared, type_rules.compared, clause.differ_on) != value
            if differs and self._is_in_effect(member.time):
                self._reach_node(Node(member.id, None, member, node.id, clause.rule, scope.name))

    def _reach_successors(self, node: Node) -> None:
        """Reach the successors that a node names; note the names that no document has."""
        for name in _successors(node):
            successors = [entry for entry in self._documents_named(name) if entry.id != node.id]
            if not successors:
                self.missing[name] = None
            for entry in successors:
                if self._is_in_effect(entry.time):
                    self._reach_link(node, entry, link_scope(node.id))

    def _reach_by_links(self, node: Node) -> None:
        """Reach the documents that void a node by name."""
        for entry, scope in self._linking_documents(node):
            self._reach_link(node, entry, scope)

    def _reach_link(self, node: Node, entry: Entry, scope: str) -> None:
        self.link_edges.setdefault(node.id, []).append(entry.id)
        self._reach_node(Node(entry.id, None, entry, node.id, "link", scope))

    def _linking_documents(self, node: Node) -> Iterator[tuple[Entry, str]]:
        """Yield the documents in effect that void a node by name, each with the link's scope."""
        for name in self._link_names(node):
            scope = scope_at(self.values, link_scope(name))
            for member in all_members(scope, pages_of(self.values)):
                if member.id not in (name, node.id) and self._is_in_effect(member.time):
                    yield member, scope.name

    def _documents_named(self, name: str) -> list[Entry]:
        """Return the document with this id, and the editions of the record of this name."""
        document = document_at(self.values, name)
        entries = [entry_of(document, None)] if document is not None else []
        return entries + list(all_members(scope_at(self.values, record_scope(name)), pages_of(self.values)))

    def _threshold(self, scope: Scope, type_name: str) -> Reads[tuple[TypeRules, Threshold]]:
        known = self.thresholds.get((scope.name, type_name))
        if known is None:
            type_rules, pages = self.ruleset.type_rules(scope.name, type_name), pages_of(self.values)
            threshold = yield from with_pages(
                lambda: threshold_of(scope, pages, type_rules, self.ruleset, up_to=self.as_of)
            )
            known = self.thresholds[scope.name, type_name] = type_rules, threshold
        return known

    def _is_active(self, node: Node) -> Reads[bool]:
        for scope, entry in self._memberships(node):
            type_rules, threshold = yield from self._threshold(scope, entry.type)
            if type_rules.superseded_by and not no_rule_supersedes(entry, threshold, type_rules):
                return False
            yield from self._rest()
        return not self._is_void_by_link(node)

    def _is_void_by_link(self, node: Node) -> bool:
        if next(self._linking_documents(node), None) is not None:
            return True
        return any(self._is_effective_successor(name, node) for name in _successors(node))

    def _is_effective_successor(self, name: str, node: Node) -> bool:
        successors = [entry for entry in self._documents_named(name) if entry.id != node.id]
        return not successors or any(self._is_in_effect(entry.time) for entry in successors)

    def _finish(self, document: StoredDocument) -> Reads[WalkResult]:
        controlling: dict[str, tuple[Entry, ScopeAndType | None]] = {}
        for node in self.nodes.values():
            if node.id in self.visited and (yield from self._is_active(node)):
                controlling[node.id] = (node.entry, None)
        closure, controlling_more = set(self.nodes), 0
        closure_counts: dict[ScopeAndType, int] = {}
        for (name, type_name), reach in self.reach.items():
            scope = scope_at(self.values, name)
            _, threshold = yield from self._threshold(scope, type_name)
            low = _after(reach.low)
            members, uncounted = yield from self._members_beyond(scope, type_name, low)
            closure.update(member.id for member in members)
            if scope.directory:
                precedences = {member.id: member.precedence for member in members}
                self.members_of_large_scopes.setdefault((name, type_name), {}).update(precedences)
            if uncounted:
                closure_counts[name, type_name] = uncounted
                members, unnamed = yield from self._latest_members(scope, type_name, max(low, threshold.plain))
                controlling_more += unnamed
            for member in members:
                # Only a plain rule of this scope can void a member that was not visited.
                if (
                    member.precedence >= threshold.plain
                    and member.id not in self.nodes
                    and self._is_in_effect(member.time)
                ):
                    controlling.setdefault(member.id, (member, (name, type_name)))
        large_scopes = yield from self._large_scopes(document)
        return self._result(document, controlling, controlling_more, closure, closure_counts, large_scopes)

    def _large_scopes(self, document: StoredDocument) -> Reads[dict[str, int]]:
        """Return the number of members in effect of each of the anchor's scopes that have too many to name."""
        large_scopes: dict[str, int] = {}
        for name in document.scopes:
            scope = scope_at(self.values, name)
            if scope.directory:
                if self.as_of is None:
                    large_scopes[name] = size(scope)
                    continue
                large_scopes[name] = 0
                for type_name in types(scope):
                    large_scopes[name] += yield from self._count(scope, type_name, LOWEST, self._end())
        return large_scopes

    def _result(
        self,
        document: StoredDocument,
        controlling: dict[str, tuple[Entry, ScopeAndType | None]],
        controlling_more: int,
        closure: set[str],
        closure_counts: dict[ScopeAndType, int],
        large_scopes: dict[str, int],
    ) -> WalkResult:
        entries = [entry for entry, _ in controlling.values()]
        self._note_members_of_large_scopes()
        return WalkResult(
            anchor=self.anchor,
            document=document,
            controlling=sorted(entries, key=lambda e: (e.id == self.anchor, -e.time, -e.order, e.id)),
            controlling_more=controlling_more,
            via={name: via for name, (_, via) in controlling.items()},
            nodes=self.nodes,
            reach=self.reach,
            is_active=self.anchor in controlling,
            missing=tuple(self.missing),
            cycle=tuple(self._cycle()),
            closure=closure,
            closure_counts=closure_counts,
            around={self.anchor, *self._members_around(document)},
            large_scopes=large_scopes,
            members_of_large_scopes=self.members_of_large_scopes,
            superseded_by=[(n.id, n.rule, n.scope) for n in self.nodes.values() if n.parent == self.anchor],
            next=tuple(node.id for node in self.next_level),
        )

    def _members_around(self, document: StoredDocument) -> Iterator[str]:
        """Yield the members in effect of the anchor's scopes that can name them all."""
        for name in document.scopes:
            for entry in scope_at(self.values, name).entries:
                if self._is_in_effect(entry.time):
                    yield entry.id

    def _note_members_of_large_scopes(self) -> None:
        """Add the visited documents to `members_of_large_scopes`."""
        for node in self.nodes.values():
            for name in node.document.scopes if node.document is not None else (node.scope,):
                if scope_at(self.values, name).directory:
                    members = self.members_of_large_scopes.setdefault((name, node.entry.type), {})
                    members[node.id] = node.entry.precedence

    def _members(
        self,
        scope: Scope,
        type_name: str,
        low: Precedence,
        high: Precedence | None,
        *,
        only_voidable_elsewhere: bool = False,
    ) -> Reads[list[Entry]]:
        """Return the members of a type in a range: all, or the first and those that another scope could void."""
        members = members_voidable_elsewhere if only_voidable_elsewhere else members_between
        return (yield from with_pages(lambda: list(members(scope, pages_of(self.values), type_name, low, high))))

    def _members_beyond(self, scope: Scope, type_name: str, low: Precedence) -> Reads[tuple[list[Entry], int]]:
        """Return the members in effect from `low` on; if they are more than `named_max`, only their number."""
        if scope.directory or self.named_max < len(scope.entries):
            count = yield from self._count(scope, type_name, low, self._end())
            if count > self.named_max:
                return [], count
        return (yield from self._members(scope, type_name, low, self._end())), 0

    def _latest_members(self, scope: Scope, type_name: str, low: Precedence) -> Reads[tuple[list[Entry], int]]:
        """Return the latest members in effect from `low` on, and the number of the others that were not visited."""
        pages, limit = pages_of(self.values), self.named_max if self.named_max > COUNTED_MAX else LATEST_MAX
        start = yield from with_pages(lambda: latest_from(scope, pages, type_name, low, self._end(), limit))
        others = yield from self._count(scope, type_name, low, start)
        entries = (node.entry for node in self.nodes.values() if node.scope == scope.name)
        others -= sum(1 for entry in entries if entry.type == type_name and low <= entry.precedence < start)
        return (yield from self._members(scope, type_name, start, self._end())), others

    def _count(self, scope: Scope, type_name: str, low: Precedence, high: Precedence | None) -> Reads[int]:
        return (yield from with_pages(lambda: count_between(scope, pages_of(self.values), type_name, low, high)))

    def _cycle(self) -> list[str]:
        """Return the documents of this walk that void one another in a cycle."""
        if not self.link_edges:
            return []
        members = (
            (name, entry_of(node.document, index))
            for node in self.nodes.values()
            if node.document is not None
            for index, name in enumerate(node.document.scopes)
        )
        return documents_in_cycles(self.link_edges, self.spans, members, self._compared)

    def _compared(self, scope: str, entry: Entry, names: Compared) -> Compared:
        return values_of(entry.compared, self.ruleset.type_rules(scope, entry.type).compared, names)


def _successors(node: Node) -> tuple[str, ...]:
    """Return the names in `superseded_by` of a node whose document was read."""
    return node.document.superseded_by if node.document is not None else ()


def _after(precedence: Precedence) -> Precedence:
    """Return the least greater precedence."""
    return precedence[0], precedence[1] + 1

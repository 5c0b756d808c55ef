"""The theory of 'Controlling Authority Retrieval', written straight from its definitions: the oracle of the tests.

Promise: no thought for speed. Every fast path returns what these functions return for the same documents.
Cost: quadratic in the documents for the relation, cubic for its closure; use it on hundreds of documents.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from stream_car.core.documents import Document, Retraction, Statement
from stream_car.core.rules import Ruleset, canonical_json
from stream_car.core.scope_names import amended_scope, keys_of, link_scope

Corpus = Mapping[str, Document]


class Reason(Struct, frozen=True, kw_only=True, gc=False):
    """Why one document voids or amends another: the rule (`link` for a link) and the scope that they share."""

    rule: str
    scope: str


def current_documents(statements: Iterable[Statement]) -> dict[str, Document]:
    """Return the documents that are current after these statements, given in log order.

    The greatest `(revision, retracted)` of an id counts. Of two documents with equal id and revision the first counts.
    A retraction without a revision retracts the revision stored at that point, and does nothing if there is none.
    """
    latest: dict[str, tuple[int, bool, Document | None]] = {}
    for statement in statements:
        stored = latest.get(statement.id)
        if isinstance(statement, Retraction):
            revision = statement.revision if statement.revision is not None else stored and stored[0]
            if revision is not None and (stored is None or (revision, True) > stored[:2]):
                latest[statement.id] = (revision, True, None)
        elif stored is None or (statement.revision, False) > stored[:2]:
            latest[statement.id] = (statement.revision, False, statement)
    return {name: document for name, (_, _, document) in latest.items() if document is not None}


def is_named(document: Document, names: Iterable[str]) -> bool:
    """Return whether one of the names is the document's id or a record of which it is an edition."""
    return not {document.id, *document.records}.isdisjoint(names)


def shared_scopes(a: Document, b: Document, keys: Sequence[str], ruleset: Ruleset) -> list[str]:
    """Return the names of the scopes with exactly these keys that both documents are in, sorted."""
    wanted = ", ".join(sorted(keys))
    shared = set(ruleset.scopes(a)) & set(ruleset.scopes(b))
    return sorted(scope for scope in shared if keys_of(scope) == wanted)


def voids(*, later: Document, earlier: Document, ruleset: Ruleset) -> Reason | None:
    """Return why `later` voids `earlier` directly, or `None` if it does not.

    This is the relation of Definition 1 before its transitive closure, which `superseders` takes. Links are decided
    before rules and ignore time. A rule requires that the precedence `(time, order)` of `later` is greater: with equal
    precedence two documents could void each other. No document voids itself.
    """
    if later.id == earlier.id:
        return None
    if is_named(earlier, later.supersedes):
        return Reason(rule="link", scope=link_scope(earlier.id))
    if is_named(later, earlier.superseded_by):
        return Reason(rule="link", scope=link_scope(earlier.id))
    if later.precedence <= earlier.precedence:
        return None
    for rule in ruleset.rules.values():
        if rule.effect != "supersede" or (earlier.type, later.type) != (rule.superseded_type, rule.superseding_type):
            continue
        if rule.differ_on and _compared(later, rule.differ_on) == _compared(earlier, rule.differ_on):
            continue
        shared = shared_scopes(later, earlier, rule.scope_keys, ruleset)
        if shared:
            return Reason(rule=rule.name, scope=shared[0])
    return None


def amends(*, later: Document, earlier: Document, ruleset: Ruleset) -> Reason | None:
    """Return why `later` amends `earlier` directly, or `None` if it does not.

    Decided like `voids`, by the link `amends` and by the rules whose effect is to amend. An amended document stays
    active.
    """
    if later.id == earlier.id:
        return None
    if is_named(earlier, later.amends):
        return Reason(rule="link", scope=amended_scope(earlier.id))
    if later.precedence <= earlier.precedence:
        return None
    for rule in ruleset.rules.values():
        if rule.effect == "amend" and (earlier.type, later.type) == (rule.superseded_type, rule.superseding_type):
            shared = shared_scopes(later, earlier, rule.scope_keys, ruleset)
            if shared:
                return Reason(rule=rule.name, scope=shared[0])
    return None


def _compared(document: Document, names: Sequence[str]) -> list[str]:
    return [canonical_json(document.attributes.get(name)) for name in names]


def superseders(corpus: Corpus, ruleset: Ruleset) -> dict[str, set[str]]:
    """Return for every document all documents that supersede it.

    This is the supersession relation of Definition 1: the transitive closure of `voids`, by Warshall's algorithm.
    """
    above = {
        earlier.id: {later.id for later in corpus.values() if voids(later=later, earlier=earlier, ruleset=ruleset)}
        for earlier in corpus.values()
    }
    for middle, above_middle in above.items():
        for reached in above.values():
            if middle in reached:
                reached |= above_middle
    return above


def names_effective_successor(document: Document, corpus: Corpus, as_of: int | None = None) -> bool:
    """Return whether `superseded_by` names a successor that counts.

    A successor counts if it is not in the corpus, or took effect by `as_of`. Without `as_of` every successor counts.
    """
    for name in document.superseded_by:
        present = [other for other in corpus.values() if other.id != document.id and is_named(other, [name])]
        if as_of is None or not present or any(other.time <= as_of for other in present):
            return True
    return False


def in_effect(corpus: Corpus, as_of: int | None) -> dict[str, Document]:
    """Return the documents in effect at the valid time `as_of` (microseconds UTC), or all if it is `None`."""
    return {name: document for name, document in corpus.items() if as_of is None or document.time <= as_of}


def active(corpus: Corpus, ruleset: Ruleset, as_of: int | None = None) -> set[str]:
    """Return the active documents (Definition 1): no document voids them, and they name no effective successor."""
    present = in_effect(corpus, as_of)
    return {
        earlier.id
        for earlier in present.values()
        if not names_effective_successor(earlier, corpus, as_of)
        and not any(voids(later=later, earlier=earlier, ruleset=ruleset) for later in present.values())
    }


def closure(anchors: Iterable[str], above: Mapping[str, set[str]]) -> set[str]:
    """Return the authority closure `cl(A)` (Definition 3): the anchors and all that supersede one of them.

    `above` is the relation as `superseders` returns it.
    """
    start = set(anchors)
    return start.union(*(above[anchor] for anchor in start))


def front(members: Iterable[str], above: Mapping[str, set[str]]) -> set[str]:
    """Return the active frontier `front(S)` (Definition 3): the members that no other member supersedes."""
    inside = set(members)
    return {member for member in inside if not above[member] & inside}


def controlling(anchor: str, corpus: Corpus, ruleset: Ruleset, as_of: int | None = None) -> set[str]:
    """Return the documents that control an anchor (Definition 2): the active documents of `cl({anchor})`.

    This is `front(cl({anchor}))` without the documents that name a successor outside the corpus.
    """
    above = superseders(in_effect(corpus, as_of), ruleset)
    return closure([anchor], above) & active(corpus, ruleset, as_of)


def amendments(name: str, corpus: Corpus, ruleset: Ruleset, as_of: int | None = None) -> set[str]:
    """Return what must be read with a document: the documents that control those which amend it directly."""
    present = in_effect(corpus, as_of)
    above = superseders(present, ruleset)
    amending = [later.id for later in present.values() if amends(later=later, earlier=present[name], ruleset=ruleset)]
    return (closure(amending, above) & active(corpus, ruleset, as_of)) - {name}


def frontier(scope: str, corpus: Corpus, ruleset: Ruleset, as_of: int | None = None) -> set[str]:
    """Return the frontier of a scope: the members that no other member voids by a rule of this scope.

    This is what an insertion changes (Definition 11). In a scope `amended=NAME` the members are the documents with a
    link `amends` to NAME; no rule voids them there.
    """
    members = [
        document
        for document in in_effect(corpus, as_of).values()
        if scope in (*ruleset.scopes(document), *map(amended_scope, document.amends))
    ]
    return {
        earlier.id for earlier in members if not any(_voids_in(scope, later, earlier, ruleset) for later in members)
    }


def _voids_in(scope: str, later: Document, earlier: Document, ruleset: Ruleset) -> bool:
    if later.precedence <= earlier.precedence:
        return False
    return any(
        rule.effect == "supersede"
        and (rule.superseded_type, rule.superseding_type) == (earlier.type, later.type)
        and ", ".join(sorted(rule.scope_keys)) == keys_of(scope)
        and not (rule.differ_on and _compared(later, rule.differ_on) == _compared(earlier, rule.differ_on))
        for rule in ruleset.rules.values()
    )


def frontier_inclusion(retrieved: Iterable[str], anchors: Iterable[str], above: Mapping[str, set[str]]) -> set[str]:
    """Return the members of `front(cl(A))` that the retrieved set lacks: none if and only if Theorem 4 (i) holds."""
    return front(closure(anchors, above), above) - set(retrieved)


def ignored_superseders(retrieved: Iterable[str], above: Mapping[str, set[str]]) -> set[str]:
    """Return the superseded members of the retrieved set without a superseder in it.

    There are none if and only if Theorem 4 (ii), no ignored superseder (Definition 7), holds.
    """
    inside = set(retrieved)
    return {member for member in inside if above[member] and not above[member] & inside}

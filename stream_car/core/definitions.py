"""The definitions, written down once with no thought for speed: the only oracle.

Every fast path is held equal to these functions over the same documents. Cost: quadratic in the
documents for the relation, cubic for its closure; use it on hundreds.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from stream_car.core.documents import Document, Retraction, Statement
from stream_car.core.rules import Ruleset, canonical
from stream_car.core.scope_names import amended_scope, keys_of, link_scope

Corpus = Mapping[str, Document]


class Reason(Struct, frozen=True, kw_only=True, gc=False):
    """Why one document voids another: the rule and the scope that they share; links say `link`."""

    rule: str
    scope: str


def current_documents(statements: Iterable[Statement]) -> dict[str, Document]:
    """The documents that stand after these statements, in log order.

    The greatest `(revision, retracted)` of an id counts; of two contents of one revision the first
    does. A retraction without a revision means the one then stored, of an unknown id none.
    """
    best: dict[str, tuple[int, bool, Document | None]] = {}
    for said in statements:
        held = best.get(said.id)
        if isinstance(said, Retraction):
            revision = said.revision if said.revision is not None else held and held[0]
            if revision is not None and (held is None or (revision, True) > held[:2]):
                best[said.id] = (revision, True, None)
        elif held is None or (said.revision, False) > held[:2]:
            best[said.id] = (said.revision, False, said)
    return {name: document for name, (_, _, document) in best.items() if document is not None}


def is_named(document: Document, names: Iterable[str]) -> bool:
    """Whether some name is the document's id or a record of which it is an edition."""
    known = {document.id, *document.records}
    return any(name in known for name in names)


def shared_scopes(a: Document, b: Document, keys: Sequence[str], ruleset: Ruleset) -> list[str]:
    """The scopes of this key set that two documents share, by name."""
    wanted = ", ".join(sorted(keys))
    both = set(ruleset.scopes(a)) & set(ruleset.scopes(b))
    return sorted(scope for scope in both if keys_of(scope) == wanted)


def voids(*, later: Document, earlier: Document, ruleset: Ruleset) -> Reason | None:
    """Why `later` voids `earlier` directly (Definition 1, before closure), or `None`.

    Equal `(time, order)` voids nothing by rule; links do not look at time; nothing voids itself.
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
    """Why `later` amends `earlier` directly, or `None`: as `voids`, by links `amends` and rules that amend."""
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
    return [canonical(document.attributes.get(name)) for name in names]


def superseders(corpus: Corpus, ruleset: Ruleset) -> dict[str, set[str]]:
    """For every document all that supersede it: the transitive closure of `voids` (Definition 1)."""
    above = {
        old.id: {new.id for new in corpus.values() if voids(later=new, earlier=old, ruleset=ruleset)}
        for old in corpus.values()
    }
    for middle, beyond in above.items():
        for reached in above.values():
            if middle in reached:
                reached |= beyond
    return above


def names_effective_successor(document: Document, corpus: Corpus, as_of: int | None = None) -> bool:
    """Whether it names a successor that counts: one that is not here, or took effect by `as_of`."""
    for name in document.superseded_by:
        present = [other for other in corpus.values() if other.id != document.id and is_named(other, [name])]
        if as_of is None or not present or any(other.time <= as_of for other in present):
            return True
    return False


def in_effect(corpus: Corpus, as_of: int | None) -> dict[str, Document]:
    """The documents in effect at a valid time (microseconds UTC)."""
    return {name: document for name, document in corpus.items() if as_of is None or document.time <= as_of}


def active(corpus: Corpus, ruleset: Ruleset, as_of: int | None = None) -> set[str]:
    """The documents that nothing present voids and that do not say they are superseded."""
    here = in_effect(corpus, as_of)
    return {
        old.id
        for old in here.values()
        if not names_effective_successor(old, corpus, as_of)
        and not any(voids(later=new, earlier=old, ruleset=ruleset) for new in here.values())
    }


def closure(anchors: Iterable[str], above: Mapping[str, set[str]]) -> set[str]:
    """`cl(A)` (Definition 3): the anchors and all that supersede one of them."""
    start = set(anchors)
    return start.union(*(above[anchor] for anchor in start))


def front(members: Iterable[str], above: Mapping[str, set[str]]) -> set[str]:
    """`front(S)` (Definition 3): the members that no other member supersedes."""
    inside = set(members)
    return {member for member in inside if not above[member] & inside}


def controlling(anchor: str, corpus: Corpus, ruleset: Ruleset, as_of: int | None = None) -> set[str]:
    """The active documents of `cl({anchor})`: its front, but for cycles and missing successors."""
    above = superseders(in_effect(corpus, as_of), ruleset)
    return closure([anchor], above) & active(corpus, ruleset, as_of)


def amendments(name: str, corpus: Corpus, ruleset: Ruleset, as_of: int | None = None) -> set[str]:
    """What an answer that rests on a document must carry: what controls those that amend it directly."""
    here = in_effect(corpus, as_of)
    above = superseders(here, ruleset)
    amending = [one.id for one in here.values() if amends(later=one, earlier=here[name], ruleset=ruleset)]
    return (closure(amending, above) & active(corpus, ruleset, as_of)) - {name}


def frontier(scope: str, corpus: Corpus, ruleset: Ruleset, as_of: int | None = None) -> set[str]:
    """The members of a scope that no member voids through that scope; of `amended=NAME` those who amend by name."""
    members = [
        d for d in in_effect(corpus, as_of).values() if scope in (*ruleset.scopes(d), *map(amended_scope, d.amends))
    ]
    return {old.id for old in members if not any(_voids_in(scope, new, old, ruleset) for new in members)}


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
    """Theorem 4 (i): what of `front(cl(A))` the retrieved set lacks; empty iff it holds."""
    return front(closure(anchors, above), above) - set(retrieved)


def ignored_superseders(retrieved: Iterable[str], above: Mapping[str, set[str]]) -> set[str]:
    """Theorem 4 (ii): superseded members without a superseder in the set; empty iff it holds."""
    inside = set(retrieved)
    return {member for member in inside if above[member] and not above[member] & inside}

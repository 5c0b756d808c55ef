"""What a pack would do: its problems, and the pairs that it would connect in a sample.

Promise: `core.authority` decides every pair, so the report shows what the engine will do. Cost:
quadratic in the documents that share a scope; give it hundreds.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

from msgspec import Struct

from stream_car.core import definitions
from stream_car.core.documents import Document
from stream_car.core.rule_pack import Rule, RulePack
from stream_car.core.rules import Ruleset
from stream_car.rule_packs.loader import gather

DAY = 86_400_000_000
START = 1_704_067_200_000_000  # 2024-01-01T00:00:00Z
LINKED = "link"  # what `authority` calls the rule of an explicit link


class Connection(Struct, frozen=True, kw_only=True):
    """`later` voids (or amends) `earlier` through a rule, or by an explicit `link`, in a scope."""

    later: str
    earlier: str
    rule: str
    scope: str
    effect: str = "supersede"


class Report(Struct, frozen=True, kw_only=True):
    """What is wrong with a pack, and otherwise what it would connect in a sample.

    `invented` says that the sample was made up from the rules. `unscoped` are the documents that join
    no scope, `lacking` the keys that types lacked, `unknown` the types that no loaded pack declares,
    and `idle` the rules of the pack that connected nothing.
    """

    name: str
    problems: tuple[str, ...] = ()
    ruleset: Ruleset | None = None
    invented: bool = False
    sample: tuple[Document, ...] = ()
    connections: tuple[Connection, ...] = ()
    unscoped: tuple[str, ...] = ()
    lacking: tuple[tuple[str, str, int], ...] = ()
    unknown: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()


def examine(path: str | Path, sample: Iterable[Document] = (), *, beside: Sequence[str | Path] = ()) -> Report:
    """Load one pack (with those `beside` it) and show which documents of a sample it would connect.

    Without a sample a few documents are invented for each rule. Never raises for a bad pack: its
    problems are the report.
    """
    domains, problems = gather([path, *beside])
    if problems or not domains:
        return Report(name=str(path), problems=problems)
    pack, rules = domains[0], Ruleset(domains)
    given = tuple(definitions.current_documents(sample).values())
    documents = given or tuple(invent(pack, rules))
    known = [document for document in documents if rules.knows(document.type)]
    connections = tuple(sorted(connected(known, rules), key=lambda c: (c.rule, c.later, c.earlier)))
    used = {connection.rule for connection in connections}
    return Report(
        name=pack.name,
        ruleset=rules,
        invented=not given,
        sample=documents,
        connections=connections,
        unscoped=tuple(document.id for document in known if not rules.scopes(document)),
        lacking=_lacking(known, rules),
        unknown=tuple(sorted({document.type for document in documents if not rules.knows(document.type)})),
        idle=tuple(rule.name for rule in pack.rules if rule.name not in used),
    )


def connected(documents: Sequence[Document], ruleset: Ruleset) -> Iterator[Connection]:
    """Every pair of which the later voids or amends the earlier directly."""
    for later, earlier in _near(documents, ruleset):
        reason = definitions.voids(later=later, earlier=earlier, ruleset=ruleset)
        if reason is not None:
            yield Connection(later=later.id, earlier=earlier.id, rule=reason.rule, scope=reason.scope)
        yield from _amendments(later, earlier, ruleset)


def _near(documents: Sequence[Document], ruleset: Ruleset) -> Iterator[tuple[Document, Document]]:
    """The pairs worth asking about: those that share a scope, or of which one names the other."""
    groups: dict[str, dict[str, Document]] = {}
    for document in documents:
        names = [f"\0{name}" for name in _named(document)]  # no scope begins so
        for name in (*ruleset.scopes(document), *names):
            groups.setdefault(name, {})[document.id] = document
    seen = set()
    for group in groups.values():
        for later, earlier in product(group.values(), repeat=2):
            if later is not earlier and (later.id, earlier.id) not in seen:
                seen.add((later.id, earlier.id))
                yield later, earlier


def _named(document: Document) -> Iterator[str]:
    yield document.id
    for names in (document.records, document.supersedes, document.superseded_by, document.amends):
        yield from names


def _amendments(later: Document, earlier: Document, ruleset: Ruleset) -> Iterator[Connection]:
    if definitions.is_named(earlier, later.amends):
        yield Connection(later=later.id, earlier=earlier.id, rule=LINKED, scope=f"amended={earlier.id}", effect="amend")
    if later.precedence <= earlier.precedence:
        return
    for rule in ruleset.rules.values():
        if rule.effect != "amend" or (later.type, earlier.type) != (rule.superseding_type, rule.superseded_type):
            continue
        for scope in definitions.shared_scopes(later, earlier, rule.scope_keys, ruleset)[:1]:
            yield Connection(later=later.id, earlier=earlier.id, rule=rule.name, scope=scope, effect="amend")


def invent(pack: RulePack, ruleset: Ruleset) -> Iterator[Document]:
    """Two or three made-up documents for each rule of the pack.

    `<rule>/later` is to meet `<rule>/earlier`; `<rule>/other` shows what the rule leaves alone: the
    same values under `differ_on`, or else another scope.
    """
    for number, rule in enumerate(pack.rules, 1):
        yield _made_up(rule, rule.superseded_type, number, "earlier", ruleset)
        yield _made_up(rule, rule.superseding_type, number, "later", ruleset)
        if not set(rule.scope_keys) <= ruleset.pack_of[rule.superseded_type].fixed.get(rule.superseded_type, {}).keys():
            yield _made_up(rule, rule.superseded_type, number, "other", ruleset)


def _made_up(rule: Rule, kind: str, number: int, part: str, ruleset: Ruleset) -> Document:
    fixed = ruleset.pack_of[kind].fixed.get(kind, {})
    other = part == "other" and not rule.differ_on
    scope = {key: (f"{key}-{number}{'-other' if other else ''}",) for key in rule.scope_keys if key not in fixed}
    said = "a later value" if part == "later" else "a value"
    return Document(
        id=f"{rule.name}/{part}",
        type=kind,
        time=START + number * DAY + (DAY // 2 if part == "later" else 0) - (DAY // 4 if part == "other" else 0),
        scope=(scope,) if scope else (),
        attributes=dict.fromkeys(rule.differ_on, said),
        title=f"Made up to show the rule {rule.name}",
    )


def _lacking(documents: Iterable[Document], ruleset: Ruleset) -> tuple[tuple[str, str, int], ...]:
    """How many documents of a type lacked which key of its rules."""
    counts: dict[tuple[str, str], int] = {}
    for document in documents:
        for key in ruleset.missing_keys(document):
            counts[document.type, key] = counts.get((document.type, key), 0) + 1
    return tuple((kind, key, count) for (kind, key), count in sorted(counts.items()))

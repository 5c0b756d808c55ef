"""Report what a pack would do: its problems, or the pairs of documents that it would connect in a sample.

Promise: `core.definitions` decides every pair, so the report shows what the engine will do. Cost: quadratic in the
documents that share a scope, so a sample should have hundreds of documents at most.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from msgspec import Struct

from stream_car.core import definitions
from stream_car.core.documents import Document
from stream_car.core.rule_pack import REPLACED, Rule, RulePack
from stream_car.core.rules import Ruleset
from stream_car.rule_packs.loader import read_packs
from stream_car.rule_packs.weaknesses import find_weaknesses

_DAY = 86_400_000_000
_START = 1_704_067_200_000_000  # 2024-01-01T00:00:00Z
_LINK_RULE = "link"  # the rule that `definitions` reports for an explicit link


class RuleConnection(Struct, frozen=True, kw_only=True):
    """A pair of documents: `later` voids or amends `earlier` in a scope, by a rule or by an explicit `link`."""

    later: str
    earlier: str
    rule: str
    scope: str
    effect: str = "supersede"


class Report(Struct, frozen=True, kw_only=True):
    """The problems of a pack or, if there are none, the pairs that it would connect in a sample.

    `invented` is true if the sample was made up from the rules. `unscoped` are the ids of documents that join no
    scope. `missing_keys` has rows of a type, a key that its rules need, and the number of its documents without that
    key. `unknown` are the types that no loaded pack declares, and `idle` the rules of the pack that connected nothing.
    `outcomes` has the word for what becomes of a document under each rule that voids, and `states` what types say of
    their record. `derived` are the rules that `follows` implies for types of the pack. `warnings` say what is
    allowed and probably not meant.
    """

    name: str
    problems: tuple[str, ...] = ()
    ruleset: Ruleset | None = None
    invented: bool = False
    sample: tuple[Document, ...] = ()
    connections: tuple[RuleConnection, ...] = ()
    unscoped: tuple[str, ...] = ()
    missing_keys: tuple[tuple[str, str, int], ...] = ()
    unknown: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    outcomes: Mapping[str, str] = {}
    states: Mapping[str, str] = {}
    ending_states: tuple[str, ...] = ()
    derived: tuple[Rule, ...] = ()
    warnings: tuple[str, ...] = ()


def examine_pack(path: str | Path, sample: Iterable[Document] = (), *, beside: Sequence[str | Path] = ()) -> Report:
    """Load one pack, with the packs `beside` it, and report which documents of a sample it would connect.

    Without a sample, a few documents are invented for each rule. A bad pack never raises: the report has its problems.
    """
    packs, problems = read_packs([path, *beside])
    if problems or not packs:
        return Report(name=str(path), problems=problems)
    pack, rules = packs[0], Ruleset(packs)
    current = tuple(definitions.current_documents(sample).values())
    documents = current or tuple(invent_documents(pack, rules))
    known = [document for document in documents if rules.knows(document.type)]
    connections = tuple(sorted(_connections(known, rules), key=lambda c: (c.rule, c.later, c.earlier)))
    used = {connection.rule for connection in connections}
    return Report(
        name=pack.name,
        ruleset=rules,
        invented=not current,
        sample=documents,
        connections=connections,
        unscoped=tuple(document.id for document in known if not rules.scopes(document)),
        missing_keys=_missing_keys(known, rules),
        unknown=tuple(sorted({document.type for document in documents if not rules.knows(document.type)})),
        idle=tuple(rule.name for rule in pack.rules if rule.name not in used),
        outcomes={rule.name: rule.outcome or REPLACED for rule in pack.rules if rule.effect == "supersede"},
        states=pack.states,
        ending_states=pack.ending_states,
        derived=derived_for(pack, rules),
        warnings=find_weaknesses(pack, rules),
    )


def derived_for(pack: RulePack, ruleset: Ruleset) -> tuple[Rule, ...]:
    """Return the rules that `follows` implies for the types of a pack."""
    return tuple(rule for rule in ruleset.derived if rule.superseded_type in pack.types)


def _connections(documents: Sequence[Document], ruleset: Ruleset) -> Iterator[RuleConnection]:
    """Yield every pair in which the later document directly voids or amends the earlier one."""
    for later, earlier in _candidate_pairs(documents, ruleset):
        reason = definitions.voids(later=later, earlier=earlier, ruleset=ruleset)
        if reason is not None:
            yield RuleConnection(later=later.id, earlier=earlier.id, rule=reason.rule, scope=reason.scope)
        yield from _amendments(later, earlier, ruleset)


def _candidate_pairs(documents: Sequence[Document], ruleset: Ruleset) -> Iterator[tuple[Document, Document]]:
    """Yield the pairs that share a scope, or of which one document names the other."""
    members: dict[str, dict[str, Document]] = {}
    for document in documents:
        names = [f"\0{name}" for name in _names(document)]  # no scope begins with NUL
        for name in (*ruleset.scopes(document), *names):
            members.setdefault(name, {})[document.id] = document
    seen = set()
    for sharing in members.values():
        for later, earlier in product(sharing.values(), repeat=2):
            if later is not earlier and (later.id, earlier.id) not in seen:
                seen.add((later.id, earlier.id))
                yield later, earlier


def _names(document: Document) -> Iterator[str]:
    """Yield the document's id, its records and the ids that it links to."""
    yield document.id
    for names in (document.records, document.supersedes, document.superseded_by, document.amends):
        yield from names


def _amendments(later: Document, earlier: Document, ruleset: Ruleset) -> Iterator[RuleConnection]:
    if definitions.is_named(earlier, later.amends):
        scope = f"amended={earlier.id}"
        yield RuleConnection(later=later.id, earlier=earlier.id, rule=_LINK_RULE, scope=scope, effect="amend")
    if later.precedence <= earlier.precedence:
        return
    for rule in ruleset.rules.values():
        if rule.effect != "amend" or (later.type, earlier.type) != (rule.superseding_type, rule.superseded_type):
            continue
        for scope in definitions.shared_scopes(later, earlier, rule.scope_keys, ruleset)[:1]:
            yield RuleConnection(later=later.id, earlier=earlier.id, rule=rule.name, scope=scope, effect="amend")


def invent_documents(pack: RulePack, ruleset: Ruleset) -> Iterator[Document]:
    """Yield two or three made-up documents for each rule of the pack.

    The rule connects `<rule>/later` with `<rule>/earlier`. It leaves `<rule>/other` alone, which has either the same
    values under `differ_on` or another scope.
    """
    for number, rule in enumerate(pack.rules, 1):
        yield _invent_document(rule, rule.superseded_type, number, "earlier", ruleset)
        yield _invent_document(rule, rule.superseding_type, number, "later", ruleset)
        if not set(rule.scope_keys) <= ruleset.pack_of[rule.superseded_type].fixed.get(rule.superseded_type, {}).keys():
            yield _invent_document(rule, rule.superseded_type, number, "other", ruleset)


def _invent_document(rule: Rule, type_name: str, number: int, role: str, ruleset: Ruleset) -> Document:
    fixed = ruleset.pack_of[type_name].fixed.get(type_name, {})
    suffix = "-other" if role == "other" and not rule.differ_on else ""
    scope = {key: (f"{key}-{number}{suffix}",) for key in rule.scope_keys if key not in fixed}
    return Document(
        id=f"{rule.name}/{role}",
        type=type_name,
        time=_START + number * _DAY + (_DAY // 2 if role == "later" else 0) - (_DAY // 4 if role == "other" else 0),
        scope=(scope,) if scope else (),
        attributes=dict.fromkeys(rule.differ_on, "a later value" if role == "later" else "a value"),
        title=f"Made up to show the rule {rule.name}",
    )


def _missing_keys(documents: Iterable[Document], ruleset: Ruleset) -> tuple[tuple[str, str, int], ...]:
    """Return rows of a type, a key that its rules need, and the number of its documents without that key."""
    counts = Counter((document.type, key) for document in documents for key in ruleset.missing_keys(document))
    return tuple((type_name, key, count) for (type_name, key), count in sorted(counts.items()))

"""Which documents amend one directly, by rule or by name.

Promise: as `definitions.amends` has it, of the documents present then; whether these are in force, or what
controls them, is for a walk from each to say. Cost: rules times log n, plus the amending documents; of one
type in one scope at most `NAMED_MAX`, beyond that they are counted only.
"""

from collections.abc import Generator

from msgspec import Struct

from stream_car.core.revisions import document_key, entry_of
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import amended_scope
from stream_car.core.stored import LOWEST, Scope, StoredDocument
from stream_car.core.timeline import MissingPages, all_members, count_between, members_between, scope_key
from stream_car.core.walk import Values, document_at, pages_of, scope_at

NAMED_MAX = 256


class Amender(Struct, frozen=True, gc=False):
    """A document that amends another, by `rule` (or `link`) in `scope`."""

    id: str
    rule: str
    scope: str


class Amenders(Struct, gc=False):
    """Those that amend a document, each once, and how many more were too many to name."""

    named: dict[str, Amender]
    unnamed: int = 0


def amenders(
    name: str, values: Values, ruleset: Ruleset, *, has_links: bool, as_of: int | None = None
) -> Generator[list[bytes], None, Amenders]:
    """The direct amenders of a document; asks for the keys that it lacks, round by round."""
    result = Amenders({})
    if document_key(name) not in values:
        yield [document_key(name)]
    held = document_at(values, name)
    if held is None:
        return result
    by_rule = [at for at, scope in enumerate(held.scopes) if ruleset.type_rules(scope, held.type).amended_by]
    by_name = [amended_scope(one) for one in dict.fromkeys((name, *held.records))] if has_links else []
    wanted = [scope_key(one) for one in (*(held.scopes[at] for at in by_rule), *by_name)]
    lacking = [key for key in wanted if key not in values]
    if lacking:
        yield lacking
    steps = [_by_rule(held, at, values, ruleset, as_of, result) for at in by_rule]
    steps += [_by_name(scope_at(values, one), values, as_of, result) for one in by_name]
    for step in steps:
        yield from step
    result.named.pop(name, None)
    return result


Steps = Generator[list[bytes], None, None]


def _by_rule(
    held: StoredDocument, at: int, values: Values, ruleset: Ruleset, as_of: int | None, result: Amenders
) -> Steps:
    scope, entry = scope_at(values, held.scopes[at]), entry_of(held, at)
    low = (entry.time, entry.order + 1)
    high = (as_of + 1, LOWEST[1]) if as_of is not None else None
    for clause in ruleset.type_rules(scope.name, held.type).amended_by:
        while True:
            try:
                total = count_between(scope, pages_of(values), clause.type, low, high)
                if total > NAMED_MAX:
                    result.unnamed += total
                    break
                for member in list(members_between(scope, pages_of(values), clause.type, low, high)):
                    result.named.setdefault(member.id, Amender(member.id, clause.rule, scope.name))
                break
            except MissingPages as absent:
                lacking = absent.keys
            yield lacking


def _by_name(scope: Scope, values: Values, as_of: int | None, result: Amenders) -> Steps:
    while True:
        try:
            for member in list(all_members(scope, pages_of(values))):
                if as_of is None or member.time <= as_of:
                    result.named.setdefault(member.id, Amender(member.id, "link", scope.name))
            return
        except MissingPages as absent:
            lacking = absent.keys
        yield lacking

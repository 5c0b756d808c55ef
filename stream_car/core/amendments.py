"""Which documents amend a document directly, by rule or by name.

Promise: as `definitions.amends` decides, over the documents present at that time. Whether the amending
documents are active, or what controls them, is left to a walk from each. Cost: rules times log n, plus the
amending documents. Of one type in one scope at most `NAMED_MAX` are named; if there are more, they are counted, once
for all rules.
"""

from collections.abc import Iterable

from msgspec import Struct

from stream_car.core.revisions import document_key, entry_of
from stream_car.core.rules import Clause, Ruleset
from stream_car.core.scope_names import amended_scope
from stream_car.core.stored import LOWEST, Entry, Scope
from stream_car.core.timeline import all_members, count_between, members_between, scope_key
from stream_car.core.walk import Reads, ScopeAndType, Values, document_at, pages_of, read_missing, scope_at, with_pages

NAMED_MAX = 256


class Amender(Struct, frozen=True, gc=False):
    """A document that amends another, by `rule` (or `link`) in `scope`."""

    id: str
    rule: str
    scope: str


class Amenders(Struct, gc=False):
    """The documents that amend a document, by id, and the number of those that were too many to name.

    A document that is in several scopes may be counted in each.
    """

    named: dict[str, Amender]
    unnamed: int = 0


def amenders(
    name: str, values: Values, ruleset: Ruleset, *, has_links: bool, as_of: int | None = None
) -> Reads[Amenders]:
    """Return what amends a document directly; yields the keys to be read into `values`, in rounds."""
    result = Amenders({})
    yield from read_missing(values, [document_key(name)])
    document = document_at(values, name)
    if document is None:
        return result
    entries = [
        (scope, entry_of(document, index))
        for index, scope in enumerate(document.scopes)
        if ruleset.type_rules(scope, document.type).amended_by
    ]
    link_scopes = [amended_scope(target) for target in dict.fromkeys((name, *document.records))] if has_links else []
    yield from read_missing(values, map(scope_key, [*(scope for scope, _ in entries), *link_scopes]))
    counts: dict[ScopeAndType, int] = {}
    for scope, entry in entries:
        for clause in ruleset.type_rules(scope, document.type).amended_by:
            unnamed = yield from _add_by_rule(scope_at(values, scope), entry, clause, values, as_of, result)
            counts[scope, clause.type] = unnamed  # the same under every rule
    result.unnamed = sum(counts.values())
    for scope in link_scopes:
        yield from _add_by_name(scope_at(values, scope), values, as_of, result)
    result.named.pop(name, None)
    return result


def _add_by_rule(
    scope: Scope, amended: Entry, clause: Clause, values: Values, as_of: int | None, result: Amenders
) -> Reads[int]:
    """Add the later members of the clause's type. Return their number if they are too many to name, else 0."""
    pages = pages_of(values)
    low = (amended.time, amended.order + 1)
    high = (as_of + 1, LOWEST[1]) if as_of is not None else None
    count = yield from with_pages(lambda: count_between(scope, pages, clause.type, low, high))
    if count > NAMED_MAX:
        return count
    members = yield from with_pages(lambda: list(members_between(scope, pages, clause.type, low, high)))
    _add(members, clause.rule, scope, result)
    return 0


def _add_by_name(scope: Scope, values: Values, as_of: int | None, result: Amenders) -> Reads[None]:
    """Add the members of a scope `amended=NAME`."""
    members = yield from with_pages(lambda: list(all_members(scope, pages_of(values))))
    _add((member for member in members if as_of is None or member.time <= as_of), "link", scope, result)


def _add(members: Iterable[Entry], rule: str, scope: Scope, result: Amenders) -> None:
    for member in members:
        result.named.setdefault(member.id, Amender(member.id, rule, scope.name))

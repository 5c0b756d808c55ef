"""Names that people have, such as a CVE, a package with a version or a purl, and the documents that they lead to.

Promise: what a name means is data: the index lists what documents say, by keys that a rule pack marks with `by_name`.
Cost: a look-up in the index for each spelling of the name. What similar names cost is at `similar_names`.
"""

from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import partial
from urllib.parse import unquote

from msgspec import Struct

from stream_car.core.scope_names import ALIAS, LINK, RECORD, scope_parts
from stream_car.core.stored import Entry, Scope
from stream_car.core.timeline import LAST_PLACE, in_order, latest_edition, members_before, types
from stream_car.core.walk import pages_of
from stream_car.ports import AnchorIndex
from stream_car.queries.answers import DocumentStatus, NamedBy
from stream_car.queries.paging import batches
from stream_car.queries.scope_members import end_of
from stream_car.queries.snapshot import Snapshot
from stream_car.suggest import one_edit_away

EDITIONS_MAX = 100
CLOSEST_MAX = 10
SIMILAR_LENGTH_MAX = 60  # characters of a name that is compared with others
PAIRS_AT_ONCE = 1000  # which the index looks up in a millisecond or two
PURL = "pkg:"
NAMESPACE_SEPARATORS = {"maven": ":"}  # between the namespace and the name of a package; others have a slash


class ResolvedName(Struct, frozen=True):
    """A name, the documents that it refers to, and how it was read (`via`)."""

    name: str
    via: NamedBy
    ids: tuple[str, ...]
    status: DocumentStatus
    has_more: bool = False  # documents that are not among `ids`


async def resolve_alias(snapshot: Snapshot, index: AnchorIndex, name: str) -> ResolvedName:
    """The latest editions of the records, and the documents without a record, that have a name as an alias.

    The latest are those by the time of the snapshot. It suffices that some edition of a record has the name. A record
    whose own name is only written in another case is meant alone.
    """
    aliases = [alias for spelling in spellings(name) for alias in snapshot.ruleset.aliases_spelt(spelling)]
    scopes = {scope: None for alias in aliases for scope in await index.scopes([(ALIAS, alias)], EDITIONS_MAX + 1)}
    spelt = set(snapshot.ruleset.aliases_spelt(name))
    entries: list[Entry] = []
    for target in list(scopes)[:EDITIONS_MAX]:
        [(key, value)] = scope_parts(target)
        if key == RECORD and not spelt.isdisjoint(snapshot.ruleset.aliases_spelt(value)):
            scope = await snapshot.scope(target)
            if editions := await snapshot.with_pages(partial(latest_editions, scope, snapshot)):
                return ResolvedName(name, "record", tuple(entry.id for entry in editions), "in_force")
        elif key == LINK:
            stored = await snapshot.document(value)
            entries += [stored.entry] if stored is not None and not stored.retracted else []
        else:
            scope = await snapshot.scope(target)
            editions = await snapshot.with_pages(partial(latest_editions, scope, snapshot))
            entries += latest_edition(editions)
    ids = tuple(dict.fromkeys(entry.id for entry in in_order(entries)))
    if not ids:
        return ResolvedName(name, "", (), "unknown")
    return ResolvedName(name, "alias", ids, "in_force", has_more=len(scopes) > EDITIONS_MAX)


async def similar_names(snapshot: Snapshot, index: AnchorIndex, name: str) -> tuple[str, ...]:
    """Return known names that differ from this one by one character, or by its case: what was probably meant.

    Without its version if the name has one. Cost: for each letter of each spelling, about a hundred names that the
    index looks up. Other work may run after every `PAIRS_AT_ONCE` of them.
    """
    *_, plain = spellings(name)
    if not 2 < len(plain) <= SIMILAR_LENGTH_MAX:
        return ()
    pairs = {(RECORD, other): other for other in one_edit_away(plain)}
    for spelt in snapshot.ruleset.aliases_spelt(plain):
        pairs |= {(ALIAS, other): other for other in one_edit_away(spelt)}
    known_pairs: list[tuple[str, str]] = []
    for batch in batches(list(pairs), PAIRS_AT_ONCE):
        known_pairs += await index.known_pairs(batch)
        await snapshot.yield_control()
    known = {pairs[pair].casefold(): pairs[pair] for pair in sorted(known_pairs)}
    closest = sorted(known.values(), key=lambda other: -SequenceMatcher(a=plain.upper(), b=other.upper()).ratio())
    return tuple(closest[:CLOSEST_MAX])


def latest_editions(scope: Scope, snapshot: Snapshot) -> list[Entry]:
    """Return the latest editions by the time of the snapshot in the scope of a record, oldest first.

    If all are later, return the latest of those. Raises `MissingPages`.
    """
    pages = pages_of(snapshot.values)
    for end in (end_of(snapshot), LAST_PLACE):
        of_types = (members_before(scope, pages, kind, end, EDITIONS_MAX) for kind in types(scope))
        if editions := in_order(entry for of_type in of_types for entry in of_type):
            return editions[-EDITIONS_MAX:]
    return []


def spellings(name: str) -> Iterator[str]:
    """Yield a name as it is, then without its version, and of a purl also the package that it means."""
    yield name
    plain = name
    if name.startswith(PURL):
        plain = name.partition("#")[0].partition("?")[0]
    package, _, version = plain.rpartition("@")
    if package and not package.endswith("/") and "/" not in version and ":" not in version:
        plain = package
    if plain != name:
        yield plain
    if plain.startswith(PURL):
        kind, _, path = plain.removeprefix(PURL).partition("/")
        namespace, slash, own_name = unquote(path).rpartition("/")
        separator = NAMESPACE_SEPARATORS.get(kind, slash) if slash else ""
        yield f"{namespace}{separator}{own_name}"

"""The amendments that answers carry: for every document in force, what amends it and is in force itself.

Promise: `authority.amendments` for each, with the path that leads there; what amended and is void by now is
followed to what controls it. Cost: one round of reads where nothing amends, and one walk for each that does.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from stream_car.core.amendments import Amending
from stream_car.core.members import Entry
from stream_car.core.walked import Walked
from stream_car.queries.answers import Step
from stream_car.queries.snapshot import Reader

LISTED_MAX = 50


class Amended(Struct, frozen=True, gc=False):
    """What amends one document: each in force, latest first, with the path to it, and how many more there are."""

    found: tuple[tuple[Entry, tuple[Step, ...]], ...]
    more: int = 0


async def amended_by(reader: Reader, walks: Iterable[Walked]) -> Mapping[str, Amended]:
    """The amendments of every controlling document of these walks that has some."""
    has_links = (await reader.overview()).has_links
    controlling = {entry.id: entry for walk in walks for entry in walk.controlling}
    names = [name for name, one in controlling.items() if has_links or reader.ruleset.is_amendable(one.type)]
    if not names:
        return {}
    direct = await reader.amenders(names)
    every = list(dict.fromkeys(one for found in direct for one in found.found))
    followed = {one: walk for one, walk in zip(every, await reader.walk(every), strict=True) if walk is not None}
    return {
        name: _listed(name, list(found.found.values()), followed, found.more)
        for name, found in zip(names, direct, strict=True)
        if found.found or found.more
    }


def _listed(name: str, direct: Sequence[Amending], followed: Mapping[str, Walked], more: int) -> Amended:
    best: dict[str, tuple[Entry, tuple[Step, ...]]] = {}
    for amending in direct:
        walk = followed.get(amending.id)
        for entry in walk.controlling if walk is not None else ():
            path = _path(amending, walk, entry.id) if walk is not None else ()
            if entry.id != name and (entry.id not in best or len(path) < len(best[entry.id][1])):
                best[entry.id] = entry, path
    ordered = sorted(best.values(), key=lambda pair: (-pair[0].time, -pair[0].order, pair[0].id))
    return Amended(tuple(ordered[:LISTED_MAX]), more + max(0, len(ordered) - LISTED_MAX))


def _path(amending: Amending, walk: Walked, target: str) -> tuple[Step, ...]:
    first = Step(id=amending.id, rule=amending.rule, scope=amending.scope, effect="amend")
    return (first, *(Step(id=one, rule=rule, scope=scope) for one, rule, scope in walk.path(target)))

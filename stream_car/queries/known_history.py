"""Whether an answer as of an earlier time lacks what records said then.

A feed that is read for the first time gives the present edition of each record, dated by its last change. What the
record said before is not known, but that it existed then, if its publisher says so: the attribute `record_since`.

Promise: an answer as of a time says `history_unknown` if a scope of a document that it rests on has a document of a
record that existed at that time and whose first edition here is later. Cost: nothing for questions about now. As of a
time, the bodies of the later members of these scopes, at most `LATER_MAX` for each type in a scope. If there are more,
and the feed says since when its records exist, the history counts as unknown.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import TypeVar

from stream_car.core.documents import Document
from stream_car.core.revisions import document_key
from stream_car.core.scope_names import record_scope
from stream_car.core.stored import LOWEST, Entry, Scope
from stream_car.core.timeline import least, members_between, scope_key, types
from stream_car.core.walk import pages_of
from stream_car.ports import AnchorIndex
from stream_car.queries.answers import Answer, Audit, Explanation, Frontier, Group, Resolution
from stream_car.queries.outcomes import read_time
from stream_car.queries.read_options import mark_incomplete
from stream_car.queries.snapshot import Snapshot

RECORD_SINCE = "record_since"  # the attribute that says since when a record exists, according to its publisher
LATER_MAX = 256
HITS_MAX = 20  # of each search: those of which later ones are looked at, too

T = TypeVar("T")
IdsOfName = Callable[[str], Awaitable[Sequence[str]]]


async def mark_unknown_history(answer: T, snapshot: Snapshot, index: AnchorIndex, ids_of_name: IdsOfName) -> T:
    """Return the answer, marked if it is as of a time of which the history is not known here."""
    if snapshot.as_of is None:
        return answer
    if isinstance(answer, tuple):
        items = [await mark_unknown_history(item, snapshot, index, ids_of_name) for item in answer]
        return type(answer)(items)
    ids = await _ids_of(answer, snapshot, ids_of_name)
    scopes = {answer.scope} if isinstance(answer, Frontier) else set()
    await snapshot.load([document_key(document_id) for document_id in ids])
    for document_id in ids:
        stored = await snapshot.document(document_id)
        scopes.update(stored.scopes if stored is not None else ())
    if not await _is_unknown(snapshot, index, sorted(scopes), snapshot.as_of):
        return answer
    marked = mark_incomplete(answer, "history_unknown")
    return answer if marked is None else marked


async def _ids_of(answer: object, snapshot: Snapshot, ids_of_name: IdsOfName) -> list[str]:
    """Return the documents that an answer rests on, and those that it would rest on if they had taken effect."""
    ids: dict[str, None] = {}
    if isinstance(answer, Resolution | Explanation):
        ids.update(dict.fromkeys(await ids_of_name(answer.name)))
        groups = answer.groups if isinstance(answer, Resolution) else (answer.group,) if answer.group else ()
        ids.update(dict.fromkeys(_documents_of(groups)))
    elif isinstance(answer, Answer):
        ids.update(dict.fromkeys(_documents_of(answer.groups)))
        ids.update(dict.fromkeys(hit.id for hits in snapshot.searches.values() for hit in hits[:HITS_MAX]))
    elif isinstance(answer, Audit):
        covered = answer.certificate.covered if answer.certificate is not None else ()
        names = [document_id for name in answer.pending for document_id in await ids_of_name(name)]
        ids.update(dict.fromkeys((*answer.repaired, *covered, *names)))
    return list(ids)


def _documents_of(groups: Iterable[Group]) -> Iterable[str]:
    for group in groups:
        yield group.anchor.id
        yield from (document.id for document in group.superseded)
        yield from (control.document.id for control in group.controlling)


async def _is_unknown(snapshot: Snapshot, index: AnchorIndex, names: Sequence[str], as_of: int) -> bool:
    """Return whether one of these scopes has a document of a record that existed and of which nothing is known."""
    await snapshot.load([scope_key(name) for name in names])
    later: dict[str, None] = {}
    is_cut = False
    for name in names:
        scope = await snapshot.scope(name)
        for type_name in types(scope):
            entries = await snapshot.with_pages(partial(_later_members, scope, type_name, snapshot, as_of))
            later.update(dict.fromkeys(entry.id for entry in entries))
            is_cut = is_cut or len(entries) == LATER_MAX
    bodies = (await snapshot.bodies(index, list(later))).values()
    since = [body for body in bodies if read_time(body, RECORD_SINCE) is not None]
    existing = [body for body in since if existed(body, as_of)]
    await snapshot.load([scope_key(record_scope(record)) for body in existing for record in body.records])
    for body in existing:
        if not await _has_earlier_edition(snapshot, body, as_of):
            return True
    return is_cut and bool(since)


def existed(body: Document, as_of: int) -> bool:
    """Return whether the record of a document existed at a time, according to its publisher."""
    since = read_time(body, RECORD_SINCE)
    return since is not None and since <= as_of


def _later_members(scope: Scope, type_name: str, snapshot: Snapshot, as_of: int) -> list[Entry]:
    low = (as_of + 1, LOWEST[1])
    return list(islice(members_between(scope, pages_of(snapshot.values), type_name, low, None), LATER_MAX))


async def _has_earlier_edition(snapshot: Snapshot, body: Document, as_of: int) -> bool:
    for record in body.records:
        scope = await snapshot.scope(record_scope(record))
        if any(least(scope, type_name, (as_of + 1, 0))[0] <= as_of for type_name in types(scope)):
            return True
    return False

"""Documents as they were published: from the text index, and from the log what the index does not have.

Promise: a document is returned only if its content has the digest that the state has for the current revision of its
id. An index that lags, or is ahead, therefore changes no answer. A document that neither index nor log has any more is
left out, and the answer says `lost_history`. Cost: one search per 256 documents, about 10 us each,
and one read of the log for each document that the index has in another revision.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec.structs import replace

from stream_car.codec import EARLIER_LIMITS, content_digest, decode
from stream_car.codec.times import from_micros
from stream_car.core.documents import Document, Statement
from stream_car.core.revisions import document_key
from stream_car.core.stored import StoredDocument
from stream_car.errors import Halted, InvalidDocument
from stream_car.ports import Record
from stream_car.processing.fold import DIGEST_BYTES
from stream_car.queries.answers import (
    DocumentStatus,
    Evidence,
    Incomplete,
    Lookup,
    OriginalDocument,
    PublishedDocument,
    Resolution,
)
from stream_car.queries.names import ResolvedName
from stream_car.queries.queries import Queries
from stream_car.queries.snapshot import Snapshot

PER_NAME_MAX = 20  # documents returned for one name

ReadRecord = Callable[[str, int], Awaitable[Record | None]]  # the record of a document's shard at an offset


async def look_up(
    snapshot: Snapshot, names: Sequence[str], queries: Queries, read_record: ReadRecord
) -> tuple[Lookup, ...]:
    """Return the documents that these names refer to, as they were published."""
    await snapshot.load([document_key(name) for name in names])
    resolved_names = [await queries.resolve_name(snapshot, name) for name in names]
    ids = list(dict.fromkeys(document_id for resolved in resolved_names for document_id in resolved.ids))
    statuses = await _statuses(snapshot, ids)
    chosen = {resolved.name: _choose(resolved, statuses) for resolved in resolved_names}
    wanted = dict.fromkeys(name for names in chosen.values() for name in names[:PER_NAME_MAX])
    bodies = await snapshot.bodies(queries.index, list(wanted))
    originals: dict[str, PublishedDocument] = {}
    for name in wanted:
        stored, status = statuses[name]
        body = bodies.get(name)
        if body is None or not _is_current(body, stored):
            body = await _read_from_log(stored, read_record)
        if body is None:
            continue
        originals[name] = PublishedDocument(document=_original(body), status=status, records=body.records)
    lookups = [_lookup(resolved, chosen[resolved.name], statuses, originals) for resolved in resolved_names]
    return await _with_fates(snapshot, queries, lookups)


async def _with_fates(snapshot: Snapshot, queries: Queries, lookups: Sequence[Lookup]) -> tuple[Lookup, ...]:
    """The lookups with what became of names and documents, as `resolve` tells it."""
    resolutions = await queries.resolutions(snapshot, [lookup.name for lookup in lookups])
    anchors = {group.anchor.id: group.anchor for resolution in resolutions for group in resolution.groups}
    return tuple(
        replace(
            lookup,
            status=resolution.status,
            similar=resolution.similar,
            **_fate(resolution),
            documents=tuple(
                replace(published, **_fate(anchors[published.document.id]))
                if published.document.id in anchors
                else published
                for published in lookup.documents
            ),
        )
        for lookup, resolution in zip(lookups, resolutions, strict=True)
    )


def _fate(of: Evidence | Resolution) -> dict[str, object]:
    names = ("state", "state_text", "state_since", "outcome", "outcome_text")
    return {name: getattr(of, name) for name in names}


async def _statuses(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, tuple[StoredDocument, DocumentStatus]]:
    """Return what is stored of each id that has a document, and the status of that."""
    statuses: dict[str, tuple[StoredDocument, DocumentStatus]] = {}
    for name, known in zip(ids, await snapshot.anchor_statuses(ids), strict=True):
        stored = known[0] if known is not None else await snapshot.document(name)
        if stored is not None and not stored.retracted:
            status: DocumentStatus = "pending" if known is None else "in_force" if known[1] else "superseded"
            statuses[name] = stored, status
    return statuses


def _choose(resolved: ResolvedName, statuses: Mapping[str, tuple[StoredDocument, DocumentStatus]]) -> list[str]:
    """Return the ids to return for a name, the latest first: of a record those in force, else its latest edition."""
    present = [name for name in reversed(resolved.ids) if name in statuses]
    return [name for name in present if statuses[name][1] == "in_force"] or present[:1]


def _lookup(
    resolved: ResolvedName,
    chosen: Sequence[str],
    statuses: Mapping[str, tuple[StoredDocument, DocumentStatus]],
    originals: Mapping[str, PublishedDocument],
) -> Lookup:
    shown = chosen[:PER_NAME_MAX]
    reasons: list[Incomplete] = ["limit"] if len(chosen) > PER_NAME_MAX or resolved.has_more else []
    if not originals.keys() >= set(shown):
        reasons.append("lost_history")
    return Lookup(
        name=resolved.name,
        status=statuses[chosen[0]][1] if chosen else resolved.status,
        via=resolved.via,
        documents=tuple(originals[name] for name in shown if name in originals),
        reasons=tuple(reasons),
    )


def _is_current(body: Document, stored: StoredDocument) -> bool:
    """Return whether this is the revision that the state has, with the same content."""
    return body.revision == stored.revision and content_digest(body)[:DIGEST_BYTES] == stored.digest


async def _read_from_log(stored: StoredDocument, read_record: ReadRecord) -> Document | None:
    """Return the document that the log has at the offset of the stored revision; `None` if retention has deleted it.

    Raises `Halted` (`damaged`) if the log has something else there.
    """
    statement: Statement | None = None
    try:
        record = await read_record(stored.entry.id, stored.offset)
        if record is not None:
            statement = decode(record.value, key=record.key, headers=record.headers, limits=EARLIER_LIMITS)
    except Halted as halted:
        if halted.code != "lost_history":
            raise
        return None
    except InvalidDocument:
        pass
    if not isinstance(statement, Document) or not _is_current(statement, stored):
        raise Halted(
            "damaged",
            f"The state says that the log has revision {stored.revision} of {stored.entry.id!r} at offset "
            f"{stored.offset}, but it is not there. Rebuild the state from the log.",
        )
    return statement


def _original(document: Document) -> OriginalDocument:
    return OriginalDocument(
        id=document.id,
        type=document.type,
        time=from_micros(document.time),
        order=document.order,
        revision=document.revision,
        scope=document.scope,
        supersedes=document.supersedes,
        superseded_by=document.superseded_by,
        amends=document.amends,
        attributes=document.attributes,
        title=document.title,
        text=document.text,
        source=document.source,
        url=document.url,
    )

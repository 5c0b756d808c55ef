"""Which revision of a document is current, which scopes it joins and leaves, and when it must wait.

Promise: the greater `(revision, retracted)` replaces the lesser. Equal content under a stored revision is a
duplicate, other content a conflict. So the state does not depend on the order of arrival. A document is due
when its time is at most the greatest append time so far plus a small skew; until then it is stored but in no
scope. Cost: the number of scopes that the document is in.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from stream_car.core.changes import Cause
from stream_car.core.documents import Document, Retraction, Statement, Value
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import amended_scope, link_scope
from stream_car.core.stored import Entry, Extras, StoredDocument
from stream_car.errors import InvalidDocument


class Placement(Value, frozen=True, kw_only=True):
    """A document joins a scope (`entry`), leaves it (`old`), or is corrected in it (both).

    `old` says where its former entry is: type, time, order. `offset` is the input that caused it.
    """

    scope: str
    id: str
    entry: Entry | None
    old: tuple[str, int, int] | None
    cause: Cause
    offset: int
    is_link: bool = False


Verdict = Literal["accepted", "pending", "duplicate", "older", "retracted", "nothing"]


class Input(Value, frozen=True):
    """Where a statement is in the log, when it was appended (microseconds UTC), and a document's content digest."""

    offset: int
    append_time: int
    digest: bytes = b""


class Decision(Value, frozen=True):
    """What becomes of a statement. `document` is what to store for its id from now on, if that changed."""

    verdict: Verdict
    document: StoredDocument | None = None
    placements: tuple[Placement, ...] = ()


SKEW = 5_000_000  # microseconds that a publisher's clock may be ahead of the log's


def document_key(name: str) -> bytes:
    """Return the key under which a shard stores what it knows of an id."""
    return b"d:" + name.encode()


def decide(
    stored: StoredDocument | None,
    statement: Statement,
    *,
    at: Input,
    ruleset: Ruleset,
    scopes: Sequence[str] = (),
    is_due: bool,
) -> Decision:
    """Decide what becomes of a statement; `scopes` are `ruleset.scopes(document)`.

    Raises `InvalidDocument` (`conflict`) if the stored revision has other content.
    """
    if isinstance(statement, Retraction):
        return _retract(stored, statement, at)
    if stored is not None:
        current = stored.entry.revision
        if statement.revision < current or (stored.retracted and statement.revision == current):
            return Decision("older")
        if statement.revision == current:
            if stored.digest == at.digest:
                return Decision("duplicate")
            reason = f"Revision {current} was published with other content. Send it as revision {current + 1}."
            raise InvalidDocument("conflict", reason, statement.id)
    cause = Cause(
        id=statement.id,
        revision=statement.revision,
        kind="placed" if stored is None or not stored.is_present else "corrected",
        title=statement.title,
        url=statement.url,
        source=statement.source,
    )
    new = _stored_document(statement, at, ruleset, tuple(scopes), None if is_due else cause)
    placements = placements_between(statement.id, stored, new, cause, at.offset)
    return Decision("accepted" if is_due else "pending", new, placements)


def _retract(stored: StoredDocument | None, statement: Retraction, at: Input) -> Decision:
    current = stored.revision if stored is not None else None
    revision = statement.revision if statement.revision is not None else current
    if revision is None:
        return Decision("nothing")
    if stored is not None and (revision, True) <= (stored.revision, stored.retracted):
        return Decision("duplicate" if revision == stored.revision else "older")
    type_name, time, order = (stored.type, stored.time, stored.order) if stored is not None else ("", 0, 0)
    entry = Entry(statement.id, revision, type_name, time, order, at.offset, at.append_time)
    new = StoredDocument(entry=entry, retracted=True, digest=b"")
    cause = Cause(id=statement.id, revision=revision, kind="retracted")
    return Decision("retracted", new, placements_between(statement.id, stored, new, cause, at.offset))


def release(name: str, stored: StoredDocument, offset: int) -> tuple[StoredDocument, tuple[Placement, ...]]:
    """Make a pending document due; `offset` is that of the record that released it."""
    pending = stored.pending
    assert pending is not None
    cause = Cause(
        id=name,
        revision=stored.revision,
        kind="released",
        title=pending.title,
        url=pending.url,
        source=pending.source,
    )
    extras = msgspec.structs.replace(stored.extras, pending=None, released=offset)
    new = msgspec.structs.replace(stored, optional=extras)
    return new, placements_between(name, None, new, cause, offset)


def _stored_document(
    document: Document, at: Input, ruleset: Ruleset, scopes: tuple[str, ...], pending: Cause | None
) -> StoredDocument:
    type_name = document.type
    entry = Entry(document.id, document.revision, type_name, document.time, document.order, at.offset, at.append_time)
    compared, elsewhere = ruleset.compared_values(scopes, document), ruleset.counts_elsewhere(scopes, type_name)
    supersedes, superseded_by, amends = document.supersedes, document.superseded_by, document.amends
    records = document.records
    extras = None
    if compared or elsewhere or supersedes or superseded_by or amends or records or pending is not None:
        extras = Extras(compared, elsewhere, supersedes, superseded_by, amends, records, pending)
    return StoredDocument(entry=entry, retracted=False, digest=at.digest, scopes=scopes, optional=extras)


def entry_of(stored: StoredDocument, scope_index: int | None) -> Entry:
    """Return the document as a member of `scopes[scope_index]`, or of a link scope (`None`)."""
    extras = stored.optional
    if scope_index is None or extras is None or not (extras.compared or extras.elsewhere):
        return stored.entry
    elsewhere = extras.elsewhere[scope_index] if extras.elsewhere else 0
    compared = extras.compared[scope_index] if extras.compared else ()
    return msgspec.structs.replace(stored.entry, elsewhere=elsewhere, compared=compared)


def link_scopes(name: str, stored: StoredDocument) -> tuple[str, ...]:
    """Return the link scopes that a document is in.

    These are the scopes of the names that it voids or amends, and its own if it names a successor.
    """
    if stored.optional is None:
        return ()
    scopes = [link_scope(target) for target in stored.optional.supersedes]
    if stored.optional.superseded_by:
        scopes.append(link_scope(name))
    scopes += [amended_scope(target) for target in stored.optional.amends]
    return tuple(dict.fromkeys(scopes))


def placements_between(
    name: str, old: StoredDocument | None, new: StoredDocument, cause: Cause, offset: int
) -> tuple[Placement, ...]:
    """Return a placement for each scope that a document leaves, joins or stays in.

    Link scopes come last; of each sort, the scopes that it leaves come first.
    """
    before = old if old is not None and old.is_present else None
    if before is None and new.optional is None and not new.retracted:  # most documents
        entry = new.entry
        return tuple(
            [Placement(scope=s, id=name, entry=entry, old=None, cause=cause, offset=offset) for s in new.scopes]
        )
    after = new if new.is_present else None
    former = (before.type, before.time, before.order) if before is not None else None
    placements: list[Placement] = []
    for is_link in (False, True):
        scopes_before = _scopes(name, before, is_link)
        scopes_after = _scopes(name, after, is_link)
        placements += [
            Placement(
                scope=s, id=name, entry=None, old=former, cause=_cause_of_leaving(cause), offset=offset, is_link=is_link
            )
            for s in scopes_before
            if s not in scopes_after
        ]
        if after is not None:
            placements += [
                Placement(
                    scope=scope,
                    id=name,
                    entry=entry_of(after, None if is_link else index),
                    old=former if scope in scopes_before else None,
                    cause=cause,
                    offset=offset,
                    is_link=is_link,
                )
                for index, scope in enumerate(scopes_after)
            ]
    return tuple(placements)


def _cause_of_leaving(cause: Cause) -> Cause:
    """Return the cause that the scopes which a document leaves report."""
    if cause.kind == "retracted":
        return cause
    return Cause(
        id=cause.id, revision=cause.revision, kind="moved", title=cause.title, url=cause.url, source=cause.source
    )


def _scopes(name: str, stored: StoredDocument | None, is_link: bool) -> tuple[str, ...]:
    if stored is None:
        return ()
    return link_scopes(name, stored) if is_link else stored.scopes

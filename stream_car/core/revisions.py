"""Which revision of a document stands, which scopes it joins and leaves, and what must wait.

Promise: compare `(revision, retracted)`; the greater replaces, equal content again is a duplicate,
other content of one revision a conflict, so the state does not depend on arrival order. A document
is due when its time is at most the greatest append time so far plus a small skew; until then it is
held but placed nowhere. Cost: the number of scopes that the document is in.
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
    """A document joins a scope (`entry`), leaves it (only `old`), or is corrected in it (both).

    `old` says where its former entry stands: type, time, order. `offset` is the input that caused it.
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
    """Where a statement stands in the log, and its content's digest if it is a document."""

    offset: int
    append_time: int
    digest: bytes = b""


class Decision(Value, frozen=True):
    """What becomes of a statement. `held` is what the id is known as from now on, if that changed."""

    verdict: Verdict
    document: StoredDocument | None = None
    placements: tuple[Placement, ...] = ()


SKEW = 5_000_000  # microseconds that a publisher's clock may be ahead of the log's


def document_key(name: str) -> bytes:
    """Where a shard keeps what it knows of an id."""
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
    """What becomes of a statement; `scopes` are `ruleset.scopes(document)`.

    Raises `InvalidDocument` (`conflict`) for other content under a revision that is stored.
    """
    if isinstance(statement, Retraction):
        return _retract(stored, statement, at)
    if stored is not None:
        stands = stored.entry.revision
        if statement.revision < stands or (stored.retracted and statement.revision == stands):
            return Decision("older")
        if statement.revision == stands:
            if stored.digest == at.digest:
                return Decision("duplicate")
            reason = f"revision {stands} was published with other content; send revision {stands + 1}"
            raise InvalidDocument("conflict", reason, statement.id)
    cause = Cause(
        id=statement.id,
        revision=statement.revision,
        kind="placed" if stored is None or not stored.is_present else "corrected",
        title=statement.title,
        url=statement.url,
        source=statement.source,
    )
    new = _stored(statement, at, ruleset, tuple(scopes), None if is_due else cause)
    placements = placements_between(statement.id, stored, new, cause, at.offset)
    return Decision("accepted" if is_due else "pending", new, placements)


def _retract(stored: StoredDocument | None, statement: Retraction, at: Input) -> Decision:
    known = stored.revision if stored is not None else None
    revision = statement.revision if statement.revision is not None else known
    if revision is None:
        return Decision("nothing")
    if stored is not None and (revision, True) <= (stored.revision, stored.retracted):
        return Decision("duplicate" if revision == stored.revision else "older")
    kind, time, order = (stored.type, stored.time, stored.order) if stored is not None else ("", 0, 0)
    entry = Entry(statement.id, revision, kind, time, order, at.offset, at.append_time)
    new = StoredDocument(entry=entry, retracted=True, digest=b"")
    cause = Cause(id=statement.id, revision=revision, kind="retracted")
    return Decision("retracted", new, placements_between(statement.id, stored, new, cause, at.offset))


def release(name: str, stored: StoredDocument, offset: int) -> tuple[StoredDocument, tuple[Placement, ...]]:
    """A waiting document becomes due; `offset` is that of the record that released it."""
    assert stored.pending is not None
    waiting = stored.pending
    cause = Cause(
        id=name,
        revision=stored.revision,
        kind="released",
        title=waiting.title,
        url=waiting.url,
        source=waiting.source,
    )
    more = msgspec.structs.replace(stored.extras, pending=None, released=offset)
    new = msgspec.structs.replace(stored, optional=more)
    return new, placements_between(name, None, new, cause, offset)


def _stored(
    document: Document, at: Input, ruleset: Ruleset, scopes: tuple[str, ...], waiting: Cause | None
) -> StoredDocument:
    kind = document.type
    entry = Entry(document.id, document.revision, kind, document.time, document.order, at.offset, at.append_time)
    said, elsewhere = ruleset.compared(scopes, document), ruleset.elsewhere(scopes, kind)
    links = document.supersedes or document.superseded_by or document.amends
    records = document.records
    more = None
    if said or elsewhere or links or records or waiting is not None:
        more = Extras(said, elsewhere, document.supersedes, document.superseded_by, document.amends, records, waiting)
    return StoredDocument(entry=entry, retracted=False, digest=at.digest, scopes=scopes, optional=more)


def entry_of(stored: StoredDocument, at: int | None) -> Entry:
    """The document as a member of its scope number `at`, or of a link scope (`None`)."""
    more = stored.optional
    if at is None or more is None or not (more.compared or more.elsewhere):
        return stored.entry
    elsewhere = more.elsewhere[at] if more.elsewhere else 0
    return msgspec.structs.replace(
        stored.entry, elsewhere=elsewhere, compared=more.compared[at] if more.compared else ()
    )


def link_scopes(name: str, stored: StoredDocument) -> tuple[str, ...]:
    """The link scopes that a document is placed in: whom it voids or amends by name, and itself if it is void."""
    if stored.optional is None:
        return ()
    named = [link_scope(target) for target in stored.optional.supersedes]
    if stored.optional.superseded_by:
        named.append(link_scope(name))
    named += [amended_scope(target) for target in stored.optional.amends]
    return tuple(dict.fromkeys(named))


def placements_between(
    name: str, old: StoredDocument | None, new: StoredDocument, cause: Cause, offset: int
) -> tuple[Placement, ...]:
    """One placement for every scope that a document joins, stays in or leaves; scopes left come first."""
    here = old if old is not None and old.is_present else None
    if here is None and new.optional is None and not new.retracted:  # most documents
        entry = new.entry
        return tuple(
            [Placement(scope=s, id=name, entry=entry, old=None, cause=cause, offset=offset) for s in new.scopes]
        )
    there = new if new.is_present else None
    stood = (here.type, here.time, here.order) if here is not None else None
    found: list[Placement] = []
    for is_link in (False, True):
        was = _scopes(name, here, is_link)
        now = _scopes(name, there, is_link)
        found += [
            Placement(scope=s, id=name, entry=None, old=stood, cause=_leaving(cause), offset=offset, is_link=is_link)
            for s in was
            if s not in now
        ]
        if there is not None:
            found += [
                _joining(scope, name, there, None if is_link else at, stood if scope in was else None, cause, offset)
                for at, scope in enumerate(now)
            ]
    return tuple(found)


def _joining(
    scope: str,
    name: str,
    there: StoredDocument,
    at: int | None,
    stood: tuple[str, int, int] | None,
    cause: Cause,
    offset: int,
) -> Placement:
    entry = entry_of(there, at)
    return Placement(scope=scope, id=name, entry=entry, old=stood, cause=cause, offset=offset, is_link=at is None)


def _leaving(cause: Cause) -> Cause:
    if cause.kind == "retracted":
        return cause
    return Cause(
        id=cause.id, revision=cause.revision, kind="moved", title=cause.title, url=cause.url, source=cause.source
    )


def _scopes(name: str, stored: StoredDocument | None, is_link: bool) -> tuple[str, ...]:
    if stored is None:
        return ()
    return link_scopes(name, stored) if is_link else stored.scopes

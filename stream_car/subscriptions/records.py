"""Turn the state and its changes into events about records: one for each record that a change moves.

Promise: the states before and after, and the outcome, are those of this change, however late it is read. They follow
from the editions of the record around the document that caused the change, not from the scopes that the change came
from. `status` and `state_now` are as of the values read. A record selects by what its documents publish, also by keys
that no rule uses for their type: a withdrawal names its package although it has no scope of it.
Cost: that of document changes, and a look at the latest editions of each record.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from msgspec import Struct

from stream_car.codec.times import from_micros
from stream_car.core.changes import FrontierChange
from stream_car.core.documents import Document, Precedence
from stream_car.core.rule_pack import PUBLISHED
from stream_car.core.scope_names import RECORD, record_scope, scope_parts
from stream_car.core.stored import Entry, Scope, StoredDocument
from stream_car.core.timeline import LAST_PLACE, Place, latest_edition, members_after, members_before, sort_key, types
from stream_car.core.walk import pages_of
from stream_car.queries.answers import DocumentStatus, Step
from stream_car.queries.changes import listed_cause, time_of
from stream_car.queries.outcomes import Fate, Fates
from stream_car.queries.scope_members import active_members
from stream_car.queries.snapshot import Snapshot
from stream_car.subscriptions.events import Notice, RecordChange, RecordDocument, SnapshotRecord
from stream_car.subscriptions.lookup_cache import LookedUpChange, LookedUpRecord, Move
from stream_car.subscriptions.rendering import IsAhead, Renderer
from stream_car.subscriptions.selection import Mention, RecordEdition

IN_FORCE_MAX = 200  # editions of one record that are looked at, the latest ones
SIBLINGS_MAX = 8  # documents of one edition and type
RECORDS_MAX = 10_000  # whose last event is remembered, to recognize its repeat
NEW = ("placed", "released")  # kinds of a cause that is new
KEY_BYTES = 12

Editions = tuple[RecordEdition, ...]


class RecordRepeats:
    """Drops an event that repeats the last one of its record, as a document of several scopes causes it."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, tuple[str, ...]] = OrderedDict()

    def without_repeats(self, notices: Sequence[Notice]) -> list[Notice]:
        """Return the notices that are to be sent. The cursor of a repeat goes to the notice before it."""
        kept: list[Notice] = []
        for notice in notices:
            if not self._is_repeat(notice):
                kept.append(notice)
            elif kept and notice.cursor is not None:
                kept[-1] = kept[-1]._replace(cursor=notice.cursor, offset=notice.offset)
        return kept

    def _is_repeat(self, notice: Notice) -> bool:
        event = notice.event
        if not isinstance(event, RecordChange):
            return False
        document = event.document
        content = (event.earlier, document.id, str(document.revision), event.outcome, event.state_now, event.status)
        if self._last.get(event.record) == content:
            return True
        self._last[event.record] = content
        self._last.move_to_end(event.record)
        if len(self._last) > RECORDS_MAX:
            self._last.popitem(last=False)
        return False


class _MovedRecord(Struct, frozen=True, gc=False):
    """A record that a change mentions, and the document that caused the change if it is known."""

    record: str
    mentions: Sequence[Mention]
    change: FrontierChange
    cause: StoredDocument | None


class RecordRenderer(Renderer):
    """Renders notices about the records that one subscription selects."""

    # What holds now

    async def snapshot_items(self, state: Snapshot, names: Sequence[str]) -> list[Notice]:
        """The records that are told at these documents: each at the document that speaks for it."""
        notices = []
        for name in names:
            stored = await state.document(name)
            if stored is None or not stored.is_present or not stored.scopes:
                continue
            for record in records_of(stored):
                in_force = await self._editions(state, await entries_in_force(state, record))
                selected = [each for each in in_force if self.matcher.selects_edition(each, record, "")]
                if selected and self._speaker(selected).entry.id == name:
                    notices.append(Notice(await self._item(state, record, self._speaker(selected), in_force)))
        return notices

    async def _item(self, state: Snapshot, record: str, edition: RecordEdition, in_force: Editions) -> SnapshotRecord:
        fate = self._fates(in_force).of(edition.entry.id, edition.entry.type)
        return SnapshotRecord(
            record=record,
            status=self._standing_of(record, [each for each in in_force if self.matcher.is_about(each)])[0],
            names=self._names(in_force),
            state=fate.state,
            state_text=fate.state_text,
            state_since=fate.state_since,
            outcome=fate.outcome,
            outcome_text=fate.outcome_text,
            document=self._document(edition),
        )

    # Changes

    async def _look_up(self, state: Snapshot, mentions: Sequence[Mention], change: FrontierChange) -> LookedUpChange:
        by_record: dict[str, list[Mention]] = {}
        for mention in mentions:
            stored = await state.document(mention.id)
            records = records_of(stored) if stored is not None and not stored.retracted else ()
            for record in records or (_record_in(change.scope) or mention.id,):
                by_record.setdefault(record, []).append(mention)
        cause = await state.document(change.cause.id)
        records_of_cause = records_of(cause) if cause is not None and not cause.retracted else (change.cause.id,)
        results = []
        for record, mentioned in by_record.items():
            is_own = record in records_of_cause or any(mention.id == change.cause.id for mention in mentioned)
            step = self._own_step if is_own else self._foreign_step
            looked_up = await step(state, _MovedRecord(record, mentioned, change, cause))
            if looked_up is not None:
                results.append(looked_up)
        return LookedUpChange(records=results, time=await time_of(change, state))

    async def _own_step(self, state: Snapshot, moved: _MovedRecord) -> LookedUpRecord | None:
        """How a document moved the record of which it is an edition."""
        record, change, cause = moved.record, moved.change, moved.cause
        own = next((mention for mention in moved.mentions if mention.id == change.cause.id), None)
        if own is None:
            return None
        scope = await state.scope(record_scope(record))
        kind = change.cause.kind
        if kind in NEW and own.why == "holds":
            if cause is None or cause.retracted:
                return await self._looked_up(state, record, "edition", (), (_edition_of(own),))
            if cause.records and change.scope != scope.name:
                return None  # the scope of the record tells it
            later, earlier = await around(state, scope, cause.entry.precedence) if cause.records else ([], [])
            later = later or [cause.entry]
            rules = self._edition_rules(scope, earlier, later)
            before, after = await self._editions(state, earlier), await self._editions(state, later)
            return await self._looked_up(state, record, "edition", before, after, rules)
        if kind in NEW:
            return None
        later, _ = await around(state, scope, None)
        if not later and cause is not None and cause.is_present:
            later = [cause.entry]
        move: Move = "retracted" if kind == "retracted" else "corrected"
        return await self._looked_up(state, record, move, (_edition_of(own),), await self._editions(state, later))

    async def _foreign_step(self, state: Snapshot, moved: _MovedRecord) -> LookedUpRecord | None:
        """How a document moved a record of which it is no edition."""
        record, change, cause = moved.record, moved.change, moved.cause
        gone = [mention for mention in moved.mentions if mention.why in ("voided", "link")]
        freed = [mention for mention in moved.mentions if mention.why == "holds"]
        if gone and cause is not None and cause.is_present:
            entries = await _entries(state, [mention.id for mention in gone])
            earlier = latest_edition(entries)
            if not earlier or await self._had_ended(state, record, earlier[0], cause.entry):
                return None
            rules = {mention.id: mention.rule for mention in gone}
            later = await self._editions(state, [cause.entry])
            return await self._looked_up(
                state, record, "superseded", await self._editions(state, earlier), later, rules
            )
        if freed and change.cause.kind not in NEW:
            later = await self._editions(
                state, latest_edition(await _entries(state, [mention.id for mention in freed]))
            )
            before = Entry(change.cause.id, change.cause.revision, cause.type if cause is not None else "", 0, 0, 0, 0)
            return await self._looked_up(state, record, "reinstated", (RecordEdition(before),), later)
        return None

    async def _had_ended(self, state: Snapshot, record: str, entry: Entry, cause: Entry) -> bool:
        """Whether a later edition of the record comes before the document that supersedes this one."""
        scope = await state.scope(record_scope(record))
        place = (entry.time, entry.order + 1)
        later = await state.with_pages(
            lambda: [
                member
                for kind in types(scope)
                for member in members_after(scope, pages_of(state.values), kind, place, SIBLINGS_MAX)
            ]
        )
        return any(sort_key(member) < sort_key(cause) for member in later)

    def _edition_rules(self, scope: Scope, earlier: Iterable[Entry], later: Sequence[Entry]) -> Mapping[str, str]:
        """The rules by which later editions supersede earlier ones, by the ids of both, joined by a line end."""
        rules: dict[str, str] = {}
        for entry in earlier:
            clauses = self.matcher.ruleset.type_rules(scope.name, entry.type).superseded_by
            by_type = {clause.type: clause.rule for clause in clauses}
            rules |= {f"{entry.id}\n{each.id}": by_type[each.type] for each in later if each.type in by_type}
        return rules

    async def _looked_up(
        self,
        state: Snapshot,
        record: str,
        move: Move,
        earlier: Editions,
        later: Editions,
        rules: Mapping[str, str] = {},
    ) -> LookedUpRecord:
        known = {each.entry.id: each for each in (*earlier, *later)}
        entries = await entries_in_force(state, record)
        missing = await self._editions(state, [entry for entry in entries if entry.id not in known])
        in_force = (*(known[entry.id] for entry in entries if entry.id in known), *missing)
        status, state_now = self._standing_of(record, in_force) if entries else await self._ended(state, record)
        return LookedUpRecord(record, move, earlier, later, rules, status, state_now, in_force)

    def changes(self, lookup: LookedUpChange, change: FrontierChange, position: str, is_ahead: IsAhead) -> list[Notice]:
        notices = []
        for looked_up in lookup.records:
            event = self._change(looked_up, change, position, lookup.time)
            if event is not None and not is_ahead(b"d:" + event.document.id.encode()):
                notices.append(Notice(event, offset=change.offset))
        return notices

    def _change(
        self, looked_up: LookedUpRecord, change: FrontierChange, position: str, time: int | None
    ) -> RecordChange | None:
        """The event about a record, if it is selected."""
        record, is_foreign = looked_up.record, looked_up.move == "superseded"
        earlier, later = (
            [each for each in editions if self.matcher.selects_edition(each, record, change.scope)]
            for editions in (looked_up.earlier, looked_up.later)
        )
        if not (earlier if is_foreign else earlier or later):
            return None
        if is_foreign:
            later = list(looked_up.later)
        elif looked_up.move != "edition":
            earlier = list(looked_up.earlier)
        after = self._speaker(later or looked_up.later or earlier)
        before = self._speaker(earlier) if earlier else None
        fates = self._fates((*looked_up.earlier, *looked_up.later))
        outcome, text = self._outcome(looked_up, before, later or looked_up.later, fates)
        if not self.matcher.selects_outcome(outcome):
            return None
        fate = fates.of(after.entry.id, after.entry.type) if later or looked_up.later else Fate()
        own = [each for each in looked_up.in_force if self.matcher.is_about(each)]
        status, state_now = self._standing_of(record, own) if own else (looked_up.status, looked_up.state_now)
        cause = change.cause
        parts = (record, before.entry.id if before else "", after.entry.id, outcome, cause.id, str(cause.revision))
        return RecordChange(
            event_id=sha256("\n".join(parts).encode()).hexdigest()[: 2 * KEY_BYTES],
            record=record,
            status=status,
            state_before=self.matcher.ruleset.states.get(before.entry.type, "") if before is not None else "",
            state=fate.state,
            state_now=state_now,
            outcome=outcome,
            outcome_text=text,
            names=self._names(looked_up.earlier if is_foreign else looked_up.later, looked_up.earlier),
            cause=listed_cause(cause, time),
            position=position,
            earlier=before.entry.id if before is not None else "",
            document=self._document(after),
            state_text=fate.state_text,
            state_since=fate.state_since,
        )

    def _outcome(
        self, looked_up: LookedUpRecord, before: RecordEdition | None, later: Sequence[RecordEdition], fates: Fates
    ) -> tuple[str, str]:
        """What became of the record by a change, as a word and for people."""
        if looked_up.move not in ("edition", "superseded"):
            return looked_up.move, looked_up.move
        reasons = []
        if before is not None:
            for each in later:
                key = before.entry.id if looked_up.move == "superseded" else f"{before.entry.id}\n{each.entry.id}"
                if key in looked_up.rules:
                    reasons.append(Step(id=each.entry.id, rule=looked_up.rules[key], scope=""))
        if before is not None and reasons:
            fate = fates.of(before.entry.id, before.entry.type, reasons)
        else:
            after = self._speaker(later)
            fate = fates.of(after.entry.id, after.entry.type)
        return fate.outcome or PUBLISHED, fate.outcome_text or PUBLISHED

    # Editions

    async def _editions(self, state: Snapshot, entries: Sequence[Entry]) -> Editions:
        bodies = await self.index.documents([entry.id for entry in entries])
        editions = []
        for entry in entries:
            stored, body = await state.document(entry.id), bodies.get(entry.id)
            scopes, records = (stored.scopes, stored.records) if stored is not None else ((), ())
            parts = state.ruleset.spelt_scope(body) if body is not None and state.ruleset.knows(body.type) else ()
            editions.append(RecordEdition(entry, body, scopes, records, parts))
        return tuple(editions)

    def _standing_of(self, record: str, in_force: Sequence[RecordEdition]) -> tuple[DocumentStatus, str]:
        """The status of a record and what these editions in force say of it, as `resolve` tells it."""
        entries = [each.entry for each in in_force]
        is_record = any(entry.id != record for entry in entries)  # by its own id, a withdrawal is in force
        has_ended = is_record and all(entry.type in self.matcher.ruleset.ending_types for entry in entries)
        return "superseded" if has_ended else "in_force", self._state_of(entries)

    async def _ended(self, state: Snapshot, record: str) -> tuple[DocumentStatus, str]:
        """The status of a record without an edition in force and what is said of it now, as `resolve` tells it."""
        scope = await state.scope(record_scope(record))
        latest, _ = await around(state, scope, None)
        stored = await state.document(record)
        if not latest and (stored is None or not stored.is_present):
            return ("unknown" if stored is None else "retracted" if stored.retracted else "pending"), ""
        [walk] = await state.walk([latest[-1].id if latest else record])
        return "superseded", self._state_of(walk.controlling) if walk is not None else ""

    def _state_of(self, entries: Iterable[Entry]) -> str:
        ranks, states = self.matcher.ruleset.state_ranks, self.matcher.ruleset.states
        speaker = min((entry.type for entry in entries), key=lambda kind: ranks.get(kind, len(ranks)), default="")
        return states.get(speaker, "")

    def _speaker(self, editions: Sequence[RecordEdition]) -> RecordEdition:
        """The document that tells most about a record: the one whose state its pack names first."""
        ranks = self.matcher.ruleset.state_ranks
        return min(editions, key=lambda each: (ranks.get(each.entry.type, len(ranks)), each.entry.id))

    def _document(self, edition: RecordEdition) -> RecordDocument:
        entry, body = edition.entry, edition.body
        return RecordDocument(
            id=entry.id,
            revision=entry.revision,
            type=entry.type,
            time=from_micros(entry.time),
            order=entry.order,
            title=body.title if body is not None else "",
            source=body.source if body is not None else "",
            url=body.url if body is not None else "",
            scope=body.scope if body is not None else (),
            attributes=body.attributes if body is not None and self.matcher.selection.attributes else {},
        )

    def _fates(self, editions: Iterable[RecordEdition]) -> Fates:
        bodies: dict[str, Document] = {each.entry.id: each.body for each in editions if each.body is not None}
        return Fates(self.matcher.ruleset, bodies)

    def _names(self, *editions: Editions) -> Mapping[str, tuple[str, ...]]:
        """The names of a record by key: from the first of these editions that have any."""
        ruleset = self.matcher.ruleset
        names: dict[str, tuple[str, ...]] = {}
        for each in reversed(editions):
            names |= ruleset.names_of(e.body for e in each if e.body is not None and ruleset.knows(e.body.type))
        return names


async def around(state: Snapshot, scope: Scope, precedence: Precedence | None) -> tuple[list[Entry], list[Entry]]:
    """The members of a record's scope that have a precedence, the latest by default, and the edition before them."""

    def read() -> tuple[list[Entry], list[Entry]]:
        if precedence is None:
            later = latest_edition(_before(state, scope, LAST_PLACE))
        else:
            members = _before(state, scope, (precedence[0], precedence[1] + 1))
            later = [entry for entry in members if entry.precedence == precedence]
        earlier = latest_edition(_before(state, scope, later[0].precedence)) if later else []
        return later, earlier

    return await state.with_pages(read)


def _before(state: Snapshot, scope: Scope, place: Place) -> list[Entry]:
    pages = pages_of(state.values)
    return [entry for kind in types(scope) for entry in members_before(scope, pages, kind, place, SIBLINGS_MAX)]


async def entries_in_force(state: Snapshot, record: str) -> list[Entry]:
    """The editions of a record that are in force, or the document of this id."""
    scope = await state.scope(record_scope(record))
    entries = await state.with_pages(lambda: active_members(scope, state, IN_FORCE_MAX))
    names = [entry.id for entry in entries] or [record]
    statuses = await state.anchor_statuses(names)
    return [status[0].entry for status in statuses if status is not None and status[1]]


async def _entries(state: Snapshot, names: Sequence[str]) -> list[Entry]:
    stored = [await state.document(name) for name in names]
    return [document.entry for document in stored if document is not None and document.is_present]


def records_of(stored: StoredDocument) -> tuple[str, ...]:
    """The records of which a document is an edition. Without any, it is a record of its own."""
    return stored.records or (stored.entry.id,)


def _record_in(scope: str) -> str:
    """The record whose editions a scope has, if it is such a scope."""
    (key, value), *others = scope_parts(scope)
    return value if key == RECORD and not others else ""


def _edition_of(mention: Mention) -> RecordEdition:
    """What a change says of a document that is not there any more."""
    kind = mention.types[0] if mention.types else ""
    return RecordEdition(Entry(mention.id, mention.revision, kind, mention.time, mention.order, 0, 0))

"""The composed fold, frontier after intake: it takes one record of the log and returns state and emissions.

Promise: a pure function of state and record. The only clock is the append time in the record; there is no randomness
and no environment. The fold requests values that are not in the state by yielding their keys. What it changes in place
belongs to the batch, and is dropped with the batch if the commit fails. Cost: one step of the frontier for each scope
of the document.
"""

from collections.abc import Generator, Sequence

import msgspec

from stream_car.codec import DEFAULT_LIMITS, EARLIER_LIMITS, decode_with_digest
from stream_car.codec.changes import pack_change
from stream_car.core.changes import FrontierChange, Rejection
from stream_car.core.documents import Document, Statement
from stream_car.core.frontier import place
from stream_car.core.pages import insert_member, remove_member
from stream_car.core.revisions import SKEW, Decision, Input, Placement, decide, document_key, release
from stream_car.core.rules import Ruleset
from stream_car.core.stored import Entry, Scope, StoredDocument
from stream_car.core.timeline import MissingPages, scope_key
from stream_car.errors import InvalidDocument
from stream_car.ports import CLOCK_STEP_MAX, Emission, Message, Record
from stream_car.processing.effects import DecodedRecord, Effects, Future, Undecodable
from stream_car.processing.headers import Header
from stream_car.processing.state import HEADER, PENDING, State
from stream_car.suggest import did_you_mean

CHANGES = "changes"
REJECTED = "rejected"
TICK = ("stream-car-tick", b"1")
UNREADABLE = ("stream-car-unreadable", b"1")  # stands for a record that the client of the log cannot read
NOT_KEPT = "stream-car-not-kept"  # this header of a tick holds a number of rejected inputs that are not in the log
NOT_KEPT_DIGITS = 9
DIGEST_BYTES = 8  # tells a repeat from a conflict of one id and revision; more bytes would only cost memory
LINES_LIMITED_FROM = 1_795_305_600_000_000  # 2026-11-22: titles of records appended before have no limit of their own
FORMAT = 3  # of the stored state of a shard; part of the generation

Steps = Generator[list[bytes], None, None]  # yields the keys that must be read before it can continue


class Fold:
    """The fold `frontier ∘ intake` of one shard and one generation. Implements `shard.FoldProtocol`.

    With `emits_placements` it is the intake fold alone, and the placements become its output.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        *,
        future: Future = "wait",
        skew: int = SKEW,
        shard: int = 0,
        emits_placements: bool = False,
    ) -> None:
        self.ruleset = ruleset
        self.future = future
        self.skew = skew
        self.shard = shard
        self.emits_placements = emits_placements
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    @property
    def generation(self) -> str:
        """The name of what a state was built with: rules, format, and how documents from the future are treated."""
        return f"{self.ruleset.digest}-{FORMAT}{'' if self.future == 'wait' else '-' + self.future}"

    def read(self, record: Record) -> DecodedRecord:
        at = Input(record.offset, record.append_time)
        if TICK in record.headers:
            return DecodedRecord(None, (), at, _not_kept(record))
        if UNREADABLE in record.headers:
            reason = "The name of a header is not UTF-8, in this record or in one before it that was sent with it."
            return DecodedRecord(InvalidDocument("encoding", reason), (), at)
        try:
            limits = DEFAULT_LIMITS if record.append_time >= LINES_LIMITED_FROM else EARLIER_LIMITS
            statement, digest = decode_with_digest(record.value, key=record.key, headers=record.headers, limits=limits)
            scopes = self.scopes(statement)
        except InvalidDocument as error:
            return DecodedRecord(error.as_value(), (), at)
        except MemoryError:
            raise
        except Exception as error:
            return DecodedRecord(Undecodable(error), (), at)
        return DecodedRecord(statement, scopes, Input(record.offset, record.append_time, digest[:DIGEST_BYTES]))

    def keys_needed(self, decoded: DecodedRecord) -> list[bytes]:
        content = decoded.content
        if content is None or isinstance(content, InvalidDocument):
            return []
        keys = [document_key(content.id)]
        if isinstance(content, Document):
            keys += [scope_key(scope) for scope in decoded.scopes]
        return keys

    def apply(self, state: State, decoded: DecodedRecord) -> Generator[list[bytes], None, "Effects"]:
        effects = yield from self.step(state, decoded.content, decoded.scopes, decoded.at)
        if decoded.not_kept:
            counts = _header(state).counts
            counts["not_kept"] = counts.get("not_kept", 0) + decoded.not_kept
        return effects

    def emit(self, decoded: DecodedRecord, effects: "Effects", first: int) -> list[Emission]:
        rows = [(CHANGES, change.scope, pack_change(change)) for change in effects.changes]
        rejection = effects.rejection
        if rejection is not None:
            rows.append((REJECTED, rejection.id or "", self._encode(rejection)))
        return [
            Emission(oseq=oseq, stream=stream, key=key.encode(), value=value)
            for oseq, (stream, key, value) in enumerate(rows, first)
        ]

    def set_aside(
        self, state: State, decoded: DecodedRecord
    ) -> Generator[list[bytes], None, tuple[Effects, str | None, tuple[str, ...] | None]]:
        """Count a record that cannot be applied. Return its id and scopes too, as far as they are known.

        The scopes are those that the document would join, and those that it is in.
        """
        if HEADER not in state.others:
            yield [HEADER]
        counts = _header(state).counts
        counts["quarantined"] = counts.get("quarantined", 0) + 1
        effects = Effects("quarantined", [], [HEADER])
        statement = decoded.statement
        if statement is None:
            return effects, None, None
        if missing := state.missing(statement.id, ()):
            yield missing
        stored = state.documents.get(statement.id)
        has_links = isinstance(statement, Document) and bool(
            statement.supersedes or statement.superseded_by or statement.amends
        )
        former = stored.scopes if stored is not None else ()
        known = None if has_links else tuple(dict.fromkeys((*decoded.scopes, *former)))
        return effects, statement.id, known

    def scopes(self, statement: Statement) -> tuple[str, ...]:
        """Return the scopes that the rules give a statement.

        Raises:
            InvalidDocument: no rule pack declares the type (`type_unknown`), or there are too many scopes
                (`scope_count`).
        """
        if not isinstance(statement, Document):
            return ()
        if not self.ruleset.knows(statement.type):
            hint = did_you_mean(statement.type, self.ruleset.pack_of)
            reason = f"No loaded rule pack declares the type {statement.type!r}.{hint} See `stream-car rules show`."
            raise InvalidDocument("type_unknown", reason, statement.id)
        return self.ruleset.scopes(statement)

    def step(
        self,
        state: State,
        content: Statement | InvalidDocument | None,
        scopes: Sequence[str],
        at: Input,
    ) -> Generator[list[bytes], None, Effects]:
        """Apply the content of one record: a statement, input that cannot be decoded, or a tick (`None`)."""
        if HEADER not in state.others:
            yield [HEADER]
        header = _header(state)
        if at.append_time > header.clock or header.clock - at.append_time > CLOCK_STEP_MAX:
            header.clock = at.append_time
        effects = Effects("control", [], [HEADER])
        if header.pending:
            yield from self._release(state, header, at, effects)
        if isinstance(content, Undecodable):
            raise content.cause
        if isinstance(content, InvalidDocument):
            _reject(content, at, effects)
        elif content is not None:
            if not state.is_whole and (missing := state.missing(content.id, () if self.emits_placements else scopes)):
                yield missing
            old = state.documents.get(content.id)
            decision = self._decide(state, header, old, content, scopes, at, effects)
            if decision is not None and decision.document is not None:
                yield from self._carry_out(state, header, old, decision.document, decision.placements, effects)
        counts = header.counts
        counts[effects.outcome] = counts.get(effects.outcome, 0) + 1
        return effects

    def _decide(
        self,
        state: State,
        header: Header,
        old: StoredDocument | None,
        statement: Statement,
        scopes: Sequence[str],
        at: Input,
        effects: Effects,
    ) -> Decision | None:
        is_due = not isinstance(statement, Document) or self._is_due(statement.time, header)
        is_repeat = old is not None and old.digest == at.digest
        names = state.shared_names(scopes) if scopes and not is_repeat else scopes
        try:
            decision = decide(old, statement, at=at, ruleset=self.ruleset, scopes=names, is_due=is_due)
        except InvalidDocument as conflict:
            _reject(conflict, at, effects)
            return None
        effects.outcome = decision.verdict
        return decision

    def _is_due(self, time: int, header: Header) -> bool:
        return self.future == "apply" or time <= header.clock + self.skew

    def _carry_out(
        self,
        state: State,
        header: Header,
        old: StoredDocument | None,
        new: StoredDocument,
        placements: Sequence[Placement],
        effects: Effects,
    ) -> Steps:
        """Store what an id is from now on: in its scopes, in the queue, and in the counters."""
        if placements:
            remaining = list(placements)
            if remaining[-1].is_link:  # links come last
                header.links += _link_change(remaining)
            while missing := self._place(state, remaining, effects):
                yield missing
        if new.optional is not None or (old is not None and old.optional is not None):
            yield from self._update_queue(state, header, old, new, effects)
        effects.touched.append(document_key(new.entry.id))
        state.put(new)
        header.documents += (not new.retracted) - (old is not None and not old.retracted)

    def _place(self, state: State, remaining: list[Placement], effects: Effects) -> list[bytes]:
        """Pass the placements from the intake to the frontier. The two-hop form has a log between the two.

        Placements that are done are removed from `remaining`. Return the keys that must be read before the others.
        """
        if self.emits_placements:
            effects.placements += tuple(remaining)
            return []
        changes, touched = effects.changes, effects.touched
        return place_all(state, remaining, self.ruleset, shard=self.shard, changes=changes, touched=touched)

    def _update_queue(
        self, state: State, header: Header, old: StoredDocument | None, new: StoredDocument, effects: Effects
    ) -> Steps:
        """Remove the former revision from the queue if it waits there, and add the new one if it must wait."""
        name = new.entry.id
        if old is not None and old.pending is not None:
            yield from self._edit_queue(state, header, None, (old.time, 0, name), effects)
        if new.pending is not None:
            entry = Entry(name, new.revision, "", new.time, 0, new.offset, new.entry.append_time)
            yield from self._edit_queue(state, header, entry, None, effects)

    def _release(self, state: State, header: Header, at: Input, effects: Effects) -> Steps:
        """Place the pending documents that are due, in the order of their times."""
        while header.pending:
            if PENDING not in state.others:
                yield [PENDING]
            queue = _queue(state)
            first = queue.directory[""][0].first if queue.directory else (queue.entries[0].time, 0, queue.entries[0].id)
            if not self._is_due(first[0], header):
                return
            name = first[2]
            missing = state.missing(name, ())
            if missing:
                yield missing
            old = state.documents[name]
            assert old is not None
            new, placements = release(name, old, at.offset)
            yield from self._carry_out(state, header, old, new, placements, effects)

    def _edit_queue(
        self,
        state: State,
        header: Header,
        added: Entry | None,
        removed: tuple[int, int, str] | None,
        effects: Effects,
    ) -> Steps:
        if PENDING not in state.others:
            yield [PENDING]
        queue = _queue(state)
        while True:
            try:
                if removed is not None:
                    effects.touched += remove_member(queue, state.pages, "", removed)
                if added is not None:
                    effects.touched += insert_member(queue, state.pages, added)
                break
            except MissingPages as error:
                missing = error.keys
            yield missing
        header.pending += (added is not None) - (removed is not None)
        effects.touched.append(PENDING)


def place_all(
    state: State,
    remaining: list[Placement],
    ruleset: Ruleset,
    *,
    shard: int,
    changes: list[FrontierChange],
    touched: list[bytes],
) -> list[bytes]:
    """Apply placements, each in one step of the frontier of its scope, and append to `changes` and `touched`.

    `shard` is the intake shard that the placements come from. Return an empty list if all are done. Otherwise return
    the keys that must be read before another call; placements that are done have been removed from `remaining`.
    """
    if not state.is_whole:
        missing = [scope_key(placement.scope) for placement in remaining if placement.scope not in state.scopes]
        if missing:
            return missing
    for done, placement in enumerate(remaining):
        try:
            change, pages = place(state.scope(placement.scope), state.pages, placement, ruleset, shard=shard)
        except MissingPages as error:
            del remaining[:done]
            return error.keys
        touched.append(scope_key(placement.scope))
        if pages:
            touched += pages
        if change is not None:
            changes.append(change)
    return []


def _link_change(placements: Sequence[Placement]) -> int:
    """Return by how many these placements change the number of link placements."""
    return sum((link.entry is not None) - (link.old is not None) for link in placements if link.is_link)


def tally(not_kept: int) -> Message:
    """Return the message that counts rejected inputs which are not in the log."""
    return Message(value=None, headers=(TICK, (NOT_KEPT, str(not_kept).encode())))


def _not_kept(record: Record) -> int:
    """Return the number of rejected inputs that a tick counts; a header that cannot be read is ignored."""
    for name, value in record.headers:
        if name == NOT_KEPT and value.isdigit() and len(value) <= NOT_KEPT_DIGITS:
            return int(value)
    return 0


def _header(state: State) -> Header:
    header = state.others[HEADER]
    if header is None:
        header = state.others[HEADER] = Header()
    assert isinstance(header, Header)
    return header


def _queue(state: State) -> Scope:
    queue = state.others[PENDING]
    if queue is None:
        queue = state.others[PENDING] = Scope("")
    assert isinstance(queue, Scope)
    return queue


def _reject(error: InvalidDocument, at: Input, effects: Effects) -> None:
    effects.outcome = "rejected"
    effects.rejection = Rejection(offset=at.offset, code=error.code, reason=error.reason, id=error.document_id)

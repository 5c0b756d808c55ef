"""The composed fold, frontier after intake: one record of the log in, state and events out.

Promise: a pure function of state and record. There is no clock but the append time in the record,
no randomness, no environment. Values that are not at hand are asked for by yielding their keys;
whatever was changed in place belongs to the batch and is dropped with it if the commit fails.
Cost: the scopes of the document, each one step of the frontier.
"""

from collections.abc import Generator, Sequence

import msgspec

from stream_car.codec import content_digest, decode
from stream_car.core.changes import FrontierChange, Rejection
from stream_car.core.documents import Document, Statement
from stream_car.core.frontier import place
from stream_car.core.pages import add, drop
from stream_car.core.revisions import SKEW, Decision, Input, Placement, decide, document_key, release
from stream_car.core.rules import Ruleset
from stream_car.core.stored import Entry, Scope, StoredDocument
from stream_car.core.timeline import MissingPages, scope_key
from stream_car.errors import InvalidDocument
from stream_car.ports import Emission, Record
from stream_car.processing.effects import DecodedRecord, Effects, Future
from stream_car.processing.headers import Header
from stream_car.processing.state import HEADER, PENDING, State

CHANGES = "changes"
REJECTED = "rejected"
TICK = ("stream-car-tick", b"1")
DIGEST_BYTES = 8  # tells a repeat from a conflict under one id and revision; more would only cost memory
FORMAT = 3  # of what a shard keeps; part of the generation


Steps = Generator[list[bytes], None, None]


class Fold:
    """`frontier ∘ intake` for one shard of one generation; intake alone if it `emits_placements` the placements."""

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
        """Names what a state was built with: rules, format, and how documents from the future are treated."""
        return f"{self.ruleset.digest}-{FORMAT}{'' if self.future == 'wait' else '-' + self.future}"

    def read(self, record: Record) -> DecodedRecord:
        """The record decoded and judged as far as it goes alone."""
        at = Input(record.offset, record.append_time)
        if TICK in record.headers:
            return DecodedRecord(None, (), at)
        try:
            said = decode(record.value, key=record.key, headers=record.headers)
            scopes = self.scopes(said)
        except InvalidDocument as refused:
            return DecodedRecord(refused, (), at)
        if isinstance(said, Document):
            at = Input(record.offset, record.append_time, content_digest(said)[:DIGEST_BYTES])
        return DecodedRecord(said, scopes, at)

    def keys_needed(self, decoded: DecodedRecord) -> list[bytes]:
        """Keys that a record will need, as far as it shows itself; what it lacks the fold asks for."""
        said = decoded.content
        if said is None or isinstance(said, InvalidDocument):
            return []
        keys = [document_key(said.id)]
        if isinstance(said, Document):
            keys += [scope_key(scope) for scope in decoded.scopes]
        return keys

    def apply(self, state: State, decoded: DecodedRecord) -> Generator[list[bytes], None, "Effects"]:
        """Apply one record that was read."""
        return self.step(state, decoded.content, decoded.scopes, decoded.at)

    def emit(self, decoded: DecodedRecord, effects: "Effects", first: int) -> list[Emission]:
        """The events that tell of it, numbered from `first` on."""
        told = [(CHANGES, change.scope, self._encode(change)) for change in effects.changes]
        refused = effects.rejection
        if refused is not None:
            told.append((REJECTED, refused.id or "", self._encode(refused)))
        return [
            Emission(oseq=oseq, stream=stream, key=key.encode(), value=value)
            for oseq, (stream, key, value) in enumerate(told, first)
        ]

    def scopes(self, statement: Statement) -> tuple[str, ...]:
        """The scopes that a statement's rules give it.

        Raises `InvalidDocument` (`type_unknown`, `scope_count`).
        """
        if not isinstance(statement, Document):
            return ()
        if not self.ruleset.knows(statement.type):
            known = f"no loaded rule pack declares the type {statement.type!r}; see `stream-car rules show`"
            raise InvalidDocument("type_unknown", known, statement.id)
        return self.ruleset.scopes(statement)

    def step(
        self,
        state: State,
        content: Statement | InvalidDocument | None,
        scopes: Sequence[str],
        at: Input,
    ) -> Generator[list[bytes], None, Effects]:
        """Apply one record: a statement, input that cannot be read, or a tick (`None`)."""
        if HEADER not in state.others:
            yield [HEADER]
        header = _header(state)
        header.clock = max(header.clock, at.append_time)
        effects = Effects("control", [], [HEADER], [])
        if header.pending:
            yield from self._release(state, header, at, effects)
        if isinstance(content, InvalidDocument):
            _reject(content, at, effects)
        elif content is not None:
            if not state.is_whole and (lacking := state.missing(content.id, () if self.emits_placements else scopes)):
                yield lacking
            old = state.documents.get(content.id)
            decision = self._decide(state, header, old, content, scopes, at, effects)
            if decision is not None and decision.document is not None:
                effects.scopes = len(scopes)
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
        names = state.names(scopes) if scopes and not is_repeat else scopes
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
        """Give an id its new standing: in its scopes, in the queue, in the books."""
        if placements:
            left = list(placements)
            if left[-1].is_link:  # they come last
                header.links += _more_links(left)
            while lacking := self._place(state, left, effects):
                yield lacking
        if new.optional is not None or (old is not None and old.optional is not None):
            yield from self._update_queue(state, header, old, new, effects)
        state.keep(new)
        header.documents += (not new.retracted) - (old is not None and not old.retracted)
        effects.touched.append(document_key(new.entry.id))
        effects.ids.append(new.entry.id)

    def _place(self, state: State, left: list[Placement], effects: Effects) -> list[bytes]:
        """Where intake ends and the frontier begins; the two-hop form has a topic here.

        Takes out of `left` what is placed. Gives the keys that must be read before the rest can be.
        """
        if self.emits_placements:
            effects.placements += tuple(left)
            return []
        return place_all(state, left, self.ruleset, shard=self.shard, changes=effects.changes, touched=effects.touched)

    def _update_queue(
        self, state: State, header: Header, old: StoredDocument | None, new: StoredDocument, effects: Effects
    ) -> Steps:
        """Take the former revision out of the queue if it waits there, and put the new one in if it must."""
        name = new.entry.id
        if old is not None and old.pending is not None:
            yield from self._edit_queue(state, header, None, (old.time, 0, name), effects)
        if new.pending is not None:
            entry = Entry(name, new.revision, "", new.time, 0, new.offset, new.entry.append_time)
            yield from self._edit_queue(state, header, entry, None, effects)

    def _release(self, state: State, header: Header, at: Input, effects: Effects) -> Steps:
        """Place the documents whose time has come, in the order of their times."""
        while header.pending:
            if PENDING not in state.others:
                yield [PENDING]
            queue = _queue(state)
            first = queue.directory[""][0].first if queue.directory else (queue.entries[0].time, 0, queue.entries[0].id)
            if not self._is_due(first[0], header):
                return
            name = first[2]
            lacking = state.missing(name, ())
            if lacking:
                yield lacking
            held = state.documents[name]
            assert held is not None
            new, placements = release(name, held, at.offset)
            yield from self._carry_out(state, header, held, new, placements, effects)

    def _edit_queue(
        self,
        state: State,
        header: Header,
        entry: Entry | None,
        gone: tuple[int, int, str] | None,
        effects: Effects,
    ) -> Steps:
        if PENDING not in state.others:
            yield [PENDING]
        queue = _queue(state)
        while True:
            try:
                if gone is not None:
                    effects.touched += drop(queue, state.pages, "", gone)
                if entry is not None:
                    effects.touched += add(queue, state.pages, entry)
                break
            except MissingPages as absent:
                lacking = absent.keys
            yield lacking
        header.pending += (entry is not None) - (gone is not None)
        effects.touched.append(PENDING)


def place_all(
    state: State,
    left: list[Placement],
    ruleset: Ruleset,
    *,
    shard: int,
    changes: list[FrontierChange],
    touched: list[bytes],
) -> list[bytes]:
    """The frontier fold: each placement one step in its scope; adds to `changes` and `touched`.

    Takes out of `left` what is placed. Gives the keys that must be read before the rest can be; none
    when all is done. `shard` is the intake shard that the placements come from.
    """
    if not state.is_whole:
        lacking = [scope_key(placement.scope) for placement in left if placement.scope not in state.scopes]
        if lacking:
            return lacking
    for at, placement in enumerate(left):
        try:
            change, pages = place(state.scope(placement.scope), state.pages, placement, ruleset, shard=shard)
        except MissingPages as absent:
            del left[:at]
            return absent.keys
        touched.append(scope_key(placement.scope))
        if pages:
            touched += pages
        if change is not None:
            changes.append(change)
    return []


def _more_links(placements: Sequence[Placement]) -> int:
    """How many more placements by name there are after these."""
    return sum((one.entry is not None) - (one.old is not None) for one in placements if one.is_link)


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

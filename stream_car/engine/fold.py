"""The composed fold, frontier after intake: one record of the log in, state and events out.

Promise: a pure function of state and record. There is no clock but the append time in the record,
no randomness, no environment. Values that are not at hand are asked for by yielding their keys;
whatever was changed in place belongs to the batch and is dropped with it if the commit fails.
Cost: the scopes of the document, each one step of the frontier.
"""

from collections.abc import Generator, Sequence
from typing import Literal, cast

import msgspec
from msgspec import Struct

from stream_car.codec import content_digest, decode
from stream_car.core.changes import FrontierChange, Rejection
from stream_car.core.documents import Document, Statement
from stream_car.core.frontier import Placement, place
from stream_car.core.intake import SKEW, Held, Input, decide, held_key, release
from stream_car.core.rules import Ruleset
from stream_car.core.timeline import Absent, EditablePages, Entry, Page, Scope, add, drop, scope_key
from stream_car.engine.answers import Outcome
from stream_car.errors import InvalidDocument
from stream_car.ports import Event, Record

CHANGES = "changes"
REJECTED = "rejected"
TICK = ("stream-car-tick", b"1")
DIGEST_BYTES = 8  # tells a repeat from a conflict under one id and revision; more would only cost memory
FORMAT = 1  # of what a shard keeps; part of the generation

Future = Literal["wait", "apply"]
HEADER = b"h"
WAITING = b"w"


class Header(Struct, array_like=True, gc=False):
    """What a shard knows of itself. `clock` is the greatest append time so far; `links` counts placements by name."""

    clock: int = 0
    links: int = 0
    waiting: int = 0
    documents: int = 0
    counts: dict[str, int] = {}


Value = Header | Held | Scope | Page | None


class Effects(Struct, gc=False):
    """What a record did. `touched` are the keys to write; `shown` the ids whose text is to be (un)found."""

    outcome: Outcome
    changes: list[FrontierChange]
    touched: list[bytes]
    shown: list[str]
    rejection: Rejection | None = None
    scopes: int = 0


class Reading(Struct, frozen=True, gc=False):
    """A record as far as it can be read without state. `said` is `None` for a tick; `at` is where it stands."""

    said: Statement | InvalidDocument | None
    scopes: tuple[str, ...]
    at: Input

    @property
    def statement(self) -> Statement | None:
        """What the record said, if it can be read."""
        return None if isinstance(self.said, InvalidDocument) else self.said


def _pages(values: dict[bytes, Value]) -> EditablePages:
    """The pages among the values; keys of pages lead to nothing else."""
    return cast(EditablePages, values)


def _shared(values: dict[bytes, Value], scopes: Sequence[str]) -> tuple[str, ...]:
    """The same names, as the strings that their scopes hold already: a name is kept once in memory."""
    known = [values.get(scope_key(name)) for name in scopes]
    return tuple([s.name if isinstance(s, Scope) else name for s, name in zip(known, scopes, strict=True)])


Steps = Generator[list[bytes], None, None]


class Fold:
    """`frontier ∘ intake` for one shard of one generation."""

    def __init__(self, ruleset: Ruleset, *, future: Future = "wait", skew: int = SKEW, shard: int = 0) -> None:
        self.ruleset = ruleset
        self.future = future
        self.skew = skew
        self.shard = shard
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    @property
    def generation(self) -> str:
        """Names what a state was built with: rules, format, and how documents from the future are treated."""
        return f"{self.ruleset.digest}-{FORMAT}{'' if self.future == 'wait' else '-' + self.future}"

    def read(self, record: Record) -> Reading:
        """The record decoded and judged as far as it goes alone."""
        at = Input(record.offset, record.append_time)
        if TICK in record.headers:
            return Reading(None, (), at)
        try:
            said = decode(record.value, key=record.key, headers=record.headers)
            scopes = self.scopes(said)
        except InvalidDocument as refused:
            return Reading(refused, (), at)
        if isinstance(said, Document):
            at = Input(record.offset, record.append_time, content_digest(said)[:DIGEST_BYTES])
        return Reading(said, scopes, at)

    def foresee(self, read: Reading) -> list[bytes]:
        """Keys that a record will need, as far as it shows itself; what it lacks the fold asks for."""
        said = read.said
        if said is None or isinstance(said, InvalidDocument):
            return []
        keys = [held_key(said.id)]
        if isinstance(said, Document):
            keys += [scope_key(scope) for scope in read.scopes]
        return keys

    def apply(self, values: dict[bytes, Value], read: Reading) -> Generator[list[bytes], None, "Effects"]:
        """Apply one record that was read."""
        return self.step(values, read.said, read.scopes, read.at)

    def emit(self, effects: "Effects", first: int) -> list[Event]:
        """The events that tell of it, numbered from `first` on."""
        told = [(CHANGES, change.scope, self._encode(change)) for change in effects.changes]
        refused = effects.rejection
        if refused is not None:
            told.append((REJECTED, refused.id or "", self._encode(refused)))
        return [
            Event(oseq=oseq, stream=stream, key=key.encode(), value=value)
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
        values: dict[bytes, Value],
        said: Statement | InvalidDocument | None,
        scopes: Sequence[str],
        at: Input,
    ) -> Generator[list[bytes], None, Effects]:
        """Apply one record: a statement, input that cannot be read, or a tick (`None`)."""
        effects = Effects("control", [], [HEADER], [])
        if HEADER not in values:
            yield [HEADER]
        header = values[HEADER]
        if header is None:
            header = values[HEADER] = Header()
        assert isinstance(header, Header)
        header.clock = max(header.clock, at.append_time)
        if header.waiting:
            yield from self._release(values, header, at, effects)
        if isinstance(said, InvalidDocument):
            self._reject(said, at, effects)
        elif said is not None:
            yield from self._apply(values, header, said, scopes, at, effects)
        counts = header.counts
        counts[effects.outcome] = counts.get(effects.outcome, 0) + 1
        return effects

    def _reject(self, error: InvalidDocument, at: Input, effects: Effects) -> None:
        effects.outcome = "rejected"
        effects.rejection = Rejection(offset=at.offset, code=error.code, reason=error.reason, id=error.document_id)

    def _apply(
        self,
        values: dict[bytes, Value],
        header: Header,
        said: Statement,
        scopes: Sequence[str],
        at: Input,
        effects: Effects,
    ) -> Steps:
        key = held_key(said.id)
        if key not in values:
            yield [key]
        held = values[key]
        assert held is None or isinstance(held, Held)
        is_due = not isinstance(said, Document) or self._is_due(said.time, header)
        try:
            names = _shared(values, scopes)
            decision = decide(held, said, at=at, ruleset=self.ruleset, scopes=names, is_due=is_due)
        except InvalidDocument as conflict:
            self._reject(conflict, at, effects)
            return
        effects.outcome = decision.verdict
        if decision.held is None:
            return
        effects.scopes = len(scopes)
        yield from self._place_all(values, header, decision.placements, effects)
        if held is not None and held.waiting is not None:
            yield from self._unqueue(values, header, said.id, held, effects)
        if decision.held.waiting is not None:
            yield from self._queue(values, header, said.id, decision.held, effects)
        values[key] = decision.held
        header.documents += (not decision.held.retracted) - (held is not None and not held.retracted)
        effects.touched.append(key)
        effects.shown.append(said.id)

    def _is_due(self, time: int, header: Header) -> bool:
        return self.future == "apply" or time <= header.clock + self.skew

    def _place_all(
        self, values: dict[bytes, Value], header: Header, placements: Sequence[Placement], effects: Effects
    ) -> Steps:
        """Where intake ends and the frontier begins; the two-hop form has a topic here."""
        for placement in placements:
            if placement.is_link:
                header.links += (placement.entry is not None) - (placement.old is not None)
        return place_all(
            values, placements, self.ruleset, shard=self.shard, changes=effects.changes, touched=effects.touched
        )

    def _release(self, values: dict[bytes, Value], header: Header, at: Input, effects: Effects) -> Steps:
        while header.waiting:
            if WAITING not in values:
                yield [WAITING]
            queue = values[WAITING]
            assert isinstance(queue, Scope)
            first = queue.sheets[""][0].first if queue.sheets else (queue.entries[0].time, 0, queue.entries[0].id)
            if not self._is_due(first[0], header):
                return
            name = first[2]
            key = held_key(name)
            if key not in values:
                yield [key]
            held = values[key]
            assert isinstance(held, Held)
            yield from self._unqueue(values, header, name, held, effects)
            new, placements = release(name, held, at.offset)
            yield from self._place_all(values, header, placements, effects)
            values[key] = new
            effects.touched.append(key)
            effects.shown.append(name)

    def _queue(self, values: dict[bytes, Value], header: Header, name: str, held: Held, effects: Effects) -> Steps:
        entry = Entry(name, held.revision, "", held.time, 0, held.offset, held.entry.append_time)
        yield from self._edit_queue(values, entry, None, effects)
        header.waiting += 1

    def _unqueue(self, values: dict[bytes, Value], header: Header, name: str, held: Held, effects: Effects) -> Steps:
        yield from self._edit_queue(values, None, (held.time, 0, name), effects)
        header.waiting -= 1

    def _edit_queue(
        self, values: dict[bytes, Value], entry: Entry | None, gone: tuple[int, int, str] | None, effects: Effects
    ) -> Steps:
        if WAITING not in values:
            yield [WAITING]
        queue = values[WAITING]
        if queue is None:
            queue = values[WAITING] = Scope("")
        assert isinstance(queue, Scope)
        while True:
            try:
                if gone is not None:
                    effects.touched += drop(queue, _pages(values), "", gone)
                if entry is not None:
                    effects.touched += add(queue, _pages(values), entry)
                break
            except Absent as absent:
                lacking = absent.keys
            yield lacking
        effects.touched.append(WAITING)


def place_all(
    values: dict[bytes, Value],
    placements: Sequence[Placement],
    ruleset: Ruleset,
    *,
    shard: int,
    changes: list[FrontierChange],
    touched: list[bytes],
) -> Steps:
    """The frontier fold: each placement one step in its scope; adds to `changes` and `touched`.

    `shard` is the intake shard that the placements come from.
    """
    keys = [scope_key(placement.scope) for placement in placements]
    lacking = [key for key in keys if key not in values]
    if lacking:
        yield lacking
    pages_by_key = _pages(values)
    for key, placement in zip(keys, placements, strict=True):
        scope = values[key]
        if scope is None:
            scope = values[key] = Scope(placement.scope)
        assert isinstance(scope, Scope)
        while isinstance(done := _placed(scope, pages_by_key, placement, ruleset, shard), Absent):
            yield done.keys
        change, pages = done
        touched.append(key)
        if pages:
            touched += pages
        if change is not None:
            changes.append(change)


def _placed(
    scope: Scope, pages: EditablePages, placement: Placement, ruleset: Ruleset, shard: int
) -> tuple[FrontierChange | None, list[bytes]] | Absent:
    try:
        return place(scope, pages, placement, ruleset, shard=shard)
    except Absent as absent:
        return absent

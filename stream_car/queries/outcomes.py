"""Why a document no longer holds, in the word of its domain, and what its record's state is.

Promise: words only. What supersedes what comes from walks; rule packs name the outcomes and states. One function each
decides what becomes of a document and of a record, for all questions and events, so no two of them differ.
Cost: a look-up per document that supersedes another.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from stream_car.codec.times import EARLIEST, format_time, from_micros, parse_time, to_micros
from stream_car.core.documents import Document
from stream_car.core.rule_pack import BASE_ENDED, REPLACED, REVISED
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import RECORD
from stream_car.core.walk import WalkResult
from stream_car.queries.answers import DocumentStatus, Group, Step

RECORD_NAMES = ("record", "alias")  # how a name is read that means a record rather than a document
STATE_SINCE = "state_since"  # the attribute that says since when the state of a document holds
STATE_TEXT = "state_text"  # the attribute that says it in words, such as `fixed in 2.0.0`


class Fate(Struct, frozen=True, kw_only=True, gc=False):
    """What a document says of its record, and why the document or its record no longer holds; empty if it does."""

    state: str = ""
    state_text: str = ""
    state_since: datetime | None = None
    outcome: str = ""
    outcome_text: str = ""


class Fates:
    """Fates documents whose bodies were read. A document without a body is named by its id."""

    def __init__(self, ruleset: Ruleset, bodies: Mapping[str, Document], *, shows_attributes: bool = False) -> None:
        self.ruleset = ruleset
        self.bodies = bodies
        self.shows_attributes = shows_attributes  # whether an answer has them

    def of(self, document_id: str, type_name: str, reasons: Iterable[Step] = ()) -> Fate:
        """Return the fate of a document; `reasons` are the documents that supersede it, none if it is in force."""
        body = self.bodies.get(document_id)
        state, state_text, since = self._state(type_name, body)
        reason = self.reason(document_id, type_name, reasons)
        outcome = text = ""
        if reason is not None:
            outcome = self._outcome(reason.rule, body, self.bodies.get(reason.id))
            text = self._text(reason, outcome)
        elif type_name in self.ruleset.ending_types:
            outcome, text = state, state_text if state_text != state else _dated(state, body)
        return Fate(state=state, state_text=state_text, state_since=since, outcome=outcome, outcome_text=text)

    def reason(self, document_id: str, type_name: str, reasons: Iterable[Step]) -> Step | None:
        """Return the step that tells best why a document no longer holds; `None` if there is no step."""
        body, steps = self.bodies.get(document_id), tuple(reasons)
        if len(steps) < 2:
            return steps[0] if steps else None
        return max(steps, key=lambda step: self._weight(type_name, body, step))

    def _state(self, type_name: str, body: Document | None) -> tuple[str, str, datetime | None]:
        """Return the state of a type, its text for people, and since when it holds according to the document."""
        state = self.ruleset.states.get(type_name, "")
        if not state or body is None:
            return state, state, None
        since, text = _state_since(body), body.attributes.get(STATE_TEXT)
        if not isinstance(text, str) or not text:
            text = f"{state} {_day(to_micros(since))}" if since is not None else state
        return state, text, since

    def path(self, start: str, path: Sequence[Step]) -> tuple[Step, ...]:
        """Return the steps of a path from `start`, each with what became of the document before it."""
        before = (start, *(step.id for step in path))
        return tuple(self.step(name, step) for name, step in zip(before, path, strict=False))

    def step(self, name: str, step: Step) -> Step:
        """Return a step from the document with this id, with what became of that document."""
        if step.effect == "amend":
            return step
        return replace(step, outcome=self._outcome(step.rule, self.bodies.get(name), self.bodies.get(step.id)))

    def _outcome(self, rule_name: str, earlier: Document | None, later: Document | None) -> str:
        rule = self.ruleset.rules.get(rule_name)
        if rule is not None and rule.material and earlier is not None and later is not None:
            values = [(earlier.attributes.get(name), later.attributes.get(name)) for name in rule.material]
            if all(old == new for old, new in values) and any(old is not None for old, _ in values):
                return REVISED
        return self.ruleset.outcomes.get(rule_name, REPLACED)

    def _weight(self, type_name: str, body: Document | None, step: Step) -> tuple[bool, bool, bool, int, int, str]:
        """Return how well a step tells why a document no longer holds; the greatest weight does."""
        later = self.bodies.get(step.id)
        is_edition = self._is_edition(step.rule)
        precedence = later.precedence if later is not None else (0, 0)
        return (
            self._outcome(step.rule, body, later) != REVISED,
            is_edition,
            is_edition and later is not None and later.type == type_name,
            *precedence,
            step.id,
        )

    def _is_edition(self, rule_name: str) -> bool:
        rule = self.ruleset.rules.get(rule_name)
        return rule is not None and rule.scope_keys == (RECORD,)

    def _text(self, reason: Step, outcome: str) -> str:
        """Return the outcome for people: `fixed in 2.0.0`, `withdrawn 2022-08-14`, `overruled by ...`."""
        later = self.bodies.get(reason.id)
        if later is None:
            return f"{outcome} by {reason.id}"
        if outcome == BASE_ENDED:
            return f"ended with what it amended, by {later.title or later.id}"
        state, state_text, _ = self._state(later.type, later)
        if outcome == state != state_text:
            return state_text
        if self._is_edition(reason.rule):
            return _dated(outcome, later)
        return f"{outcome} by {later.title or later.id}"


def steps_of(walk: WalkResult, target: str) -> tuple[Step, ...]:
    """Return the path from the anchor to one of its controlling documents."""
    return tuple(Step(id=name, rule=rule, scope=scope) for name, rule, scope in walk.path(target))


def reasons_of(walk: WalkResult, paths: Iterable[Sequence[Step]] | None = None) -> tuple[Step, ...]:
    """Return the first steps from a superseded anchor to what controls it, or else what supersedes it at all.

    `paths`: those to all controlling documents, if they are known already.
    """
    if walk.is_active:
        return ()
    if paths is None:
        paths = (steps_of(walk, entry.id) for entry in walk.controlling)
    if first := dict.fromkeys(path[0] for path in paths if path):
        return tuple(first)
    steps = (Step(id=name, rule=rule, scope=scope) for name, rule, scope in dict.fromkeys(walk.superseded_by))
    return tuple(steps) or tuple(Step(id=name, rule="link", scope=f"document={walk.anchor}") for name in walk.missing)


def reasons_on_paths(anchor: str, paths: Iterable[Sequence[Step]]) -> dict[str, list[Step]]:
    """Return for each document on these paths from the anchor the steps that lead away from it."""
    reasons: dict[str, list[Step]] = {}
    for path in paths:
        name = anchor
        for step in path:
            reasons.setdefault(name, []).append(step)
            name = step.id
    return reasons


class NameStatus(Struct, frozen=True):
    """What a name means now: its status and fate, and the group that tells most about it."""

    status: DocumentStatus
    fate: Fate = Fate()
    group: Group | None = None


def status_of_name(ruleset: Ruleset, groups: Sequence[Group], *, is_record: bool) -> NameStatus:
    """Return how the document or the record of these groups stands; its editions come oldest first.

    A record is in force if one of its editions is, unless all that are say that the record has ended. Of those in
    force, the group is of the latest whose state its pack names first, and that does not say that it has ended.
    """
    if not groups:
        return NameStatus("pending")
    ranks = ruleset.state_ranks
    editions = [group for group in reversed(groups) if group.anchor.status == "in_force"]
    holding = [group for group in editions if not group.anchor.outcome]
    latest = editions[0] if editions else groups[-1]
    group = min(holding, key=lambda edition: ranks.get(edition.anchor.type, len(ranks)), default=latest)
    speaking = [edition.anchor for edition in editions] or [control.document for control in group.controlling]
    speaker = min(speaking, key=lambda document: ranks.get(document.type, len(ranks)), default=group.anchor)
    has_ended = is_record and all(edition.anchor.outcome for edition in editions)
    anchor, is_in_force = group.anchor, bool(editions) and not has_ended
    keeps_outcome = not is_in_force or not is_record
    fate = Fate(
        state=speaker.state,
        state_text=speaker.state_text,
        state_since=speaker.state_since,
        outcome=anchor.outcome if keeps_outcome else "",
        outcome_text=anchor.outcome_text if keeps_outcome else "",
    )
    return NameStatus("in_force" if is_in_force else "superseded", fate, group)


def read_time(body: Document, attribute: str) -> int | None:
    """Return the time that an attribute of a document gives, in microseconds; `None` if it gives none."""
    value = body.attributes.get(attribute)
    if not isinstance(value, str):
        return None
    try:
        return parse_time(value)
    except ValueError:
        return None


def _state_since(body: Document) -> datetime | None:
    time = read_time(body, STATE_SINCE)
    return from_micros(time) if time is not None else None


def _dated(word: str, body: Document | None) -> str:
    """Return a word with the day of a document, or alone if the publisher gave no date."""
    return word if body is None or body.time == EARLIEST else f"{word} {_day(body.time)}"


def _day(micros: int) -> str:
    return format_time(micros)[:10]

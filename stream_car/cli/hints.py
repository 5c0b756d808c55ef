"""Hints: the command to run next, and the names that were probably meant."""

import shlex
from collections.abc import Iterable, Iterator, Sequence

import click
from rich.text import Text

from stream_car.api.calls import Calls
from stream_car.cli.console import note, words
from stream_car.cli.options import Session, is_typed
from stream_car.cli.widgets import WARN, counted
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import AMENDED, LINK, RECORD
from stream_car.queries.listed_kinds import known_outcomes
from stream_car.suggest import did_you_mean, join_names

EXAMINED_MAX = 1000  # rejections
UNKNOWN_TYPE = "type_unknown"


def again(command: str) -> str:
    """Return `stream-car COMMAND` with the options that told the running command where to work.

    What the environment says holds for the next command too and is omitted.
    """
    context = click.get_current_context(silent=True)
    session = context.find_object(Session) if context is not None else None
    typed = [name for name in ("url", "data") if session is not None and is_typed(name)]
    return " ".join(
        ["stream-car", command, *(f"--{name} {shlex.quote(str(getattr(session, name)))}" for name in typed)]
    )


def advise(text: str, command: str, style: str = WARN) -> Text:
    """Return a hint that ends with a command. It is never wrapped, so that it can be copied from a terminal."""
    return _unwrapped(f"{text}: {again(command)}", style)


def advise_rules(text: str, style: str = WARN) -> Text:
    """Return a hint that ends with the command that shows the rules of the data or service in use."""
    session = click.get_current_context().find_object(Session)
    assert session is not None
    option, value = ("--url", session.url or "") if session.is_remote else ("--data", str(session.data))
    return _unwrapped(f"{text}: stream-car rules show {option} {shlex.quote(value)}", style)


def _unwrapped(text: str, style: str) -> Text:
    hint = words(text, style)
    hint.no_wrap, hint.overflow = True, "ignore"
    return hint


def note_unknown_types(calls: Calls) -> None:
    """Note that documents were rejected only because the rules do not know their type."""
    rejected = sum(item.code == UNKNOWN_TYPE for item in calls.rejected(limit=EXAMINED_MAX))
    if rejected:
        subject = counted(rejected, "document was", "documents were")
        text = f"{subject} rejected because no rule pack of this data knows the type. Preview other rules"
        note(advise(text, "rebuild --rules ... --dry-run"))


def note_unknown_ids(calls: Calls, ids: Sequence[str]) -> None:
    """Note the ids that no document or record has yet, with those that were probably meant."""
    for resolution in calls.resolve(ids[:EXAMINED_MAX]):
        if resolution.status == "unknown":
            meant = f" Did you mean {join_names(resolution.similar, 'or')}?" if resolution.similar else ""
            note(f"No document or record has the id {resolution.name!r} yet.{meant}", WARN)


def unknown_names(
    ruleset: Ruleset,
    *,
    types: Iterable[str] = (),
    packs: Iterable[str] = (),
    keys: Iterable[str] = (),
    outcomes: Iterable[str] = (),
) -> Iterator[str]:
    """Yield a sentence for each type, key or outcome that nothing can have, and for each pack that is not loaded."""
    used = {key for rule in ruleset.rules.values() for key in rule.scope_keys}
    declared = {key for pack in ruleset.packs for key in pack.keys}
    for problem, names, known in (
        ("No rule pack knows the type", types, set(ruleset.pack_of)),
        ("No rule pack is called", packs, {pack.name for pack in ruleset.packs}),
        ("No rule uses the key", keys, {*used, *declared, RECORD, LINK, AMENDED}),
        ("No change has the outcome", outcomes, known_outcomes(ruleset)),
    ):
        yield from (f"{problem} {name!r}.{did_you_mean(name, sorted(known))}" for name in names if name not in known)

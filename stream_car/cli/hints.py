"""The command that a hint advises, told where to look as this one was told."""

import shlex
from collections.abc import Iterable, Iterator

import click
from rich.text import Text

from stream_car.cli.console import clean
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import AMENDED, LINK, RECORD
from stream_car.rule_packs.suggestions import meant

WHERE = ("url", "data", "kafka", "prefix")
COMMANDLINE = click.core.ParameterSource.COMMANDLINE


def again(command: str) -> str:
    """`stream-car COMMAND`, with the options by which the command that runs was told where to look.

    What the environment says holds for the next command too and is left out.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return f"stream-car {command}"
    typed = [name for name in WHERE if context.get_parameter_source(name) is COMMANDLINE]
    return " ".join(["stream-car", command, *(f"--{name} {shlex.quote(str(context.params[name]))}" for name in typed)])


def advised(said: str, command: str, style: str) -> Text:
    """A hint with a command, never broken within it: it can be copied from a terminal."""
    return Text(clean(f"{said}: {again(command)}"), style, no_wrap=True, overflow="ignore")


def keys(ruleset: Ruleset, asked: Iterable[str]) -> Iterator[str]:
    """What is to be said of keys that no scope can have."""
    declared = {key for domain in ruleset.packs for key in domain.keys}
    known = declared | {key for rule in ruleset.rules.values() for key in rule.scope_keys} | {RECORD, LINK, AMENDED}
    return (f"no rule knows the key {key!r}{meant(key, sorted(known))}" for key in asked if key not in known)


def types(ruleset: Ruleset, asked: Iterable[str]) -> Iterator[str]:
    """What is to be said of types that no document can have."""
    known = sorted(ruleset.pack_of)
    return (f"no pack knows the type {name!r}{meant(name, known)}" for name in asked if not ruleset.knows(name))


def packs(ruleset: Ruleset, asked: Iterable[str]) -> Iterator[str]:
    """What is to be said of packs that are not loaded."""
    known = sorted(domain.name for domain in ruleset.packs)
    return (f"no pack is called {name!r}{meant(name, known)}" for name in asked if name not in known)

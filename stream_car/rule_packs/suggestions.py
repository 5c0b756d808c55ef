"""Texts for the names in a problem: the names to choose from, and the one that was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def suggestion(name: str, choices: Iterable[str]) -> str:
    """Return ` Did you mean 'advisory'?` with the closest choice, or an empty string if no choice is close."""
    closest = _closest(name, choices)
    return f" Did you mean {closest!r}?" if closest else ""


def meant(name: str, choices: Iterable[str]) -> str:
    """Return the suggestion as a clause, `; did you mean 'advisory'?`, or an empty string if no choice is close."""
    closest = _closest(name, choices)
    return f"; did you mean {closest!r}?" if closest else ""


def join_names(names: Iterable[str], word: str = "and") -> str:
    """Return one or more names in quotation marks as a list in a sentence: `'a', 'b' and 'c'`."""
    *first, last = [repr(name) for name in names]
    return f"{', '.join(first)} {word} {last}" if first else last


def _closest(name: str, choices: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(name, list(choices), n=1, cutoff=0.6)), None)

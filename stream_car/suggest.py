"""Texts about names that people type: the one that was probably meant, and those to choose from."""

from collections.abc import Iterable
from difflib import get_close_matches

SIMILARITY_MIN = 0.6


def suggest(name: str, choices: Iterable[str], *, similarity_min: float = SIMILARITY_MIN) -> str | None:
    """Return the choice that is most like a name, or `None` if none is similar enough (0 to 1, as `difflib` counts)."""
    return next(iter(get_close_matches(name, list(choices), n=1, cutoff=similarity_min)), None)


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return ` Did you mean 'advisory'?` with the closest choice, or an empty string if no choice is close."""
    closest = suggest(name, choices)
    return f" Did you mean {closest!r}?" if closest is not None else ""


def join_names(names: Iterable[str], word: str = "and") -> str:
    """Return one or more names in quotation marks as a list in a sentence: `'a', 'b' and 'c'`."""
    *first, last = [repr(name) for name in names]
    return f"{', '.join(first)} {word} {last}" if first else last

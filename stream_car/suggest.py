"""Texts about names that people type: the one that was probably meant, and those to choose from."""

from collections.abc import Iterable
from difflib import get_close_matches
from string import ascii_lowercase, ascii_uppercase, digits

SIMILARITY_MIN = 0.6


def suggest(name: str, choices: Iterable[str], *, similarity_min: float = SIMILARITY_MIN) -> str | None:
    """Return the choice that is most like a name, or `None` if none is similar enough (0 to 1, as `difflib` counts)."""
    return next(iter(get_close_matches(name, list(choices), n=1, cutoff=similarity_min)), None)


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return ` Did you mean 'advisory'?` with the closest choice, or an empty string if no choice is close."""
    closest = suggest(name, choices)
    return f" Did you mean {closest!r}?" if closest is not None else ""


def one_edit_away(name: str) -> set[str]:
    """Return the texts that differ from a name by one character: left out, added, another one, or two swapped."""
    letters = f"{ascii_lowercase if name != name.upper() else ''}{ascii_uppercase if name != name.lower() else ''}"
    characters = f"{letters}{digits}-_./:@"
    splits = [(name[:at], name[at:]) for at in range(len(name) + 1)]
    edits = {head + tail[1:] for head, tail in splits if tail}
    edits |= {head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1}
    edits |= {head + character + tail[1:] for head, tail in splits if tail for character in characters}
    edits |= {head + character + tail for head, tail in splits for character in characters}
    return edits - {name, ""}


def join_names(names: Iterable[str], word: str = "and") -> str:
    """Return one or more names in quotation marks as a list in a sentence: `'a', 'b' and 'c'`."""
    *first, last = [repr(name) for name in names]
    return f"{', '.join(first)} {word} {last}" if first else last

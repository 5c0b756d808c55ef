"""How a problem names the choices there are, and the one that was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def meant(name: str, choices: Iterable[str]) -> str:
    """`; did you mean 'advisory'?`, or nothing where no choice is close."""
    near = get_close_matches(name, list(choices), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def listed(names: Iterable[str], word: str = "and") -> str:
    """`a, b and c`."""
    rest = [repr(name) for name in names]
    last = rest.pop()
    return f"{', '.join(rest)} {word} {last}" if rest else last

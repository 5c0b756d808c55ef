"""The limits of the queries of a program; those over the network are stricter.

Promise: everything here raises `InvalidRequest`, with the name of the field as its code.
"""

from collections.abc import Sequence

from stream_car.errors import InvalidRequest

K_MAX = 1000
DEPTH = 50  # anchors that relevance may propose by default
DEPTH_MAX = 1000
TEXT_MAX = 100_000
NAMES_MAX = 10_000


def require_question(text: str, k: int, depth: int, *, field: str = "text") -> None:
    """Raise for a question that cannot be answered; `field` is what the request calls its text."""
    if not text.strip():
        raise InvalidRequest(field, "The question is empty.")
    if len(text) > TEXT_MAX:
        raise InvalidRequest(field, f"The question has {len(text)} characters. At most {TEXT_MAX} are allowed.")
    if not 1 <= k <= K_MAX:
        raise InvalidRequest("k", f"k must be from 1 to {K_MAX}, not {k}.")
    if not 1 <= depth <= DEPTH_MAX:
        raise InvalidRequest("depth", f"depth must be from 1 to {DEPTH_MAX}, not {depth}.")


def require_names(names: Sequence[str], *, field: str = "names") -> None:
    """Raise for one string, whose letters would be taken for names, and for too many names."""
    if isinstance(names, str):
        raise InvalidRequest(field, "Pass a list of names, not one string.")
    if len(names) > NAMES_MAX:
        raise InvalidRequest(field, f"{len(names)} names are too many at once. At most {NAMES_MAX} are allowed.")


def parse_pairs(pairs: Sequence[str]) -> dict[str, str] | None:
    """Return the `KEY=VALUE` pairs; `None` if one key has two values, which no scope has."""
    values: dict[str, str] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if values.setdefault(key, value) != value:
            return None
    return values


def require_budget(budget: int | None) -> None:
    """Raise for a budget that allows no read."""
    if budget is not None and budget < 1:
        raise InvalidRequest("budget", f"`budget` must be at least 1, not {budget}.")

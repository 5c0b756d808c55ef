"""What may be asked for at once.

Promise: everything here raises `InvalidRequest`, with the name of the argument as its code.
"""

from collections.abc import Mapping, Sequence

from stream_car.core.scope_names import scope_parts
from stream_car.errors import InvalidRequest

K_MAX = 1000
DEPTH = 50  # anchors that relevance may propose where nobody says otherwise
DEPTH_MAX = 1000
TEXT_MAX = 100_000
NAMES_MAX = 10_000


def require(text: str, k: int, depth: int) -> None:
    """Raises for a question that cannot be put."""
    if not text.strip():
        raise InvalidRequest("query", "the question is empty; say what you look for")
    if len(text) > TEXT_MAX:
        raise InvalidRequest("query", f"the question has {len(text)} characters; at most {TEXT_MAX} are read")
    if not 1 <= k <= K_MAX:
        raise InvalidRequest("k", f"k must be from 1 to {K_MAX}, not {k}")
    if not 1 <= depth <= DEPTH_MAX:
        raise InvalidRequest("depth", f"depth must be from 1 to {DEPTH_MAX}, not {depth}")


def require_names(names: Sequence[str]) -> None:
    """Raises for what is no list of names, or too long a one."""
    require_list(names)
    if len(names) > NAMES_MAX:
        raise InvalidRequest("names", f"{len(names)} names at once are too many; ask for at most {NAMES_MAX}")


def require_list(names: Sequence[str]) -> None:
    """Raises for one string, whose letters would be taken for names."""
    if isinstance(names, str):
        raise InvalidRequest("names", "give a list of names, not one string")


def pairs_of(parts: Mapping[str, str] | str) -> list[tuple[str, str]]:
    """The `key=value` pairs of a scope that is asked for. Raises where there are none."""
    try:
        pairs = list(scope_parts(parts)) if isinstance(parts, str) else list(parts.items())
    except ValueError as error:
        raise InvalidRequest("scope", f"{error}; write KEY=VALUE, several joined by commas") from error
    if not pairs:
        raise InvalidRequest("scope", "name at least one KEY=VALUE")
    return pairs


def require_time(as_of: object) -> None:
    """Raises for what is no number of microseconds."""
    if as_of is not None and not isinstance(as_of, int):
        raise InvalidRequest("as_of", f"give `as_of` as microseconds since 1970 UTC, not as {type(as_of).__name__}")


def require_budget(budget: int | None) -> None:
    """Raises for a budget that buys nothing."""
    if budget is not None and budget < 1:
        raise InvalidRequest("budget", f"the budget must be at least 1, not {budget}")

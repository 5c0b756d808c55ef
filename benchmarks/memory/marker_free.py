"""The guard of the benchmarks: which of two sentences is newer must show by nothing but the order of arrival."""

import re
from collections.abc import Mapping

TELLS = frozenset(
    {
        "old",
        "older",
        "new",
        "newer",
        "current",
        "currently",
        "previous",
        "previously",
        "deprecated",
        "legacy",
        "outdated",
        "obsolete",
        "former",
        "formerly",
        "latest",
        "now",
        "recent",
        "recently",
        "updated",
        "changed",
        "replaced",
        "superseded",
        "anymore",
        "next",
        "today",
        "yesterday",
    }
)


def tells(text: str) -> list[str]:
    """Return the words of a text that tell its age; words that only contain one do not."""
    return [word for word in re.findall(r"[^\W\d_]+", text.lower()) if word in TELLS]


def differs_in_value_only(pair: Mapping[str, object]) -> bool:
    """Return whether `a` and `b` are the same sentence, but for the values `stale` and `gold`."""
    rests = [str(pair[side]).replace(str(pair[value]), "") for side, value in (("a", "stale"), ("b", "gold"))]
    return rests[0] == rests[1]


def is_marker_free(pair: Mapping[str, object]) -> bool:
    """Return whether nothing in a pair, nor in its question, tells which sentence is newer."""
    return differs_in_value_only(pair) and not any(tells(str(pair[name])) for name in ("a", "b", "question"))

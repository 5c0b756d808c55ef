"""The limits of what a program may ask. `api.requests` states them beside those of a service."""

from collections.abc import Sequence

from stream_car.queries.scope_values import split_pairs

K_MAX = 1000
DEPTH = 50  # anchors that relevance may propose by default
DEPTH_MAX = 1000
TEXT_MAX = 100_000
NAMES_MAX = 10_000
PATH_MAX = 4096  # of a rule pack


def parse_pairs(pairs: Sequence[str]) -> dict[str, str] | None:
    """Return the `KEY=VALUE` pairs; `None` if one key has two values, which no scope has."""
    split = split_pairs(pairs)
    values = dict(split)
    return values if len(values) == len(split) else None

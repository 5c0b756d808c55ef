"""Scopes that are selected by several keys, each with several values: any of the values of every key."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from stream_car.core.scope_names import scope_parts

Pair = tuple[str, str]
ValuesByKey = Mapping[str, set[str]]


def split_pairs(pairs: Sequence[str]) -> frozenset[Pair]:
    """Return each key and value of `KEY=VALUE` pairs; everything after the first equals sign is the value."""
    return frozenset((key, value) for key, _, value in (pair.partition("=") for pair in pairs))


def values_by_key(pairs: Iterable[Pair]) -> ValuesByKey:
    """Return the values that pairs allow for each key."""
    values: dict[str, set[str]] = {}
    for key, value in pairs:
        values.setdefault(key, set()).add(value)
    return values


def has_parts(scope: str, wanted: ValuesByKey) -> bool:
    """Return whether the name of a scope has each of these keys, with one of its values."""
    if not wanted:
        return True
    parts = dict(scope_parts(scope))
    return all(parts.get(key) in values for key, values in wanted.items())


def combinations(wanted: ValuesByKey) -> Iterator[tuple[Pair, ...]]:
    """Yield each way to give every key one of its values."""
    return product(*([(key, value) for value in sorted(values)] for key, values in sorted(wanted.items())))

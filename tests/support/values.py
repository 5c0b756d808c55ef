"""Hypothesis strategies of any value of a type: what the annotations of requests, answers and events allow."""

import types
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import Meta, Struct

LIST_MAX = 3
TEXT_MAX = 20
SAFE_INTEGER_MAX = 2**53 - 1

T = TypeVar("T")

PLAIN: dict[object, st.SearchStrategy[object]] = {
    str: st.text(max_size=TEXT_MAX),
    bytes: st.binary(max_size=TEXT_MAX),
    int: st.integers(-SAFE_INTEGER_MAX, SAFE_INTEGER_MAX),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    object: st.none() | st.booleans() | st.text(max_size=TEXT_MAX),
    datetime: st.datetimes(timezones=st.just(UTC)),
    types.NoneType: st.none(),
}


CURSORS = st.from_regex(r"[0-9a-f-]{1,9}:[0-9]{1,9}(\.[0-9]{1,9})?", fullmatch=True)


def values_of(kind: type[T]) -> st.SearchStrategy[T]:
    """Return a strategy of all values of a type. Of structs, every field varies; a `cursor` looks like one."""
    strategy: st.SearchStrategy[T] = _values(kind)  # type: ignore[assignment]  # the values of a hint have its type
    return strategy


def _structs(kind: type[Struct]) -> st.SearchStrategy[object]:
    hints = get_type_hints(kind, include_extras=True)
    fields = {name: _values(hints[name]) for name in kind.__struct_fields__}
    if "cursor" in fields:
        fields["cursor"] = CURSORS if hints["cursor"] is str else st.none() | CURSORS
    return st.builds(kind, **fields)


def _values(hint: object) -> st.SearchStrategy[object]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _limited(arguments[0], [meta for meta in arguments[1:] if isinstance(meta, Meta)])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(_values, arguments))
    if origin is tuple:
        if arguments[-1] is ...:
            return st.lists(_values(arguments[0]), max_size=LIST_MAX).map(tuple)
        return st.tuples(*map(_values, arguments))
    if origin is frozenset:
        return st.frozensets(_values(arguments[0]), max_size=LIST_MAX)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(_values(arguments[0]), _values(arguments[1]), max_size=LIST_MAX)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _structs(hint)
    return PLAIN[hint]


def _limited(hint: object, metas: list[Meta]) -> st.SearchStrategy[object]:
    """Return the values of a type that its annotations allow."""
    limits = {
        name: value
        for meta in metas
        for name in ("ge", "le", "min_length", "max_length", "pattern")
        if (value := getattr(meta, name)) is not None
    }
    if "pattern" in limits:
        return st.from_regex(str(limits["pattern"])).filter(lambda text: len(text) <= TEXT_MAX)
    if hint is int:
        return st.integers(limits.get("ge", -SAFE_INTEGER_MAX), limits.get("le", SAFE_INTEGER_MAX))
    if hint is str:
        return st.text(min_size=limits.get("min_length", 0), max_size=min(limits.get("max_length", TEXT_MAX), TEXT_MAX))
    if get_origin(hint) is tuple:
        item = _values(get_args(hint)[0])
        return st.lists(item, min_size=limits.get("min_length", 0), max_size=LIST_MAX).map(tuple)
    return _values(hint)

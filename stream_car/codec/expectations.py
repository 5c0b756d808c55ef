"""What a field of a request must be, and what it was, in words.

Promise: one wording for the library and for HTTP. The words come from the type and its limits, so they agree with what
is checked.
"""

import re
from collections.abc import Mapping, Sized
from datetime import datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from stream_car.codec.json_scan import GREATEST
from stream_car.codec.unicode import quote

NOT_BLANK = r"\S"  # the pattern of a field that must not be blank
TIME_FORMS = "an RFC 3339 time or a day, such as 2024-01-31T09:30:00Z or 2024-01-31"

_MEMBER = re.compile(r"\[[0-9]+\]$")
_SHOWN_MAX = 60
_INTEGER_BITS = 64


def must_be(place: str, expectation: str, value: object) -> str:
    """Return the sentence that a field must be something else than it is."""
    owner = _MEMBER.sub("", place)
    what = f"`{place}`" if owner == place else f"A member of `{owner}`"
    return f"{what} must {'look' if expectation.startswith('like ') else 'be'} {expectation}, not {shown(value)}."


def expected(hint: Any, value: object) -> str:
    """Return what a value of this type must be. Where several types would do, only those like `value` are described."""
    hint, metas = split_hint(hint)
    options = [option for option in options_of(hint) if option is not NoneType]
    if len(options) > 1:
        alike = [option for option in options if _is_alike(split_hint(option)[0], value)]
        return " or ".join(expected(option, value) for option in alike or options)
    hint, more = split_hint(options[0])
    return _words(hint, [*metas, *more], value)


def shown(value: object) -> str:
    """Return a value as a message shows it: short, on one line, and safe."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        if isinstance(value, float):
            return repr(value)
        return f"{value:,}" if value.bit_length() <= _INTEGER_BITS else "a larger number"
    if isinstance(value, str):
        return quote(value) if len(value) <= _SHOWN_MAX else f"a string of {len(value):,} characters"
    if isinstance(value, list | tuple | set | frozenset):
        return {0: "an empty list", 1: "a list of 1"}.get(len(value), f"a list of {len(value):,}")
    if isinstance(value, Mapping | Struct):
        return "an object"
    return with_article(type(value).__name__)


def with_article(name: str, article: str = "a") -> str:
    """Return a name after `a` or `an`, or after `A` or `An`."""
    return f"{article}{'n' if name[:1].lower() in 'aeiou' else ''} {name}"


def split_hint(hint: Any) -> tuple[Any, list[Meta]]:
    """Return a type without its annotations, and these."""
    if get_origin(hint) is not Annotated:
        return hint, []
    inner, *notes = get_args(hint)
    return inner, [note for note in notes if isinstance(note, Meta)]


def options_of(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type itself."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def hints_of(kind: type[Struct]) -> dict[str, Any]:
    """Return the types of the fields, with their limits."""
    return get_type_hints(kind, include_extras=True)


def _is_alike(hint: Any, value: object) -> bool:
    kinds = {str: str, int: int, bool: bool, tuple: list | tuple}
    kind: Any = kinds.get(get_origin(hint) or hint, Mapping | Struct if msgspec.inspect.is_struct_type(hint) else ())
    return isinstance(value, kind)


def _words(hint: Any, metas: list[Meta], value: object) -> str:
    if hint is bool:
        return "true or false"
    if hint is datetime:
        return TIME_FORMS
    if get_origin(hint) is Literal:
        return " or ".join(repr(choice) for choice in get_args(hint))
    if hint is int:
        return f"an integer{_from_to(metas)}"
    if hint is str:
        return _text_words(metas)
    if get_origin(hint) is tuple:
        size = _limit(metas, "max_length")
        is_long = isinstance(value, Sized) and not isinstance(value, str) and size is not None and len(value) > size
        least = _limit(metas, "min_length")
        if is_long:
            return f"a list of at most {size:,}"
        return "a list" if not least else f"a list of at least {least:,}"
    if msgspec.inspect.is_struct_type(hint):
        return f"an object with {' and '.join(f'`{name}`' for name in hint.__struct_fields__)}"
    return with_article(getattr(hint, "__name__", str(hint)))


def _text_words(metas: list[Meta]) -> str:
    example = next((str(meta.examples[0]) for meta in metas if meta.examples), None)
    if example is not None:
        return f"like {example}"
    least, most = _limit(metas, "min_length") or 0, _limit(metas, "max_length")
    words = "a string that is not blank" if any(meta.pattern == NOT_BLANK for meta in metas) else "a string"
    if most is None:
        return words
    joint = "," if "blank" in words else ""
    return f"{words}{joint} of {least:,} to {most:,} characters" if least else f"{words} of at most {most:,} characters"


def _from_to(metas: list[Meta]) -> str:
    least, most = _limit(metas, "ge"), _limit(metas, "le")
    if least is None:
        return ""
    return f" from {least:,} to {most:,}" if most is not None and most < GREATEST else f" of at least {least:,}"


def _limit(metas: list[Meta], name: str) -> int | None:
    return next((getattr(meta, name) for meta in reversed(metas) if getattr(meta, name) is not None), None)

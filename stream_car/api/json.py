"""Answers as JSON for programs: every field is there, times are RFC 3339, bytes are text where they can be.

Promise: what a person sees in colours a program finds here, under the names of `engine.answers`.
A default is written out, so that a reader never has to know it. Cost: about 2 us a document of an answer; how
a type is written is worked out once.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from stream_car.codec import format_time, parse_time

TIMES = frozenset({"time", "append_time", "due", "as_of"})
FEW = 8
PAIRS = frozenset({"start", "end"})  # of a run: (time, order)
_SPECIAL = TIMES | PAIRS


def plain(value: object) -> object:
    """The value as JSON knows it: objects, lists, text, numbers, booleans and null."""
    if isinstance(value, msgspec.Struct):
        return _object(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return value


def line(value: object) -> str:
    """The value as one line of JSON."""
    return msgspec.json.encode(plain(value)).decode()


def pieces(value: object) -> Iterator[bytes]:
    """The value as JSON, in pieces none of which takes long: the items of long lists one by one."""
    if isinstance(value, msgspec.Struct):
        before = b"{"
        for name in value.__struct_fields__:
            said = getattr(value, name)
            yield before + msgspec.json.encode(name) + b":"
            if isinstance(said, list | tuple) and len(said) > FEW:
                yield from _items(said)
            else:
                yield msgspec.json.encode(_field(name, said))
            before = b","
        yield b"}" if before == b"," else b"{}"
    elif isinstance(value, list | tuple):
        yield from _items(value)
    else:
        yield msgspec.json.encode(plain(value))


def _items(values: Sequence[object]) -> Iterator[bytes]:
    before = b"["
    for value in values:
        yield before + msgspec.json.encode(plain(value))
        before = b","
    yield b"]" if before == b"," else b"[]"


def _field(name: str, value: object) -> object:
    return _special(name, value) if name in _SPECIAL else plain(value)


def _special(name: str, value: object) -> object:
    if name in TIMES and isinstance(value, int):
        return format_time(value)
    if name in PAIRS and isinstance(value, tuple) and len(value) == len(("time", "order")):
        return {"time": format_time(value[0]), "order": value[1]}
    return plain(value)


class _Shape(NamedTuple):
    """What of a type's fields has to be looked at one by one; the others are JSON as they are."""

    special: tuple[str, ...]
    inner: tuple[str, ...]


_SHAPES: dict[type[msgspec.Struct], _Shape] = {}


def _object(value: msgspec.Struct) -> dict[str, object]:
    kind = type(value)
    shape = _SHAPES.get(kind) or _SHAPES.setdefault(kind, _shape(kind))
    said = msgspec.structs.asdict(value)
    for name in shape.special:
        said[name] = _special(name, said[name])
    for name in shape.inner:
        said[name] = plain(said[name])
    return said


def _shape(kind: type[msgspec.Struct]) -> _Shape:
    hints = get_type_hints(kind)
    special = tuple(name for name in kind.__struct_fields__ if name in _SPECIAL)
    inner = (name for name in kind.__struct_fields__ if name not in _SPECIAL and not _is_bare(hints[name]))
    return _Shape(special, tuple(inner))


def _is_bare(hint: object) -> bool:
    """Whether values of this type are JSON as they are."""
    if hint in (str, int, float, bool, NoneType, ...) or get_origin(hint) is Literal:
        return True
    return get_origin(hint) in (list, tuple, Union, UnionType) and all(map(_is_bare, get_args(hint)))


def _text(value: bytes) -> object:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


T = TypeVar("T")
WITH_BYTES = "append_time"  # only what a publisher sent has this beside its `value`


def read(body: bytes, kind: type[T]) -> T:
    """The value that a body spells. Raises `ValueError` where it spells none."""
    tree: object = msgspec.json.decode(body)
    return msgspec.convert(_restored(tree), kind, builtin_types=(bytes,))


def _restored(tree: object) -> object:
    if isinstance(tree, list):
        return [_restored(item) for item in tree]
    if isinstance(tree, dict):
        has_bytes = WITH_BYTES in tree
        return {name: _restored_field(name, item, has_bytes=has_bytes) for name, item in tree.items()}
    return tree


def _restored_field(name: str, item: object, *, has_bytes: bool) -> object:
    if name in TIMES and isinstance(item, str):
        return parse_time(item)
    if name in PAIRS and isinstance(item, dict):
        return parse_time(item["time"]), item["order"]
    if name == "value" and has_bytes:
        return b64decode(item["base64"]) if isinstance(item, dict) else str(item).encode()
    return _restored(item)

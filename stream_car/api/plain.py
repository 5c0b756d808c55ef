"""Answers as JSON for programs: every field is there, times are RFC 3339, bytes are text where they can be.

Promise: what a person sees in colours a program finds here, under the names of `engine.answers`.
A default is written out, so that a reader never has to know it.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from stream_car.codec import format_time

TIMES = frozenset({"time", "append_time", "due", "as_of"})
FEW = 8
PAIRS = frozenset({"start", "end"})  # of a run: (time, order)


def plain(value: object) -> object:
    """The value as JSON knows it: objects, lists, text, numbers, booleans and null."""
    if isinstance(value, msgspec.Struct):
        return {name: _field(name, getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return _text(value)
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
    if name in TIMES and isinstance(value, int):
        return format_time(value)
    if name in PAIRS and isinstance(value, tuple) and len(value) == len(("time", "order")):
        return {"time": format_time(value[0]), "order": value[1]}
    return plain(value)


def _text(value: bytes) -> object:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}

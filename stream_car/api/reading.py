"""JSON of the service as typed values again: the inverse of `api.plain`.

Promise: `read(encode(plain(value)), type(value)) == value` for every answer and every event. Fields that are
not known are left out, so that an older client reads a newer service.
"""

from base64 import b64decode
from typing import TypeVar

import msgspec

from stream_car.api.plain import PAIRS, TIMES
from stream_car.codec import parse_time

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
        return {name: _field(name, item, has_bytes=has_bytes) for name, item in tree.items()}
    return tree


def _field(name: str, item: object, *, has_bytes: bool) -> object:
    if name in TIMES and isinstance(item, str):
        return parse_time(item)
    if name in PAIRS and isinstance(item, dict):
        return parse_time(item["time"]), item["order"]
    if name == "value" and has_bytes:
        return b64decode(item["base64"]) if isinstance(item, dict) else str(item).encode()
    return _restored(item)

"""How a shard's values lie in a store: MessagePack arrays, told apart by how their key begins.

Promise: equal values have equal bytes. Whoever changes them raises `fold.FORMAT`, which is part of
the generation, so that a state of another format is never read but built anew.
"""

from collections.abc import Callable

import msgspec

from stream_car.core.members import Entry, Scope, Sheet
from stream_car.core.standing import Held
from stream_car.core.timeline import FOLDER
from stream_car.errors import Halted
from stream_car.processing.headers import FrontierHeader, Header, Rerouted
from stream_car.processing.state import Value

_encode = msgspec.msgpack.Encoder().encode
_DECODERS: dict[bytes, Callable[[bytes], Value]] = {
    b"h": msgspec.msgpack.Decoder(Header).decode,
    b"f": msgspec.msgpack.Decoder(FrontierHeader).decode,
    b"r": msgspec.msgpack.Decoder(Rerouted).decode,
    b"d:": msgspec.msgpack.Decoder(Held).decode,
    b"s:": msgspec.msgpack.Decoder(Scope).decode,
    b"w": msgspec.msgpack.Decoder(Scope).decode,
    b"p:": msgspec.msgpack.Decoder(list[Entry]).decode,
    FOLDER: msgspec.msgpack.Decoder(list[Sheet]).decode,
}


def encode_value(value: Value) -> bytes | None:
    """The bytes of a value; `None` stays `None`, which deletes."""
    return None if value is None else _encode(value)


def decode_value(key: bytes, value: bytes | None) -> Value:
    """The value under a key. Raises `Halted` (`damaged`) where the bytes are not what the key promises."""
    if value is None:
        return None
    try:
        return _DECODERS[key[:2]](value)
    except (msgspec.DecodeError, KeyError) as error:
        raise Halted(
            "damaged", f"the stored value of {key!r} cannot be read; rebuild the state from the log"
        ) from error

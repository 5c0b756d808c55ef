"""Signatures of the records that workers write for one another: forwarded documents, placements and changes.

Promise: a record is genuine if it carries a signature with the key of this installation, or if it was in its topic
before that key was made. A signature covers stream, key, value and headers, so it is good for no other record. Cost:
about 2 us per record.
"""

from collections.abc import Mapping
from hashlib import blake2b
from hmac import compare_digest

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stream_car.errors import Halted
from stream_car.ports import Message, Record

SIGNATURE = "stream-car-signature"  # always the last header of a signed record
SIGNATURE_BYTES = 16
KEY_BYTES = 32

_encode = msgspec.msgpack.Encoder().encode


class Signatures(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The key of an installation. `ends` has the end of each partition, by stream, when the key was made."""

    key: bytes
    ends: Mapping[str, tuple[int, ...]] = {}
    v: int = 1

    def __repr__(self) -> str:
        return f"Signatures(ends={self.ends})"

    def sign(self, stream: str, message: Message) -> Message:
        """Return the message with a signature as its last header."""
        signature = (SIGNATURE, self._signature(stream, message))
        return replace(message, headers=(*message.headers, signature))

    def is_signed(self, stream: str, record: Record) -> bool:
        """Return whether the last header of a record is its signature."""
        if not record.headers or record.headers[-1][0] != SIGNATURE:
            return False
        message = Message(value=record.value, key=record.key, headers=record.headers[:-1])
        return compare_digest(record.headers[-1][1], self._signature(stream, message))

    def is_older(self, stream: str, partition: int, offset: int) -> bool:
        """Return whether a record was in its topic before the key was made."""
        ends = self.ends.get(stream, ())
        return partition < len(ends) and offset < ends[partition]

    def is_genuine(self, stream: str, partition: int, record: Record) -> bool:
        """Return whether Stream-CAR wrote a record, as far as that can be known."""
        return self.is_signed(stream, record) or self.is_older(stream, partition, record.offset)

    def _signature(self, stream: str, message: Message) -> bytes:
        content = _encode((stream, message.key, message.value, message.headers))
        return blake2b(content, digest_size=SIGNATURE_BYTES, key=self.key).hexdigest().encode()


def encode_signatures(signatures: Signatures) -> bytes:
    """Return the record of the topic of keys."""
    return msgspec.json.encode(signatures)


def decode_signatures(value: bytes | None) -> Signatures:
    """Return what a record of the topic of keys holds.

    Raises:
        Halted: it cannot be read (`damaged`).
    """
    try:
        signatures = msgspec.json.decode(value or b"", type=Signatures)
    except msgspec.DecodeError as error:
        raise Halted("damaged", f"The first record of the topic of keys cannot be read: {error}.") from error
    if signatures.v != 1 or len(signatures.key) != KEY_BYTES:
        raise Halted("format", "The first record of the topic of keys has another format. Run a matching release.")
    return signatures

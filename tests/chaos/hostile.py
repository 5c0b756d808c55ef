"""What programs that are no part of an installation write to its topics: arbitrary bytes, forgeries and copies.

Promise: none of it may halt a shard, move a cursor or change an answer, except that a record of `documents` that is a
valid document counts as one.
"""

from collections.abc import Sequence
from random import Random

from stream_car.ports import Message, Record
from stream_car.processing.replay import OWN_HEADERS, REPLAY_OF
from stream_car.processing.signatures import SIGNATURE
from stream_car.processing.two_hop import FORWARDED

TOPICS = ("documents", "placements", "changes", "rejected", "keys")
BYTES_MAX = 300
NUMBERS = (
    b"9000000000000000000",
    b"9" * 32,
    b"9" * 5000,
    b"-1",
    b"",
    "²".encode(),
    b"0x10",
    b"1e9",
    b"18446744073709551616",
)
TEXTS = (
    b"",
    b"{}",
    b"[]",
    b"null",
    b'"',
    b"\x00",
    b"\xff\xfe",
    b"[" * 5000,
    b'{"id":' * 2000,
    b'{"id": "h", "type": "a", "time": 1e400}',
    b'{"id": "h", "type": "a", "time": "9999-12-31T23:59:59Z", "revision": 99999999999999999999}',
    b'{"id": "h", "retracted": "yes"}',
    b'{"id": "' + b"h" * 100_000 + b'", "type": "a", "time": "2024"}',
    b'{"id": "\\ud800", "type": "a", "time": "2024"}',
    b'{"specversion": "1.0", "id": 1, "data": {"specversion": "1.0", "data": {}}}',
)


def _bytes(random: Random) -> bytes:
    return random.choice(TEXTS) if random.random() < 0.3 else random.randbytes(random.randrange(BYTES_MAX))


def _name(random: Random) -> str:
    known = (FORWARDED, SIGNATURE, REPLAY_OF, "ce_id", "ce_type", "ce_time", "ce_specversion", "content-type", "")
    return random.choice((*known, f"{OWN_HEADERS}offset", f"{OWN_HEADERS}partition", random.randbytes(4).hex()))


def garbage(random: Random) -> Message:
    """Return arbitrary bytes as key, value and headers. A null value never names a document of publishers."""
    value = None if random.random() < 0.15 else _bytes(random)
    key = None if random.random() < 0.3 else b"h" + _bytes(random)
    headers = tuple((_name(random), _bytes(random)) for _ in range(random.choice((0, 0, 1, 2, 5))))
    return Message(value=value, key=key, headers=headers)


def forgery(random: Random, topic: str, genuine: Sequence[Record], generation: str) -> Message:
    """Return a record that claims to be Stream-CAR's: huge numbers, or the content of a genuine one with another."""
    number = random.choice(NUMBERS)
    signature = (SIGNATURE, random.randbytes(16).hex().encode())
    content = random.choice(genuine) if genuine else Record(offset=0, append_time=0, value=b"{}", headers=())
    shard = random.randrange(3)
    headers: tuple[tuple[str, bytes], ...]
    if topic == "documents":
        headers = ((FORWARDED, b"%d/" % shard + number),)
    elif topic == "rejected":
        origin = {"partition": b"%d" % (shard % 2), "offset": b"%d" % random.randrange(500)}
        facts = {"code": b"json", "reason": b"forged", "id": b"", **origin}
        headers = tuple((OWN_HEADERS + name, value) for name, value in facts.items())
    else:
        headers = (("ce_id", f"{generation}/{shard}/".encode() + number), ("ce_type", b"streamcar.frontier.changed"))
    if random.random() < 0.7:
        headers = (*headers, signature)
    return Message(value=content.value, key=content.key, headers=headers)


def copies(random: Random, genuine: Sequence[Record], count: int) -> list[Message]:
    """Return exact copies of genuine records, with their signatures; they may be sent to any partition."""
    chosen = random.choices(genuine, k=count) if genuine else []
    return [Message(value=record.value, key=record.key, headers=record.headers) for record in chosen]

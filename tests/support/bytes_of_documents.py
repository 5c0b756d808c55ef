"""The bytes of a sound document, with fields changed by value or by spelling, and what decoding them gives."""

import json

import pytest

from stream_car.codec import decode
from stream_car.core.documents import Document
from stream_car.errors import InvalidDocument

WHEN = "2024-01-02T00:00:00Z"
MICROS = 1_704_153_600_000_000
REQUIRED = {"id": "d", "type": "advisory", "time": WHEN}


def text(**fields: object) -> bytes:
    """Return a sound document with these fields added or replaced."""
    return json.dumps({**REQUIRED, **fields}).encode()


def raw(members: str) -> bytes:
    """Return a sound document with members spelled by hand."""
    return f'{{"id":"d","type":"advisory","time":"{WHEN}",{members}}}'.encode()


def scoped(value: object) -> bytes:
    """Return a sound document in the scope of a package."""
    return text(scope={"package": [value]})


def document(value: bytes) -> Document:
    """Decode a document."""
    statement = decode(value)
    assert isinstance(statement, Document)
    return statement


def code_of(value: bytes | None, key: bytes | None = None, headers: tuple[tuple[str, bytes], ...] = ()) -> str:
    """Return the code with which a record is rejected."""
    with pytest.raises(InvalidDocument) as caught:
        decode(value, key=key, headers=headers)
    return caught.value.code

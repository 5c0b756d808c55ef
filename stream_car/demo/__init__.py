"""The packaged feed of the demo, and the questions to ask of it.

Promise: the feed is the publishers' JSON, in the order of publication; the cases are real unless a
document says that it is made up.
"""

from importlib.resources import files
from io import BytesIO

import msgspec
from msgspec import Struct

from stream_car.codec import documents_in


class Question(Struct, frozen=True):
    """What to ask, why the answer is worth a look, and which documents must control it."""

    question: str
    why: str
    controlling: tuple[str, ...]


def feed() -> tuple[bytes, ...]:
    """The documents, as their publishers would send them."""
    return tuple(documents_in(BytesIO(_packaged("feed.jsonl"))))


def questions() -> tuple[Question, ...]:
    """The questions of the demo."""
    return msgspec.json.decode(_packaged("questions.json"), type=tuple[Question, ...])


def _packaged(name: str) -> bytes:
    return files("stream_car").joinpath("demo", name).read_bytes()

"""The packaged feed of the demo, and its questions.

Promise: the feed is the publishers' JSON, in the order of publication. The cases are real unless a document states that
it is made up.
"""

from importlib.resources import files
from io import BytesIO

import msgspec
from msgspec import Struct

from stream_car.codec import split_documents


class DemoQuestion(Struct, frozen=True):
    """A question, why its answer is interesting, and the ids of the documents that must control it."""

    question: str
    why: str
    controlling: tuple[str, ...]


def feed() -> tuple[bytes, ...]:
    """Return the documents as their publishers would send them."""
    return tuple(split_documents(BytesIO(_packaged("feed.jsonl"))))


def questions() -> tuple[DemoQuestion, ...]:
    """Return the questions of the demo."""
    return msgspec.json.decode(_packaged("questions.json"), type=tuple[DemoQuestion, ...])


def _packaged(name: str) -> bytes:
    return files("stream_car").joinpath("demo", name).read_bytes()

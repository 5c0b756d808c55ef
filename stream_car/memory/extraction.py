"""Extractors find what a text is about: subjects, relations and values."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from stream_car.memory.keys import MemoryKey


class Fact(Struct, frozen=True):
    """The `object` is the value of the key's relation of its subject."""

    key: MemoryKey
    object: str


class Extractor(Protocol):
    """Finds the facts in a text, without a state of its own.

    A wrong key destroys: the fact supersedes one that it has nothing to do with. A missed one only leaves a stale value
    beside the new. So an extractor returns nothing if in doubt.
    """

    def extract(self, text: str) -> Sequence[Fact]:
        """Return the facts that a text states; none if it states none for certain."""

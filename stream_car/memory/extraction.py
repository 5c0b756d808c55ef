"""Extractors find what a text is about: subjects, relations and values."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from stream_car.memory.keys import MemoryKey


class Fact(Struct, frozen=True):
    """The `object` is the value of the key's relation of its subject; `text` is the sentence, if not the whole text.

    A note is a part of a text in which no key was found. What is past was so before now: it displaces nothing newer.
    A change says that it replaces a value, and `former` which one, if it names it.
    """

    key: MemoryKey
    object: str
    text: str = ""
    is_note: bool = False
    is_past: bool = False
    is_change: bool = False
    former: str = ""


class Extractor(Protocol):
    """Finds the facts in a text, without a state of its own.

    A wrong key destroys: the fact supersedes one that it has nothing to do with. A missed one only leaves a stale value
    beside the new. So an extractor returns nothing if in doubt.
    """

    def extract(self, text: str) -> Sequence[Fact]:
        """Return the facts that a text states; none if it states none for certain."""


@runtime_checkable
class QuestionReader(Protocol):
    """An extractor that finds keys in questions too, so that `search` can look there first."""

    def keys_in_question(self, question: str) -> Sequence[MemoryKey]:
        """Return the keys that a question asks for, the likeliest first."""

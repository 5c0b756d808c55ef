"""Judges decide how two values of one key relate, where the rule alone would let the later one supersede."""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

Relation = Literal["duplicate", "merge", "contradict", "novel"]


class Judgement(Struct, frozen=True):
    """How a candidate relates to what holds; `merged_text` is required of a merge, and says all that both say."""

    relation: Relation
    merged_text: str = ""


class Judge(Protocol):
    """Compares a sentence with those that hold for the same key. It never sees those of other keys.

    A duplicate reinforces what holds. A merge supersedes it with the merged text. A contradiction supersedes it, as
    without a judge. What is novel is kept beside it, without a key.
    """

    def judge(self, candidate: str, existing: Sequence[str]) -> Judgement:
        """Return how a sentence relates to those that hold."""

"""A question with too many words, as the text index reads it."""

from collections.abc import Mapping

from msgspec import Struct

from stream_car.ranking.bm25 import TERMS_MAX, rarest


class Asked(Struct, frozen=True):
    """A question at a version of the index: the words that count, how many documents have each, and how many do not."""

    text: str
    version: int
    said: list[str]
    words: dict[str, int]
    unread: int


def asked(text: str, version: int, said: list[str], having: Mapping[str, int]) -> Asked:
    """The question, of whose words the rarest `TERMS_MAX` count."""
    words = rarest(having, TERMS_MAX)
    return Asked(text, version, said, words, sum(map(bool, having.values())) - len(words))

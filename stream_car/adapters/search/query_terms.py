"""A query as the text index reads it: which of its terms count, and how many do not."""

from collections.abc import Mapping

from msgspec import Struct

from stream_car.ranking.bm25 import TERMS_MAX, rarest


class ParsedQuery(Struct, frozen=True):
    """A query at one version of the index. `frequencies` has the terms that count, with their document frequency."""

    text: str
    version: int
    terms: list[str]  # all of them, in order and with repeats
    frequencies: dict[str, int]
    ignored: int  # terms that some document has, but that do not count


def parse_query(text: str, version: int, terms: list[str], frequencies: Mapping[str, int]) -> ParsedQuery:
    """Return the query, of whose terms the rarest `TERMS_MAX` count. `frequencies` has the terms of the query."""
    counting = rarest(frequencies, TERMS_MAX)
    return ParsedQuery(text, version, terms, counting, sum(map(bool, frequencies.values())) - len(counting))

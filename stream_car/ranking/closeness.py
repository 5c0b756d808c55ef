"""How close the best match of a query is, on a scale that is the same for every collection.

Scores of BM25 cannot be compared between collections: they grow with the number of documents and of words. Closeness is
the share of a query's information that a document has. A word that no document has counts too, since a question about
something else consists of such words, but less in a small collection, where even likely words are missing. A name that
both have, such as a package or a CVE, is close in any case. `python -m benchmarks.speed.closeness` shows how many
answers, right ones and those to questions without an answer, fall below `CLOSE`. Promise: pure.
"""

from collections.abc import Collection, Iterable, Mapping

from stream_car.ranking.analysis import terms
from stream_car.ranking.bm25 import idf

CLOSE = 0.4  # below it, nothing close was found
UNKNOWN = 0.7  # what a word that no document has weighs, as a share of its idf
SMALL = 50  # documents of a collection in which it weighs half of that
_ASKING = (
    "about any anybody can could did do does had has have how i me my our should still tell than them us we were what "
    "when where which who whom whose why would you your"
)
ASKING = frozenset((*terms(_ASKING), *terms(_ASKING, stems=False)))  # they say nothing about what is asked for


def closeness(frequencies: Mapping[str, int], documents: int, matches: Iterable[Collection[str]]) -> float:
    """Return the greatest share of a query's information that one of the matches has, from 0 to 1.

    Args:
        frequencies: for each term of the query, how many documents have it.
        documents: how many documents there are.
        matches: the terms of each match.
    """
    unknown = UNKNOWN * documents / (documents + SMALL)
    weights = {
        term: idf(documents, frequency) * (1.0 if frequency else unknown)
        for term, frequency in frequencies.items()
        if term not in ASKING
    }
    total = sum(weights.values())
    if not total:
        return 1.0  # nothing can be told from such a query
    shares = (sum(weight for term, weight in weights.items() if term in match) / total for match in matches)
    return round(max(shares, default=0.0), 4)

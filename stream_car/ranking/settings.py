"""The numbers that ranking uses, the same for every collection.

They were chosen on the dev queries of all benchmark sets together. `docs/decisions/ranking.md` explains how,
and what each of them is worth.
"""

from msgspec import Struct


class Settings(Struct, frozen=True, kw_only=True):
    """Scores are in nats: a BM25 score is read as the logarithm of the odds that a document is meant."""

    k1: float = 0.9  # how slowly repetitions of a word stop counting
    b: float = 0.4  # how much long documents are held back
    stems: bool = True  # whether words are stemmed
    pairs: float = 0.1  # what two neighbouring words add, as a share of the weight of the rarer one
    names: float = 0.5  # what a name in the query adds, as a share of its rarity
    candidates: int = 50  # documents that are scored exactly
    superseded_bonus: float = 3.0  # nats in favour of an anchor that something supersedes
    dense: float = 3.0  # nats that a cosine of one is worth, if vectors are on


SETTINGS = Settings()

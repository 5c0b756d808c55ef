"""The stores that the papers compare, as far as they need no language model. All see texts in order of arrival only.

A store ranks what it keeps for a question. `packed` is what of that fits into a prompt, the same for all.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy

from benchmarks.memory.encoders import Embedder
from stream_car.memory import FrameExtractor, Memory, estimate_tokens
from stream_car.ranking.lexical import bm25

K = 5
BUDGET_TOKENS = 200
RECENT = 5  # nearest turns of which recency takes the latest
NEAR = 0.90  # the cosine from which a gate takes two sentences for one
MERGED = 0.80  # the same for the lossy ablation


class TurnStore(Protocol):
    """What remembers turns."""

    def add(self, text: str) -> None:
        """Take a turn."""

    def rank(self, question: str) -> list[str]:
        """Return what is kept, best first."""

    def active(self) -> int:
        """Return how many facts are kept as if they held."""


class NoStore:
    """Nothing is remembered: the floor."""

    def add(self, text: str) -> None: ...

    def rank(self, question: str) -> list[str]:
        return []

    def active(self) -> int:
        return 0


class CosineStore:
    """Every turn is kept, and the nearest come first. With a `gate`, turns that are near a kept one are dropped.

    With `replaces`, the nearest kept turn goes instead: supersession by similarity.
    """

    def __init__(self, embedder: Embedder, *, gate: float | None = None, replaces: bool = False) -> None:
        self._embedder, self._gate, self._replaces = embedder, gate, replaces
        self._texts: list[str] = []
        self._rows: list[numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.float32]]] = []

    def add(self, text: str) -> None:
        [row] = self._embedder.vectors([text])
        nearest = max(range(len(self._rows)), key=lambda at: float(self._rows[at] @ row), default=None)
        if nearest is not None and self._gate is not None and float(self._rows[nearest] @ row) >= self._gate:
            if not self._replaces:
                return
            del self._texts[nearest], self._rows[nearest]
        self._texts.append(text)
        self._rows.append(row)

    def rank(self, question: str) -> list[str]:
        [row] = self._embedder.vectors([question])
        nearness = [float(kept @ row) for kept in self._rows]
        return [self._texts[at] for at in sorted(range(len(nearness)), key=lambda at: -nearness[at])]

    def active(self) -> int:
        return len(self._texts)


class WordStore:
    """Every turn is kept, and BM25 ranks them. If `recent`, the latest of the five best comes first."""

    def __init__(self, *, recent: bool = False) -> None:
        self._recent = recent
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        self._texts.append(text)

    def rank(self, question: str) -> list[str]:
        order = [int(at) for at in bm25({str(at): text for at, text in enumerate(self._texts)}).rank(question)]
        best = sorted(order[:RECENT], reverse=True) if self._recent else order[:RECENT]
        return [self._texts[at] for at in [*best, *order[RECENT:]]]

    def active(self) -> int:
        return len(self._texts)


class MemoryStore:
    """`stream_car.memory`, without a key from outside.

    `retains` keeps every turn beside the others (MemStrata's ablation D.1b). A `merger` is the lossy ablation (D.1): a
    turn that is near a kept one about another key is merged away.
    """

    def __init__(self, *, retains: bool = False, merger: Embedder | None = None) -> None:
        self.memory = Memory(extractor=None if retains else FrameExtractor())
        self._merger = CosineStore(merger, gate=MERGED) if merger is not None else None
        self._frames, self._keys = FrameExtractor(), set[str]()

    def add(self, text: str) -> None:
        if self._merger is not None:
            before = self._merger.active()
            self._merger.add(text)
            keys = {str(fact.key) for fact in self._frames.extract(text) if not fact.is_note}
            is_known = bool(keys & self._keys)
            self._keys |= keys
            if self._merger.active() == before and not is_known:
                return
        self.memory.add(text)

    def rank(self, question: str) -> list[str]:
        return [item["memory"] for item in self.memory.search(question, limit=2 * K)["results"]]

    def active(self) -> int:
        return len(self.memory.get_all(limit=10_000)["results"])


def packed(ranked: Sequence[str]) -> list[str]:
    """Return the best that fit into a prompt: at most `K`, of `BUDGET_TOKENS` together."""
    texts: list[str] = []
    for text in ranked[:K]:
        if sum(map(estimate_tokens, [*texts, text])) <= BUDGET_TOKENS:
            texts.append(text)
    return texts

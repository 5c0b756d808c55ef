"""What the engine is compared with: the paper's systems.

Promise: each is a ranking of documents for a question. Only those that say so (`gold`) look at what is
true of the question; the others are handed its words alone. None touches the engine; the one that applies
rules asks `core.authority`, the definitions themselves.
"""

from collections.abc import Callable, Mapping, Sequence
from math import comb

from msgspec import Struct

from benchmarks.paper.entities import Entities, without_repeats
from benchmarks.paper.sets import Material, Question
from stream_car.core import definitions
from stream_car.core.documents import Document
from stream_car.core.rules import Ruleset
from stream_car.ranking.lexical import LexicalRanker, bm25, tfidf

Rank = Callable[[str, int | None], list[str]]  # words of a question, how many; None: all that it can rank
POOL = 20  # documents that a re-ranker may choose from


class System(Struct, frozen=True, kw_only=True):
    """A system under comparison. `rank` is given the question's words only, unless it says `gold`.

    The set's own scorer reads an answer off the documents in force: by all rules, or with `by_case` (the paper's
    row without RSSG) by those that were applied within the question's own case.
    """

    name: str
    rank: Callable[[Question, int | None], list[str]]
    gold: bool = False
    by_case: bool = False
    applies: Callable[[Question], bool] = lambda question: True


def blind(rank: Rank) -> Callable[[Question, int | None], list[str]]:
    """A ranking that sees nothing of a question but its words."""
    return lambda question, limit: rank(question.text, limit)


class Bench:
    """The baselines over one set; what several need is made once."""

    def __init__(self, material: Material, ruleset: Ruleset) -> None:
        self.material = material
        self.ruleset = ruleset
        self.checks = 0  # of pairs by one rule each, that the RSSG has made
        texts = {name: one.text for name, one in material.documents.items()}
        self.bm25: LexicalRanker = bm25(texts)
        self.tfidf: LexicalRanker = tfidf(texts)
        self.entities = Entities(material.documents.values())

    def systems(self) -> list[System]:
        """All that need no model."""
        return [
            System(name="BM25", rank=blind(self.bm25.rank)),
            System(name="TF-IDF", rank=blind(self.tfidf.rank)),
            System(name="regex probe", rank=blind(self.probe), applies=lambda one: bool(self.entities.named(one.text))),
            System(name="two-stage", rank=blind(self.two_stage), by_case=True),
            System(name="two-stage + RSSG", rank=blind(self.with_rssg)),
            System(name="oracle", rank=self.oracle, gold=True),
        ]

    def probe(self, text: str, limit: int | None) -> list[str]:
        """The regex entity probe: documents of the entities that the question names, the latest first."""
        return self.entities.matching(self.entities.named(text))[:limit]

    def two_stage(self, text: str, limit: int | None) -> list[str]:
        """Anchors by BM25, then `two_stage_over` them."""
        return self.two_stage_over(self.bm25.rank, text, limit)

    def two_stage_over(self, anchors: Rank, text: str, limit: int | None) -> list[str]:
        """Anchors by some ranking; of each what is later in its scope goes first; then the rest as ranked."""
        ranked = anchors(text, limit if limit is None else max(limit, self._depth))
        found = self._probed(text, ranked[: self._depth])
        return without_repeats([one for anchor in found for one in self.entities.after(anchor)], ranked)[:limit]

    def with_rssg(self, text: str, limit: int | None) -> list[str]:
        """Two-stage, then the rules over each scope it found: of what is later, what is in force goes first."""
        ranked = self.bm25.rank(text, limit if limit is None else max(limit, self._depth))
        promoted: list[str] = []
        for anchor in self._probed(text, ranked[: self._depth]):
            later = self.entities.after(anchor)
            self.checks += comb(len(later) + 1, 2) * len(self.ruleset.rules)
            promoted += without_repeats(self._in_force(later), later)
        return without_repeats(promoted, ranked)[:limit]

    def oracle(self, question: Question, limit: int | None) -> list[str]:
        """Gold first: what a perfect retriever would do."""
        return without_repeats(question.gold, question.chain)[:limit]

    @property
    def _depth(self) -> int:
        return self.material.collection.depth

    def _probed(self, text: str, anchors: Sequence[str]) -> list[str]:
        """The anchors whose entities the question names; all of them where it names none."""
        named = self.entities.named(text)
        about = [one for one in anchors if self.entities.is_about(one, named)]
        return about if named and about else list(anchors)

    def _in_force(self, bucket: Sequence[str]) -> list[str]:
        """The members of a bucket that no other member voids: the Retrieved-Set Supersession Graph."""
        documents = [self.material.documents[name] for name in bucket]
        return [one.id for one in documents if not any(self._voids(other, one) for other in documents)]

    def _voids(self, later: Document, earlier: Document) -> bool:
        return definitions.voids(later=later, earlier=earlier, ruleset=self.ruleset) is not None


def dense_rerank(ranked: Sequence[str], above: Mapping[str, frozenset[str]], limit: int | None) -> list[str]:
    """The paper's DenseRerank: superseders of what is in the pool go first, by gold edges, if the pool has them."""
    pool = ranked[:POOL]
    promoted = [new for old in pool for new in pool if new in above.get(old, frozenset())]
    return without_repeats(promoted, ranked)[:limit]

"""The systems of the paper that the engine is compared with.

Promise: each system ranks documents for a question. Only those marked `gold` see what is true of the question; the
others get its words alone. None uses the engine; the one that applies rules uses `core.definitions`, the definitions
themselves.
"""

from collections.abc import Callable, Mapping, Sequence
from math import comb

from msgspec import Struct

from benchmarks.paper.entities import Entities, without_repeats
from benchmarks.paper.sets import Material, Question
from benchmarks.paper.tfidf import tfidf
from stream_car.core import definitions
from stream_car.core.documents import Document
from stream_car.core.rules import Ruleset
from stream_car.ranking.lexical import LexicalRanker, bm25

Ranker = Callable[[str, int | None], list[str]]  # the words of a question, how many documents (`None`: all)
POOL = 20  # documents that a re-ranker may choose from


class System(Struct, frozen=True, kw_only=True):
    """A system under comparison. Unless it is marked `gold`, `rank` sees only the question's words.

    The set's own scorer derives an answer from the documents in force: by all rules or, with `by_case` (the paper's row
    without RSSG), by those applied within the question's own case.
    """

    name: str
    rank: Callable[[Question, int | None], list[str]]
    gold: bool = False
    by_case: bool = False
    applies: Callable[[Question], bool] = lambda question: True


def blind(rank: Ranker) -> Callable[[Question, int | None], list[str]]:
    """Return a ranking of questions that sees only their words."""
    return lambda question, limit: rank(question.text, limit)


class Baselines:
    """The baselines on one set. What several need is computed once."""

    def __init__(self, material: Material, ruleset: Ruleset) -> None:
        self.material = material
        self.ruleset = ruleset
        self.checks = 0  # pairs of documents checked by a rule, over all calls of the RSSG
        texts = {name: document.text for name, document in material.documents.items()}
        self.bm25: LexicalRanker = bm25(texts)
        self.tfidf: LexicalRanker = tfidf(texts)
        self.entities = Entities(material.documents.values())

    def systems(self) -> list[System]:
        """Return the systems that need no model."""
        return [
            System(name="BM25", rank=blind(self.bm25.rank)),
            System(name="TF-IDF", rank=blind(self.tfidf.rank)),
            System(name="regex probe", rank=blind(self.probe), applies=self._can_be_probed),
            System(name="two-stage", rank=blind(self.two_stage), by_case=True),
            System(name="two-stage + RSSG", rank=blind(self.with_rssg)),
            System(name="oracle", rank=self.oracle, gold=True),
        ]

    def _can_be_probed(self, question: Question) -> bool:
        return bool(self.entities.named_in(question.text))

    def probe(self, text: str, limit: int | None) -> list[str]:
        """Rank by the regex entity probe: documents of the entities that the question names, latest first."""
        return self.entities.matching(self.entities.named_in(text))[:limit]

    def two_stage(self, text: str, limit: int | None) -> list[str]:
        """Rank by `two_stage_over` anchors of BM25."""
        return self.two_stage_over(self.bm25.rank, text, limit)

    def two_stage_over(self, anchors: Ranker, text: str, limit: int | None) -> list[str]:
        """Rank the later documents of each anchor's scope first, then the rest in the order of the anchors' ranking."""
        ranked = anchors(text, limit if limit is None else max(limit, self._depth))
        probed = self._probed(text, ranked[: self._depth])
        later = [document for anchor in probed for document in self.entities.after(anchor)]
        return without_repeats(later, ranked)[:limit]

    def with_rssg(self, text: str, limit: int | None) -> list[str]:
        """Rank in two stages with rules: of the later documents of each scope, those in force go first."""
        ranked = self.bm25.rank(text, limit if limit is None else max(limit, self._depth))
        promoted: list[str] = []
        for anchor in self._probed(text, ranked[: self._depth]):
            later = self.entities.after(anchor)
            self.checks += comb(len(later) + 1, 2) * len(self.ruleset.rules)
            promoted += without_repeats(self._in_force(later), later)
        return without_repeats(promoted, ranked)[:limit]

    def oracle(self, question: Question, limit: int | None) -> list[str]:
        """Rank as a perfect retriever would: gold first."""
        return without_repeats(question.gold, question.chain)[:limit]

    @property
    def _depth(self) -> int:
        return self.material.collection.depth

    def _probed(self, text: str, anchors: Sequence[str]) -> list[str]:
        """Return the anchors whose entities the question names, or all anchors if it names none."""
        named = self.entities.named_in(text)
        about = [anchor for anchor in anchors if self.entities.is_about(anchor, named)]
        return about if named and about else list(anchors)

    def _in_force(self, bucket: Sequence[str]) -> list[str]:
        """Return the members of a bucket that no other member voids: the Retrieved-Set Supersession Graph."""
        documents = [self.material.documents[name] for name in bucket]
        return [each.id for each in documents if not any(self._voids(other, each) for other in documents)]

    def _voids(self, later: Document, earlier: Document) -> bool:
        return definitions.voids(later=later, earlier=earlier, ruleset=self.ruleset) is not None


def dense_rerank(ranked: Sequence[str], superseders: Mapping[str, frozenset[str]], limit: int | None) -> list[str]:
    """Rank by the paper's DenseRerank: if the pool has superseders (by gold edges) of its members, they go first."""
    pool = ranked[:POOL]
    promoted = [new for old in pool for new in pool if new in superseders.get(old, frozenset())]
    return without_repeats(promoted, ranked)[:limit]

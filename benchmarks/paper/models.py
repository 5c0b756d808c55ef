"""The models that can take part, and the systems that are not run without them.

Promise: nothing is downloaded, and the benchmark runs without any model. What was not run is reported.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from benchmarks.paper.baselines import POOL, Baselines, System, blind, dense_rerank
from benchmarks.paper.entities import without_repeats
from stream_car.ports import Encoder

CrossEncoder = Callable[[str, Sequence[str]], Sequence[float]]  # scores a question against each of some texts
Generator = Callable[[str], str]  # a prompt to a text

HYPOTHESIS = (
    "Write the release note, ruling or notice that would answer this question, in at most a hundred words. "
    "Question: {question}"
)
BATCH = 64
NEEDS_ENCODER = "an encoder (--encoder)"
NEEDS_CROSS_ENCODER = "a cross-encoder (--cross-encoder)"
NEEDS_GENERATOR = "a text generator (--generator)"
OVER_DENSE = "two-stage, dense anchors"


class MissingSystem(Struct, frozen=True):
    """A system that was not run, and what it needs."""

    system: str
    needs: str


class CachingEncoder:
    """An encoder that encodes each text once."""

    def __init__(self, encoder: Encoder) -> None:
        self.name = encoder.name
        self._encoder = encoder
        self._vectors: dict[str, bytes] = {}

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        for at in range(0, len(new), BATCH):
            batch = new[at : at + BATCH]
            self._vectors.update(zip(batch, self._encoder.encode(batch), strict=True))
        return [self._vectors[text] for text in texts]


class DenseRanker:
    """Ranks documents by the meaning of their texts: the cosine of vectors, comparing every document."""

    def __init__(self, encoder: Encoder, texts: Mapping[str, str]) -> None:
        import numpy  # installed with every encoder

        self.encoder = encoder
        self.ids = list(texts)
        self._read = partial(numpy.frombuffer, dtype="<f4")
        self._vectors = numpy.stack([self._read(vector) for vector in encoder.encode(list(texts.values()))])
        self._rankings: dict[str, list[str]] = {}

    def rank(self, text: str, limit: int | None) -> list[str]:
        """Return the nearest documents, or all, nearest first; ties in the order of the documents."""
        if text not in self._rankings:
            [vector] = self.encoder.encode([text])
            distances = -(self._vectors @ self._read(vector))
            self._rankings[text] = [self.ids[index] for index in distances.argsort(kind="stable")]
        return self._rankings[text][:limit]


class Models(Struct, kw_only=True):
    """The available models. The first encoder takes the place of the paper's MiniLM."""

    encoders: Mapping[str, Encoder] = {}
    cross: CrossEncoder | None = None
    writer: Generator | None = None

    def systems(self, baselines: Baselines) -> tuple[list[System], tuple[MissingSystem, ...]]:
        """Return the systems that these models allow on a set, and those that they do not."""
        texts = {name: document.text for name, document in baselines.material.documents.items()}
        rankers = {name: DenseRanker(encoder, texts) for name, encoder in self.encoders.items()}
        systems = [System(name=f"dense ({name})", rank=blind(ranker.rank)) for name, ranker in rankers.items()]
        missing: list[MissingSystem] = []
        dense = next(iter(rankers.values()), None)
        needs_encoder = "" if dense is not None else f" and {NEEDS_ENCODER}"
        if dense is None:
            names = ("dense", "dense re-rank, gold edges", OVER_DENSE)
            missing += [MissingSystem(name, NEEDS_ENCODER) for name in names]
        else:
            systems += [_with_gold_edges(dense, baselines), _with_dense_anchors(dense, baselines)]
        if dense is None or self.cross is None:
            missing.append(MissingSystem("cross-encoder", f"{NEEDS_CROSS_ENCODER}{needs_encoder}"))
        else:
            systems.append(_with_cross_encoder(dense, self.cross, baselines, texts))
        if dense is None or self.writer is None:
            missing.append(MissingSystem("HyDE", f"{NEEDS_GENERATOR}{needs_encoder}"))
        else:
            systems.append(_with_hypotheses(dense, self.writer))
        return systems, tuple(missing)


def _with_gold_edges(dense: DenseRanker, baselines: Baselines) -> System:
    superseders = baselines.material.superseders
    return System(
        name="dense re-rank, gold edges",
        rank=lambda question, limit: dense_rerank(
            dense.rank(question.text, None if limit is None else max(limit, POOL)), superseders, limit
        ),
        gold=True,
    )


def _with_dense_anchors(dense: DenseRanker, baselines: Baselines) -> System:
    rank = partial(baselines.two_stage_over, dense.rank)
    return System(name=OVER_DENSE, rank=blind(rank), by_case=True)


def _with_cross_encoder(
    dense: DenseRanker, score: CrossEncoder, baselines: Baselines, texts: Mapping[str, str]
) -> System:
    def rank(text: str, limit: int | None) -> list[str]:
        pool = without_repeats(baselines.bm25.rank(text, POOL), dense.rank(text, POOL))
        scored = dict(zip(pool, score(text, [texts[name] for name in pool]), strict=True))
        return sorted(pool, key=lambda name: -scored[name])[:limit]

    return System(name="cross-encoder", rank=blind(rank))


def _with_hypotheses(dense: DenseRanker, generate: Generator) -> System:
    hypotheses: dict[str, str] = {}

    def rank(text: str, limit: int | None) -> list[str]:
        if text not in hypotheses:
            hypotheses[text] = generate(HYPOTHESIS.format(question=text))
        return dense.rank(hypotheses[text], limit)

    return System(name="HyDE", rank=blind(rank))

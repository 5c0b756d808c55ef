"""What a model must offer to take part, and what is not run where there is none.

Promise: nothing is loaded from elsewhere, and the bench runs without any model; what is left out is said.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from benchmarks.paper.baselines import POOL, Bench, System, blind, dense_rerank
from benchmarks.paper.entities import without_repeats
from stream_car.ports import Encoder

Scoring = Callable[[str, Sequence[str]], Sequence[float]]  # a cross-encoder: a question against each of some texts
Writing = Callable[[str], str]  # a generator: a prompt to a text

HYPOTHESIS = (
    "Write the release note, ruling or notice that would answer this question, in at most a hundred words. "
    "Question: {question}"
)


BATCH = 64


class Needed(Struct, frozen=True):
    """A system that was not run, and what it needs."""

    system: str
    needs: str


class Remembering:
    """An encoder that encodes a text once, however many ask."""

    def __init__(self, encoder: Encoder) -> None:
        self.name = encoder.name
        self._encoder = encoder
        self._known: dict[str, bytes] = {}

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        """A vector for each text."""
        fresh = list(dict.fromkeys(text for text in texts if text not in self._known))
        for at in range(0, len(fresh), BATCH):
            batch = fresh[at : at + BATCH]
            self._known.update(zip(batch, self._encoder.encode(batch), strict=True))
        return [self._known[text] for text in texts]


class Dense:
    """Documents by the meaning of their texts: the cosine of vectors, every document compared."""

    def __init__(self, encoder: Encoder, texts: Mapping[str, str]) -> None:
        import numpy  # whoever has an encoder has it

        self.encoder = encoder
        self.ids = list(texts)
        self._read = partial(numpy.frombuffer, dtype="<f4")
        self._vectors = numpy.stack([self._read(vector) for vector in encoder.encode(list(texts.values()))])
        self._seen: dict[str, list[str]] = {}

    def rank(self, text: str, limit: int | None) -> list[str]:
        """The nearest documents, or all, nearest first; equals in the order of the documents."""
        if text not in self._seen:
            [asked] = self.encoder.encode([text])
            far = -(self._vectors @ self._read(asked))
            self._seen[text] = [self.ids[place] for place in far.argsort(kind="stable")]
        return self._seen[text][:limit]


class Models(Struct, kw_only=True):
    """The models at hand; the first encoder stands for the paper's MiniLM."""

    encoders: Mapping[str, Encoder] = {}
    cross: Scoring | None = None
    writer: Writing | None = None

    def systems(self, bench: Bench) -> tuple[list[System], tuple[Needed, ...]]:
        """The systems that these models allow on a set, and those that they do not."""
        texts = {name: one.text for name, one in bench.material.documents.items()}
        dense = {name: Dense(encoder, texts) for name, encoder in self.encoders.items()}
        found = [System(name=f"dense ({name})", rank=blind(one.rank)) for name, one in dense.items()]
        needs: list[Needed] = []
        first = next(iter(dense.values()), None)
        if first is None:
            needs += [Needed(name, ENCODER) for name in ("dense", "dense re-rank, gold edges", OVER_DENSE)]
        else:
            found += [_with_gold(first, bench), _over(first, bench)]
        if first is None or self.cross is None:
            needs.append(Needed("cross-encoder", f"{CROSS}{'' if first is not None else ' and ' + ENCODER}"))
        else:
            found.append(_crossed(first, self.cross, bench, texts))
        if first is None or self.writer is None:
            needs.append(Needed("HyDE", f"{WRITER}{'' if first is not None else ' and ' + ENCODER}"))
        else:
            found.append(_hypothetical(first, self.writer))
        return found, tuple(needs)


ENCODER = "an encoder (--encoder)"
OVER_DENSE = "two-stage, dense anchors"
CROSS = "a cross-encoder (--cross-encoder)"
WRITER = "a text generator (--generator)"


def _with_gold(dense: Dense, bench: Bench) -> System:
    above = bench.material.above
    return System(
        name="dense re-rank, gold edges",
        rank=lambda question, limit: dense_rerank(
            dense.rank(question.text, None if limit is None else max(limit, POOL)), above, limit
        ),
        gold=True,
    )


def _over(dense: Dense, bench: Bench) -> System:
    def rank(text: str, limit: int | None) -> list[str]:
        return bench.two_stage_over(dense.rank, text, limit)

    return System(name=OVER_DENSE, rank=blind(rank), by_case=True)


def _crossed(dense: Dense, score: Scoring, bench: Bench, texts: Mapping[str, str]) -> System:
    def rank(text: str, limit: int | None) -> list[str]:
        pool = without_repeats(bench.bm25.rank(text, POOL), dense.rank(text, POOL))
        scored = dict(zip(pool, score(text, [texts[name] for name in pool]), strict=True))
        return sorted(pool, key=lambda name: -scored[name])[:limit]

    return System(name="cross-encoder", rank=blind(rank))


def _hypothetical(dense: Dense, write: Writing) -> System:
    written: dict[str, str] = {}

    def rank(text: str, limit: int | None) -> list[str]:
        if text not in written:
            written[text] = write(HYPOTHESIS.format(question=text))
        return dense.rank(written[text], limit)

    return System(name="HyDE", rank=blind(rank))

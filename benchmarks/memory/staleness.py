"""Which value a store gives after facts have changed, judged without a language model.

Forced to answer, a reader without a sense of time takes the first sentence; one that may abstain does so if the packed
sentences disagree or say nothing. An empty answer is an error of its own, never a success.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

from msgspec import Struct

from benchmarks.memory.blind_spot import sentences
from benchmarks.memory.encoders import Embedder
from benchmarks.memory.stores import (
    MERGED,
    NEAR,
    CosineStore,
    MemoryStore,
    NoStore,
    TurnStore,
    WordStore,
    packed,
)
from stream_car.memory import Memory

Line = Mapping[str, object]
Given = Literal["gold", "stale", "both", "neither"]
Systems = Mapping[str, Callable[[], TurnStore]]
OURS, KEYED = "Stream-CAR", "Stream-CAR, keys given"
GROWTH = tuple(tenth / 10 for tenth in range(1, 11))  # the shares of turns at which active facts are counted
SINGLE: tuple[Given, ...] = ("gold", "stale", "neither")
FAMILIES = ("code_mutation", "config_migration", "dependency_bump", "api_evolution")


class Outcome(Struct, frozen=True, kw_only=True):
    """What a store gave: the first sentence and the packed ones, and how many of its facts are active."""

    first: tuple[Given, ...]
    context: tuple[Given, ...]
    turns: int
    active: int
    tokens: float = 0.0
    growth: tuple[float, ...] = ()

    def share(self, what: Given, *, forced: bool) -> float:
        """Return how often the first sentence, or else all the packed ones, gave this."""
        given = self.first if forced else self.context
        return given.count(what) / (len(given) or 1)

    @property
    def compression(self) -> float:
        """The share of turns that are no active fact, in percent."""
        return 100 * (1 - self.active / (self.turns or 1))


def systems(embedders: Sequence[Embedder]) -> Systems:
    """Return the stores to compare, by name, each made anew."""
    stores: dict[str, Callable[[], TurnStore]] = {"no memory": NoStore}
    for embedder in embedders:
        stores[f"cosine, {embedder.name}"] = partial(CosineStore, embedder)
    stores |= {"BM25": WordStore, "recency over BM25": partial(WordStore, recent=True)}
    best = embedders[-1]
    stores |= {
        f"gate {NEAR}, drops new": partial(CosineStore, best, gate=NEAR),
        f"gate {NEAR}, replaces old": partial(CosineStore, best, gate=NEAR, replaces=True),
        OURS: MemoryStore,
        f"{OURS}, retain all": partial(MemoryStore, retains=True),
        f"{OURS}, lossy ({MERGED})": partial(MemoryStore, merger=best),
    }
    return stores


def evolving(pairs: Sequence[Line], make: Callable[[], TurnStore]) -> Outcome:
    """Give a store every `a`, then every `b`, and ask the questions."""
    store = make()
    growth: list[float] = []
    turns = [str(pair[side]) for side in ("a", "b") for pair in pairs]
    for fed, turn in enumerate(turns, 1):
        store.add(turn)
        if len(growth) < len(GROWTH) and fed >= GROWTH[len(growth)] * len(turns):
            growth.append(store.active())
    first: list[Given] = []
    context: list[Given] = []
    tokens = 0
    for pair in pairs:
        texts = packed(store.rank(str(pair["question"])))
        sides = str(pair["a"]), str(pair["b"])
        first.append(_judged(texts[:1], *sides))
        context.append(_judged(texts, *sides))
        tokens += sum(len(text.encode()) for text in texts) // 4
    return Outcome(
        first=tuple(first),
        context=tuple(context),
        turns=len(turns),
        active=store.active(),
        tokens=tokens / (len(pairs) or 1),
        growth=tuple(count / len(turns) for count in growth),
    )


def kept(pairs: Sequence[Line], make: Callable[[], TurnStore]) -> tuple[int, int]:
    """Return how many of the facts of look-alike pairs a store still ranks after taking all, and how many there are."""
    store = make()
    turns = [str(pair[side]) for pair in pairs for side in ("a", "b")]
    for turn in turns:
        store.add(turn)
    return sum(any(_is_of(text, turn) for text in store.rank(turn)) for turn in turns), len(turns)


def facts24(lines: Sequence[Line], make: Callable[[], TurnStore]) -> Outcome:
    """Give a store every fact and then its update, and ask for the values."""
    pairs = [
        {"a": old, "b": new, "question": question} for old, new, _, question in (sentences(line) for line in lines)
    ]
    return evolving(pairs, make)


def facts24_keyed(lines: Sequence[Line]) -> Outcome:
    """The same for a memory that is told the key of each fact."""
    first: list[Given] = []
    with Memory() as memory:
        for value in ("old", "new"):
            for line in lines:
                key = f"{line['subject']}::{line['relation']}"
                text = f"{line['subject']} {line['relation']}: {line[value]}"
                memory.add(text, key=key, object=str(line[value]))
        for line in lines:
            old, new, _, question = sentences(line)
            results = memory.search(question, limit=1)["results"]
            first.append(_judged([item["memory"] for item in results], old, new))
        active = len(memory.get_all()["results"])
    return Outcome(first=tuple(first), context=tuple(first), turns=2 * len(lines), active=active)


def _judged(texts: Sequence[str], stale: str, gold: str) -> Given:
    has_gold, has_stale = (any(_is_of(text, turn) for text in texts) for turn in (gold, stale))
    return "both" if has_gold and has_stale else "gold" if has_gold else "stale" if has_stale else "neither"


def _is_of(text: str, turn: str) -> bool:
    """Return whether a sentence is a turn: memories may lack its full stop."""
    return text.strip().rstrip(".") == turn.strip().rstrip(".")

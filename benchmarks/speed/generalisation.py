"""Whether the ranking's numbers hold beyond the questions that they were chosen on: `... generalisation DATA`.

Two checks on the dev questions. *Folds*: other numbers are tried on four fifths of every set, and the best of
them judged on the fifth part, against the shipped ones there. *Other words*: the same questions in capitals,
without stop words, wrapped in politeness, with a word lost, with letters swapped. Every draw is seeded.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.paper.sets import COLLECTIONS
from benchmarks.speed.answers import Case, K
from stream_car.ranking.analysis import STOP_WORDS
from stream_car.ranking.settings import SETTINGS, Settings

FOLDS = 5
TRIALS = 20  # ways to cut every set into folds
DRAWN = 40  # settings drawn from the grid
GRID: Mapping[str, Sequence[float]] = {
    "k1": (0.6, 0.9, 1.2, 1.6),
    "b": (0.2, 0.4, 0.75),
    "pairs": (0.0, 0.1, 0.3),
    "names": (0.25, 0.5, 1.0),
    "moved": (2.0, 3.0, 4.0),
}
Right = Sequence[bool]  # question by question


def drawn() -> list[Settings]:
    """The shipped settings, then some of the grid."""
    every = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]
    some = Random(1).sample(every, DRAWN)
    return [SETTINGS, *(replace(SETTINGS, **values) for values in some)]


class Folded(Struct, frozen=True):
    """Means over folds, of the mean over sets: the best settings where they were chosen, the same on other
    questions, and the shipped ones there."""

    chosen: float
    elsewhere: float
    shipped: float


def folded(right: Sequence[Sequence[Right]], ids: Sequence[Sequence[str]]) -> Folded:
    """Of `right[settings][set][question]`. A question that several sets have is in the same fold of each."""
    sums = [0.0, 0.0, 0.0]
    for trial in range(TRIALS):
        ties = Random(trial)
        parts = [[Random(f"{trial} {one}").randrange(FOLDS) for one in some] for some in ids]
        for fold in range(FOLDS):
            inside = [_mean_of_sets(one, parts, fold, is_within=False) for one in right]
            best = max(range(len(right)), key=lambda at: (inside[at], ties.random()))
            outside = [_mean_of_sets(right[at], parts, fold, is_within=True) for at in (best, 0)]
            sums = [one + other for one, other in zip(sums, (inside[best], *outside), strict=True)]
    return Folded(*(one / (TRIALS * FOLDS) for one in sums))


def _mean_of_sets(right: Sequence[Right], parts: Sequence[Sequence[int]], fold: int, *, is_within: bool) -> float:
    means = []
    for some, where in zip(right, parts, strict=True):
        chosen = [one for one, part in zip(some, where, strict=True) if (part == fold) is is_within]
        means.append(sum(chosen) / len(chosen))
    return sum(means) / len(means)


def plain(at: int, words: Sequence[str]) -> bool:
    """A word of small letters that says something: no name, no number, no stop word."""
    word = words[at].strip(".,:;?!'\"")
    return len(word) >= 5 and word.isalpha() and word.islower() and word not in STOP_WORDS


def swapped(text: str, random: Random, share: float) -> str:
    """Two neighbouring letters change places in a share of the plain words, in one at least."""
    words = text.split(" ")
    places = [at for at in range(len(words)) if plain(at, words)]
    for at in random.sample(places, min(len(places), max(1, round(share * len(places))))):
        inner = random.randrange(1, len(words[at]) - 2)
        words[at] = words[at][:inner] + words[at][inner + 1] + words[at][inner] + words[at][inner + 2 :]
    return " ".join(words)


def shortened(text: str, random: Random) -> str:
    """One plain word is lost."""
    words = text.split(" ")
    places = [at for at in range(len(words)) if plain(at, words)]
    lost = random.choice(places) if places else -1
    return " ".join(word for at, word in enumerate(words) if at != lost)


OTHER_WORDS: Mapping[str, Callable[[str, Random], str]] = {
    "as asked": lambda text, _: text,
    "CAPITALS": lambda text, _: text.upper(),
    "no stop words": lambda text, _: " ".join(word for word in text.split() if word.lower() not in STOP_WORDS),
    "polite": lambda text, _: f"Good morning, could you please tell me what you know about this? {text} Many thanks",
    "a word lost": shortened,
    "a typing error": lambda text, random: swapped(text, random, 0.0),
    "every fifth word mistyped": lambda text, random: swapped(text, random, 0.2),
}


def right(case: Case, reworded: Callable[[str, Random], str]) -> Iterator[bool]:
    """Question by question, whether its answer is right when it is asked in these words."""
    for one in case.questions:
        yield case.is_right(one, case.engine.query(reworded(one.text, Random(one.id)), k=K))


def main(data: str) -> int:
    """Print what holds."""
    settings = drawn()
    found: list[list[Right]] = [[] for _ in settings]
    ids: list[list[str]] = []
    for collection in COLLECTIONS:
        case = Case(Path(data), collection, SETTINGS)
        ids.append([one.id for one in case.questions])
        for name, reworded in OTHER_WORDS.items():
            count = sum(right(case, reworded))
            print(f"{case.title} | {name} | {count} of {len(case.questions)}", flush=True)
        for one, sets in zip(settings, found, strict=True):
            case.use(one)
            sets.append(list(case.right()))
        case.engine.close()
    told = folded(found, ids)
    print(f"folds | chosen {told.chosen:.4f} | elsewhere {told.elsewhere:.4f} | shipped there {told.shipped:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

"""Whether the ranking settings generalize beyond the questions used to choose them: `... generalisation DATA`.

Two checks on the dev questions. *Folds*: other settings are tried on four fifths of every set, and the best of them is
compared with the shipped ones on the last fifth. *Other words*: the same questions in capitals, without stop words,
with polite phrases, with a word missing, with letters swapped. Every random choice is seeded.
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
TRIALS = 20  # random divisions of every set into folds
SAMPLES = 40  # settings sampled from the grid
GRID: Mapping[str, Sequence[float]] = {
    "k1": (0.6, 0.9, 1.2, 1.6),
    "b": (0.2, 0.4, 0.75),
    "pairs": (0.0, 0.1, 0.3),
    "names": (0.25, 0.5, 1.0),
    "superseded_bonus": (2.0, 3.0, 4.0),
}
Right = Sequence[bool]  # whether each answer is right, question by question


def sample_settings() -> list[Settings]:
    """Return the shipped settings, then a sample of the grid."""
    grid = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]
    return [SETTINGS, *(replace(SETTINGS, **values) for values in Random(1).sample(grid, SAMPLES))]


class FoldMeans(Struct, frozen=True):
    """Means over folds of the mean over sets.

    `chosen` is the best settings' share on the questions used to choose them, `elsewhere` their share on the other
    questions, `shipped` the shipped settings' share there.
    """

    chosen: float
    elsewhere: float
    shipped: float


def cross_validate(right: Sequence[Sequence[Right]], ids: Sequence[Sequence[str]]) -> FoldMeans:
    """Cross-validate `right[settings][set][question]`. A question of several sets is in the same fold of each."""
    sums = [0.0, 0.0, 0.0]
    for seed in range(TRIALS):
        ties = Random(seed)
        folds = [[Random(f"{seed} {name}").randrange(FOLDS) for name in names] for names in ids]
        for fold in range(FOLDS):
            training = [_mean_of_sets(sets, folds, fold, is_within=False) for sets in right]
            best = max(range(len(right)), key=lambda at: (training[at], ties.random()))
            held_out = [_mean_of_sets(right[at], folds, fold, is_within=True) for at in (best, 0)]
            sums = [total + mean for total, mean in zip(sums, (training[best], *held_out), strict=True)]
    return FoldMeans(*(total / (TRIALS * FOLDS) for total in sums))


def _mean_of_sets(right: Sequence[Right], folds: Sequence[Sequence[int]], fold: int, *, is_within: bool) -> float:
    means = []
    for answers, fold_of in zip(right, folds, strict=True):
        selected = [is_right for is_right, own in zip(answers, fold_of, strict=True) if (own == fold) is is_within]
        means.append(sum(selected) / len(selected))
    return sum(means) / len(means)


def is_plain(word: str) -> bool:
    """Return whether a word is in lower case and has meaning: not a name, a number or a stop word."""
    word = word.strip(".,:;?!'\"")
    return len(word) >= 5 and word.isalpha() and word.islower() and word not in STOP_WORDS


def swap_letters(text: str, random: Random, share: float) -> str:
    """Swap two neighbouring letters in a share of the plain words, in at least one."""
    words = text.split(" ")
    places = [at for at, word in enumerate(words) if is_plain(word)]
    for at in random.sample(places, min(len(places), max(1, round(share * len(places))))):
        inner = random.randrange(1, len(words[at]) - 2)
        words[at] = words[at][:inner] + words[at][inner + 1] + words[at][inner] + words[at][inner + 2 :]
    return " ".join(words)


def drop_word(text: str, random: Random) -> str:
    """Remove one plain word."""
    words = text.split(" ")
    places = [at for at, word in enumerate(words) if is_plain(word)]
    removed = random.choice(places) if places else -1
    return " ".join(word for at, word in enumerate(words) if at != removed)


OTHER_WORDS: Mapping[str, Callable[[str, Random], str]] = {
    "unchanged": lambda text, _: text,
    "CAPITALS": lambda text, _: text.upper(),
    "no stop words": lambda text, _: " ".join(word for word in text.split() if word.lower() not in STOP_WORDS),
    "polite": lambda text, _: f"Good morning, could you please tell me what you know about this? {text} Many thanks",
    "a word missing": drop_word,
    "a typing error": lambda text, random: swap_letters(text, random, 0.0),
    "every fifth word mistyped": lambda text, random: swap_letters(text, random, 0.2),
}


def right(case: Case, reworded: Callable[[str, Random], str]) -> Iterator[bool]:
    """Yield for each question whether its answer is right if it is reworded."""
    for question in case.questions:
        yield case.is_right(question, case.engine.query(reworded(question.text, Random(question.id)), k=K))


def main(data: str) -> int:
    """Print the results of both checks."""
    settings = sample_settings()
    results: list[list[Right]] = [[] for _ in settings]
    ids: list[list[str]] = []
    for collection in COLLECTIONS:
        case = Case(Path(data), collection, SETTINGS)
        ids.append([question.id for question in case.questions])
        for name, reworded in OTHER_WORDS.items():
            count = sum(right(case, reworded))
            print(f"{case.title} | {name} | {count} of {len(case.questions)}", flush=True)
        for each, sets in zip(settings, results, strict=True):
            case.use(each)
            sets.append(list(case.right()))
        case.engine.close()
    means = cross_validate(results, ids)
    print(f"folds | chosen {means.chosen:.4f} | elsewhere {means.elsewhere:.4f} | shipped there {means.shipped:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

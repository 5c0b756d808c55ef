"""How often an answer is called close that should not be, and the reverse: `python -m benchmarks.speed.closeness DATA`.

Promise: on the dev questions of each set, under the shipped packs. Right answers should be close. Questions that the
other sets ask about, and made ones about everyday matters, have no answer in a set and should not be. Every choice is
seeded. DATA contains a folder per set.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from msgspec import Struct

from benchmarks.paper.sets import COLLECTIONS, Collection
from benchmarks.speed.answers import Case, K
from stream_car.ranking.closeness import CLOSE
from stream_car.ranking.settings import SETTINGS

FOREIGN = 30  # questions taken from each other set
MADE = (
    "What is the capital of France?",
    "How do I bake sourdough bread at home?",
    "Who won the world cup in 1998?",
    "Which train goes from Berlin to Prague on Sunday?",
    "How tall is Mount Everest?",
    "What time does the museum close?",
    "Can you recommend a good novel about sailing?",
    "How many calories are in a banana?",
    "What is the best fertilizer for tomatoes?",
    "When was the Eiffel Tower built?",
    "Does my cat need a passport to travel to Norway?",
    "How do I change a bicycle tyre?",
    "Which planets have rings?",
    "What is the boiling point of mercury?",
    "Who painted the ceiling of the Sistine Chapel?",
    "Is it safe to eat raw mushrooms?",
    "How long does a letter to Australia take?",
    "What is the exchange rate of the krone?",
    "Where can I park near the opera house?",
    "Should I water orchids every day?",
    "What does the word serendipity mean?",
    "Which chess opening is best against e4?",
    "How do I remove red wine from a carpet?",
    "Is there snow in the Alps in June?",
    "How is parmesan cheese made?",
    "Why is the sky blue?",
    "Which guitar strings sound warm?",
    "How much does a violin lesson cost?",
    "Where do storks spend the winter?",
    "How do I fold a paper crane?",
)


class Closeness(Struct, frozen=True, kw_only=True):
    """The closeness of answers in a set: of right ones, and of those to questions without an answer."""

    title: str
    right: Sequence[float]
    foreign: Sequence[float]
    made: Sequence[float]


def share_below(values: Sequence[float], threshold: float = CLOSE) -> float:
    """Return the share of values below the threshold."""
    return sum(value < threshold for value in values) / len(values) if values else 0.0


def measure(data: Path, collections: Sequence[Collection] = COLLECTIONS) -> Iterator[Closeness]:
    """Yield the closeness of answers in each set."""
    cases = {collection: Case(data, collection, SETTINGS) for collection in collections}
    for collection, case in cases.items():
        choose = Random(collection.name)
        foreign = [
            question.text
            for other, other_case in cases.items()
            if other.domain != collection.domain
            for question in choose.sample(list(other_case.questions), FOREIGN)
        ]
        answers = [(question, case.engine.query(question.text, k=K)) for question in case.questions]
        yield Closeness(
            title=collection.title,
            right=[answer.closeness for question, answer in answers if case.is_right(question, answer)],
            foreign=[case.engine.query(text, k=K).closeness for text in foreign],
            made=[case.engine.query(text, k=K).closeness for text in MADE],
        )
    for case in cases.values():
        case.engine.close()


def main(data: Path) -> int:
    """Print for each set how many answers are called not close."""
    measured = list(measure(data))
    print(f"Answers below {CLOSE}: of the right ones, of those to questions of other sets, of those to made questions")
    everything = Closeness(
        title="all",
        right=[value for each in measured for value in each.right],
        foreign=[value for each in measured for value in each.foreign],
        made=[value for each in measured for value in each.made],
    )
    for each in (*measured, everything):
        shares = (share_below(each.right), share_below(each.foreign), share_below(each.made))
        print(" | ".join([f"{each.title:26}", *(f"{share:6.1%}" for share in shares)]))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

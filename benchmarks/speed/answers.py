"""What each part of the ranking contributes: `python -m benchmarks.speed.answers DATA [--encoder FOLDER] [SET...]`.

Promise: every figure is TCA@5 by Theorem 4 over the dev questions, of the library's answers under the shipped packs,
with one engine per set and text analysis and without a cache. DATA contains a folder per set. With an encoder, the
contribution of vectors is measured instead.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import process_time

from msgspec.structs import replace

import stream_car
from benchmarks.paper.measures import tca
from benchmarks.paper.sets import Collection, Question, find_collections, load
from stream_car.codec import split_documents
from stream_car.local.engine import Engine
from stream_car.queries.answers import Answer
from stream_car.ranking.settings import SETTINGS, Settings

K = 5

VARIANTS: Mapping[str, Settings] = {
    "all parts": SETTINGS,
    "no stems": replace(SETTINGS, stems=False),
    "no pairs": replace(SETTINGS, pairs=0.0),
    "no names": replace(SETTINGS, names=0.0),
    "k1 1.2, b 0.75": replace(SETTINGS, k1=1.2, b=0.75),
    "no superseded bonus": replace(SETTINGS, superseded_bonus=0.0),
    "superseded bonus 2": replace(SETTINGS, superseded_bonus=2.0),
    "superseded bonus 4": replace(SETTINGS, superseded_bonus=4.0),
    "superseded bonus 4, no names": replace(SETTINGS, superseded_bonus=4.0, names=0.0),
}

DENSE: Mapping[str, Settings] = {
    f"vectors, {nats:g} nats": replace(SETTINGS, dense=nats) for nats in (0.0, 1.0, 2.0, 3.0, 5.0, 10.0)
}


class Case:
    """A collection that has been published into an engine, and its questions."""

    def __init__(self, data: Path, collection: Collection, settings: Settings, encoder: str | None = None) -> None:
        material = load(data, collection, "dev")
        self.title = collection.title
        self.questions = material.questions
        self.superseders = material.superseders
        self.engine: Engine = stream_car.open(
            None, rules=[collection.domain], future="apply", ranking=settings, encoder=encoder
        )
        with (material.folder / "documents.jsonl").open("rb") as stream:
            self.engine.publish(split_documents(stream))
        self.engine.settle()

    def use(self, settings: Settings) -> None:
        """Use other settings from now on. The index keeps its text analysis."""
        projection = self.engine.directory.projection
        projection.index._settings = settings
        projection.queries.superseded_bonus = settings.superseded_bonus
        projection.queries.cache = None

    def is_right(self, question: Question, answer: Answer) -> bool:
        """Judge an answer by Theorem 4."""
        return tca(question.gold, [document.id for document in answer.results], self.superseders)

    def right(self) -> Iterator[bool]:
        """Yield for each question whether its answer is right."""
        for question in self.questions:
            yield self.is_right(question, self.engine.query(question.text, k=K))


def measure(name: str, case: Case, settings: Settings) -> None:
    """Print a line for one variant."""
    case.use(settings)
    begin = process_time()
    right = sum(case.right())
    milliseconds = (process_time() - begin) / len(case.questions) * 1e3
    print(f"{case.title} | {name} | {right} of {len(case.questions)} | {milliseconds:.1f} ms", flush=True)


def main(data: Path, names: Sequence[str], encoder: str | None) -> int:
    """Print a line for each set and variant."""
    for collection in find_collections(names):
        if encoder is not None:
            case = Case(data, collection, SETTINGS, encoder)
            for name, settings in DENSE.items():
                measure(name, case, settings)
            case.engine.close()
            continue
        stemmed, plain = Case(data, collection, SETTINGS), Case(data, collection, VARIANTS["no stems"])
        for name, settings in VARIANTS.items():
            measure(name, stemmed if settings.stems else plain, settings)
        stemmed.engine.close()
        plain.engine.close()
    return 0


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "names", nargs="*", metavar="SET", help="as `python -m benchmarks.paper answers --set` takes it"
    )
    parser.add_argument("--encoder", metavar="FOLDER")
    options = parser.parse_args()
    sys.exit(main(options.data, options.names, options.encoder))

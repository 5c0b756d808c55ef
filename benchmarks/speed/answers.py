"""What each part of the ranking is worth: `python -m benchmarks.speed.answers DATA [--encoder FOLDER] [SET...]`.

Promise: every figure is TCA@5 by Theorem 4 over the dev questions, of answers that the library gives under the
shipped packs; one engine a set and way of analysing, no cache. DATA holds a folder a set. With an encoder what
vectors add is measured instead.
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
from stream_car.codec import documents_in
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
    "order of relevance": replace(SETTINGS, superseded_bonus=0.0),
    "moved 2": replace(SETTINGS, superseded_bonus=2.0),
    "moved 4": replace(SETTINGS, superseded_bonus=4.0),
    "moved 4, no names": replace(SETTINGS, superseded_bonus=4.0, names=0.0),
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
        self.above = material.superseders
        self.engine: Engine = stream_car.open(
            None, domains=[collection.domain], future="apply", ranking=settings, encoder=encoder
        )
        with (material.folder / "documents.jsonl").open("rb") as stream:
            self.engine.publish(documents_in(stream))
        self.engine.settle()

    def use(self, settings: Settings) -> None:
        """Ask with other numbers from now on; the words stay analysed as they are."""
        self.engine._built.index._settings = settings
        self.engine._built.queries.superseded_bonus = settings.superseded_bonus
        self.engine._built.queries.cache = None

    def is_right(self, question: Question, answer: Answer) -> bool:
        """Theorem 4."""
        return tca(question.gold, [one.id for one in answer.results], self.above)

    def right(self) -> Iterator[bool]:
        """Question by question, whether its answer is right."""
        for one in self.questions:
            yield self.is_right(one, self.engine.query(one.text, k=K))


def measure(name: str, case: Case, settings: Settings) -> None:
    """Print a line."""
    case.use(settings)
    begin = process_time()
    right = sum(case.right())
    took = (process_time() - begin) / len(case.questions) * 1e3
    print(f"{case.title} | {name} | {right} of {len(case.questions)} | {took:.1f} ms", flush=True)


def main(data: Path, names: Sequence[str], encoder: str | None) -> int:
    """Print a line a set and variant."""
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
    said = parser.parse_args()
    sys.exit(main(said.data, said.names, said.encoder))

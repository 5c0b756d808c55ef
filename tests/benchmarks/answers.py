"""What each part of the ranking is worth: `python -m tests.benchmarks.answers DATA [SET...]`.

Promise: every figure is TCA@5 by Theorem 4, judged from `edges.jsonl` alone, of answers that the library
gives under the shipped packs; one engine a set and way of analysing, no cache. DATA holds a folder a set.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import process_time

import msgspec
from msgspec import Struct
from msgspec.structs import replace

import stream_car
from stream_car.codec import documents_in
from stream_car.engine.answers import Answer
from stream_car.ranking.settings import SETTINGS, Settings
from stream_car.runtime.embedded import Engine

K = 5


class Collection(Struct, frozen=True):
    """A benchmark set: its folder, the pack that rules it, and a file of queries."""

    name: str
    folder: str
    domain: str
    queries: str = "queries.dev.jsonl"


COLLECTIONS = (
    Collection("GHSA", "ghsa", "security"),
    Collection("FDA, answerable", "fda", "medical", "queries.answerable.dev.jsonl"),
    Collection("FDA, all", "fda", "medical"),
    Collection("FinSuperQA", "finsuperqa", "compliance"),
    Collection("contaminated", "finsuperqa_contaminated", "compliance"),
    Collection("CVE", "cvepatchqa", "security"),
    Collection("legal", "legalprecedentqa", "legal"),
    Collection("CVE free-form", "cvepatchqa_freeform", "security"),
    Collection("legal free-form", "legalprecedentqa_freeform", "legal"),
)

VARIANTS: Mapping[str, Settings] = {
    "all parts": SETTINGS,
    "no stems": replace(SETTINGS, stems=False),
    "no pairs": replace(SETTINGS, pairs=0.0),
    "no names": replace(SETTINGS, names=0.0),
    "k1 1.2, b 0.75": replace(SETTINGS, k1=1.2, b=0.75),
    "order of relevance": replace(SETTINGS, moved=0.0),
    "moved 2": replace(SETTINGS, moved=2.0),
    "moved 4": replace(SETTINGS, moved=4.0),
    "moved 4, no names": replace(SETTINGS, moved=4.0, names=0.0),
}


class Query(Struct, frozen=True):
    """A line of a query file."""

    id: str
    text: str
    gold: list[str]


class Edge(Struct, frozen=True):
    """A line of an edge file: `new` supersedes `old`."""

    old: str
    new: str


def read(path: Path, kind: type[Query] | type[Edge]) -> Iterator[Query | Edge]:
    """The lines of a file."""
    for line in path.read_bytes().splitlines():
        yield msgspec.json.decode(line, type=kind)


def superseders(edges: Iterable[Edge]) -> dict[str, set[str]]:
    """Of each superseded document all that supersede it, directly or not."""
    direct: dict[str, set[str]] = {}
    for edge in edges:
        direct.setdefault(edge.old, set()).add(edge.new)
    found: dict[str, set[str]] = {}
    for old in direct:
        todo, seen = [old], set[str]()
        while todo:
            for new in direct.get(todo.pop(), set()) - seen:
                seen.add(new)
                todo.append(new)
        found[old] = seen
    return found


def is_right(query: Query, results: Sequence[str], above: Mapping[str, set[str]]) -> bool:
    """Theorem 4 for a retrieved set: the gold is in it, and nothing superseded stands alone."""
    inside = set(results)
    return inside >= set(query.gold) and all(not above.get(name) or above[name] & inside for name in results)


class Case:
    """A collection that has been published into an engine, and its queries."""

    def __init__(self, data: Path, collection: Collection, settings: Settings) -> None:
        folder = data / collection.folder
        self.queries = [one for one in read(folder / collection.queries, Query) if isinstance(one, Query)]
        self.above = superseders(one for one in read(folder / "edges.jsonl", Edge) if isinstance(one, Edge))
        self.engine: Engine = stream_car.open(None, domains=[collection.domain], future="apply", ranking=settings)
        with (folder / "documents.jsonl").open("rb") as stream:
            self.engine.publish(documents_in(stream))

    def use(self, settings: Settings) -> None:
        """Ask with other numbers from now on; the words stay analysed as they are."""
        self.engine._built.index._settings = settings
        self.engine._built.queries.moved = settings.moved
        self.engine._built.queries.cache = None

    def answers(self) -> Iterator[tuple[Query, Answer]]:
        """Every query with its answer."""
        for query in self.queries:
            yield query, self.engine.query(query.text, k=K)

    def right(self) -> int:
        """How many queries are answered rightly."""
        return sum(is_right(query, [one.id for one in answer.results], self.above) for query, answer in self.answers())


def main(data: str, *names: str) -> int:
    """Print a line a set and variant."""
    for collection in COLLECTIONS:
        if names and collection.name not in names:
            continue
        stemmed = Case(Path(data), collection, SETTINGS)
        plain = Case(Path(data), collection, VARIANTS["no stems"])
        for name, settings in VARIANTS.items():
            case = stemmed if settings.stems else plain
            case.use(settings)
            begin = process_time()
            right = case.right()
            took = (process_time() - begin) / len(case.queries) * 1e3
            print(f"{collection.name} | {name} | {right} of {len(case.queries)} | {took:.1f} ms", flush=True)
        stemmed.engine.close()
        plain.engine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Benchmark sets: documents, questions, and what is true of them.

Promise: read once, checked on the way; which documents supersede which is read from `edges.jsonl`, for
scoring only.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from benchmarks.paper.measures import Above, superseders
from stream_car.codec import decode, documents_in
from stream_car.core.documents import Document
from stream_car.errors import InvalidRequest

Split = Literal["dev", "heldout", "all"]
T = TypeVar("T")


class Collection(Struct, frozen=True, kw_only=True):
    """A benchmark set. `depth` is the Stage-1 depth of the paper's two-stage system there.

    `ceiling` is what no system can exceed by Theorem 4, `own_ceiling` by the set's own scorer, over all of
    the set's questions; `because` says why.
    """

    name: str
    title: str
    folder: str
    domain: str
    queries: str = "queries"
    depth: int = 5
    ceiling: float = 1.0
    own_ceiling: float | None = None
    because: str = ""
    hints: Literal["", "product", "party"] = ""  # what a question may be given beside its words (Table 8)

    def file(self, split: Split) -> str:
        """The file of these questions."""
        return f"{self.queries}.jsonl" if split == "all" else f"{self.queries}.{split}.jsonl"


SAME_WORDS = "several questions have the same words and different answers"
COLLECTIONS = (
    Collection(
        name="ghsa",
        title="GHSA",
        folder="ghsa",
        domain="security",
        ceiling=0.994,
        because="one question was made of image links and does not describe its vulnerability",
    ),
    Collection(name="fda", title="FDA", folder="fda", domain="medical", ceiling=0.790, because=SAME_WORDS),
    Collection(
        name="fda-answerable", title="FDA, answerable", folder="fda", domain="medical", queries="queries.answerable"
    ),
    Collection(name="finsuperqa", title="FinSuperQA", folder="finsuperqa", domain="compliance", depth=20),
    Collection(
        name="finsuperqa_contaminated",
        title="FinSuperQA, contaminated",
        folder="finsuperqa_contaminated",
        domain="compliance",
        depth=20,
        own_ceiling=0.940,
        because="in 60 of 250 T3 cases a foreign approval is in force that the own scorer's answer does not know",
    ),
    Collection(name="cvepatchqa", title="CVEPatchQA", folder="cvepatchqa", domain="security"),
    Collection(name="legalprecedentqa", title="LegalPrecedentQA", folder="legalprecedentqa", domain="legal"),
    Collection(
        name="cvepatchqa_freeform",
        title="CVE, free-form",
        folder="cvepatchqa_freeform",
        domain="security",
        ceiling=0.984,
        because=SAME_WORDS,
        hints="product",
    ),
    Collection(
        name="legalprecedentqa_freeform",
        title="Legal, free-form",
        folder="legalprecedentqa_freeform",
        domain="legal",
        ceiling=0.400,
        because="250 rulings share 20 holdings, and the questions name neither party nor court",
        hints="party",
    ),
)


FURTHER = (  # no part of a run over all sets: their texts were not published with the paper
    Collection(name="scotus", title="SCOTUS", folder="scotus", domain="legal"),
)


class Question(Struct, frozen=True, kw_only=True):
    """A question and what is true of it. `gold` controls; `anchor` is what the words point at."""

    id: str
    text: str
    gold: tuple[str, ...]
    anchor: tuple[str, ...]
    hop: str = ""
    answer: str | None = None
    chain: tuple[str, ...] = ()  # the documents of its case, oldest first
    case: Mapping[str, str] = {}  # superseded within its own case -> what supersedes it directly


class Material(Struct, frozen=True, kw_only=True):
    """All of a set that is at hand."""

    collection: Collection
    folder: Path
    documents: Mapping[str, Document]  # in the order of the file
    above: Above
    questions: Sequence[Question]


class _Query(Struct):
    id: str
    text: str
    gold: tuple[str, ...]
    anchor: tuple[str, ...]
    hop: str = ""


class _Edge(Struct):
    old: str
    new: str
    query: str | None = None


class _Answer(Struct):
    id: str
    answer: str
    chain: tuple[str, ...]


def known(names: Sequence[str]) -> tuple[Collection, ...]:
    """The sets of these names, all where there is none. Raises `InvalidRequest`."""
    by_name = {one.name: one for one in (*COLLECTIONS, *FURTHER)}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise InvalidRequest("set", f"no set is called {unknown[0]!r}; choose from {', '.join(by_name)}")
    return tuple(by_name[name] for name in names) or COLLECTIONS


def load(data: Path, collection: Collection, split: Split) -> Material:
    """A set from the directory of all sets. Raises `InvalidRequest` where a file is missing or cannot be read."""
    folder = data / collection.folder
    edges = list(_rows(folder / "edges.jsonl", _Edge))
    answers: dict[str, _Answer] = {}
    if (folder / "answers.jsonl").is_file():
        answers = {one.id: one for one in _rows(folder / "answers.jsonl", _Answer)}
    cases: dict[str, dict[str, str]] = {}
    for edge in edges:
        if edge.query is not None:
            cases.setdefault(edge.query, {})[edge.old] = edge.new
    asked = _rows(folder / collection.file(split), _Query)
    return Material(
        collection=collection,
        folder=folder,
        documents={one.id: one for one in _documents(folder / "documents.jsonl")},
        above=superseders((edge.old, edge.new) for edge in edges),
        questions=tuple(_question(one, answers.get(one.id), cases.get(one.id, {})) for one in asked),
    )


def _question(said: _Query, answer: _Answer | None, case: Mapping[str, str]) -> Question:
    return Question(
        id=said.id,
        text=said.text,
        gold=said.gold,
        anchor=said.anchor,
        hop=said.hop,
        answer=answer.answer if answer is not None else None,
        chain=answer.chain if answer is not None else (),
        case=case,
    )


def _documents(path: Path) -> Iterator[Document]:
    for line in _lines(path):
        said = decode(line)
        if isinstance(said, Document):
            yield said


def _rows(path: Path, kind: type[T]) -> Iterator[T]:
    for number, line in enumerate(_lines(path), 1):
        try:
            yield msgspec.json.decode(line, type=kind)
        except msgspec.DecodeError as error:
            raise InvalidRequest("set", f"line {number} of {path} cannot be read: {error}") from None


def _lines(path: Path) -> Iterable[bytes]:
    if not path.is_file():
        raise InvalidRequest(
            "set", f"{path} is missing; --data must name the directory in which the sets' directories are"
        )
    with path.open("rb") as stream:
        yield from documents_in(stream)

"""Benchmark sets: documents, questions, and the true answers.

Promise: files are read once and validated. The edges of `edges.jsonl`, which documents supersede which, are used for
scoring only.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from benchmarks.paper.measures import Superseders, superseders
from stream_car.codec import decode, split_documents
from stream_car.core.documents import Document
from stream_car.errors import InvalidRequest

Split = Literal["dev", "heldout", "all"]
T = TypeVar("T")


class Collection(Struct, frozen=True, kw_only=True):
    """A benchmark set. `depth` is the Stage-1 depth of the paper's two-stage system on it.

    No system can exceed `ceiling` by Theorem 4, or `own_ceiling` by the set's own scorer, over all questions of the
    set; `because` says why.
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
    hints: Literal["", "product", "party"] = ""  # the kind of hint for Table 8

    def file(self, split: Split) -> str:
        """Return the name of the file with the questions of a split."""
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


FURTHER = (  # excluded from a run over all sets, because their texts were not published with the paper
    Collection(name="scotus", title="SCOTUS", folder="scotus", domain="legal"),
)


class Question(Struct, frozen=True, kw_only=True):
    """A question and its true answer: `gold` are the controlling documents, `anchor` those that the words describe."""

    id: str
    text: str
    gold: tuple[str, ...]
    anchor: tuple[str, ...]
    hop: str = ""
    answer: str | None = None
    chain: tuple[str, ...] = ()  # the documents of its case, oldest first
    case: Mapping[str, str] = {}  # superseded within its own case -> what supersedes it directly


class Material(Struct, frozen=True, kw_only=True):
    """The files of a set, read."""

    collection: Collection
    folder: Path
    documents: Mapping[str, Document]  # in the order of the file
    superseders: Superseders
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


def find_collections(names: Sequence[str]) -> tuple[Collection, ...]:
    """Return the sets of these names, or all sets for no names.

    Raises:
        InvalidRequest: there is no set of a name.
    """
    by_name = {collection.name: collection for collection in (*COLLECTIONS, *FURTHER)}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise InvalidRequest("set", f"Unknown set {unknown[0]!r}. Choose from: {', '.join(by_name)}.")
    return tuple(by_name[name] for name in names) or COLLECTIONS


def load(data: Path, collection: Collection, split: Split) -> Material:
    """Read a set from the directory of all sets.

    Raises:
        InvalidRequest: a file is missing or invalid.
    """
    folder = data / collection.folder
    edges = list(_read_rows(folder / "edges.jsonl", _Edge))
    answers: dict[str, _Answer] = {}
    if (folder / "answers.jsonl").is_file():
        answers = {answer.id: answer for answer in _read_rows(folder / "answers.jsonl", _Answer)}
    cases: dict[str, dict[str, str]] = {}
    for edge in edges:
        if edge.query is not None:
            cases.setdefault(edge.query, {})[edge.old] = edge.new
    queries = _read_rows(folder / collection.file(split), _Query)
    return Material(
        collection=collection,
        folder=folder,
        documents={document.id: document for document in _read_documents(folder / "documents.jsonl")},
        superseders=superseders((edge.old, edge.new) for edge in edges),
        questions=tuple(_question(query, answers.get(query.id), cases.get(query.id, {})) for query in queries),
    )


def _question(query: _Query, answer: _Answer | None, case: Mapping[str, str]) -> Question:
    return Question(
        id=query.id,
        text=query.text,
        gold=query.gold,
        anchor=query.anchor,
        hop=query.hop,
        answer=answer.answer if answer is not None else None,
        chain=answer.chain if answer is not None else (),
        case=case,
    )


def _read_documents(path: Path) -> Iterator[Document]:
    for line in _read_lines(path):
        statement = decode(line)
        if isinstance(statement, Document):
            yield statement


def _read_rows(path: Path, kind: type[T]) -> Iterator[T]:
    for number, line in enumerate(_read_lines(path), 1):
        try:
            yield msgspec.json.decode(line, type=kind)
        except msgspec.DecodeError as error:
            raise InvalidRequest("set", f"Line {number} of {path} is invalid: {error}.") from None


def _read_lines(path: Path) -> Iterable[bytes]:
    if not path.is_file():
        reason = f"{path} is missing. The option --data must name the directory that contains the sets' directories."
        raise InvalidRequest("set", reason)
    with path.open("rb") as stream:
        yield from split_documents(stream)

"""`python -m benchmarks.paper eval`: answers the queries of a closed collection into a run file for a scorer.

Promise: the engine is new, and every document counts whatever its date. A query's line has the results of its answer in
order, controlling documents only.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

import click
import msgspec
from msgspec import Struct

import stream_car
from stream_car.api.json import to_json
from stream_car.cli import options
from stream_car.cli.console import err, progress
from stream_car.cli.widgets import counted
from stream_car.codec import split_documents
from stream_car.errors import InvalidRequest
from stream_car.processing.receipts import Receipt
from stream_car.queries.limits import DEPTH

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


class Query(Struct, frozen=True):
    """A line of the query file. Other fields are for the scorer."""

    id: str
    text: str


class RunLine(Struct, frozen=True):
    """A line of the run file."""

    id: str
    docs: list[str]


@options.command("encoder", name="eval")
@click.option("--documents", type=FILE, required=True, help="The documents, newline-delimited JSON.")
@click.option("--queries", type=FILE, required=True, help='The queries, lines of {"id": ..., "text": ...}.')
@click.option("--rules", multiple=True, required=True, metavar="NAME|FILE", help="A rule pack; may be repeated.")
@click.option("--k", type=click.IntRange(min=1), default=5, show_default=True, help="Documents per answer.")
@options.depth(DEPTH)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The run file to write.")
def command(
    session: options.Session,
    documents: Path,
    queries: Path,
    rules: Sequence[str],
    k: int,
    depth: int,
    out: Path,
) -> None:
    """Run the queries of a closed collection.

    Publishes the documents into a new engine and writes `{"id", "docs"}` lines for a scorer. Every
    document of a closed collection counts, whatever its date.

    Examples:
      python -m benchmarks.paper eval --documents ghsa/documents.jsonl --queries ghsa/queries.jsonl \\
          --rules security --k 5 --out run.jsonl
      python -m benchmarks.paper eval --documents d.jsonl --queries q.jsonl \\
          --rules legal --rules ./my-rules.toml --out run.jsonl
    """
    requests = list(_read_queries(queries))
    started = perf_counter()
    with stream_car.open(None, rules=rules, future="apply", encoder=session.encoder) as engine:
        with documents.open("rb") as stream, progress() as bar:
            receipts = engine.publish(bar.track(split_documents(stream), description="publishing")).receipts
        session.settle(engine)
        published = perf_counter()
        with progress() as bar, out.open("w", encoding="utf-8") as run:
            for query in bar.track(requests, description="querying"):
                answer = engine.query(query.text, k=k, depth=depth)
                run.write(to_json(RunLine(query.id, [document.id for document in answer.results])) + "\n")
    ended = perf_counter()
    report = RunReport(
        documents=DocumentCounts.of(receipts),
        queries=len(requests),
        publish_seconds=round(published - started, 3),
        query_seconds=round(ended - published, 3),
        out=str(out),
    )
    if session.as_json:
        click.echo(to_json(report))
    else:
        _print(report)


class MissingKey(Struct, frozen=True, kw_only=True):
    """How many documents of a type lack a key that a rule of their type needs."""

    type: str
    key: str
    documents: int


class RejectedDocuments(Struct, frozen=True, kw_only=True):
    """How many documents were rejected with this code, and the reason of the first one."""

    code: str
    documents: int
    example: str


class DocumentCounts(Struct, frozen=True, kw_only=True):
    """What became of the documents of a collection."""

    outcomes: dict[str, int]
    missing_keys: tuple[MissingKey, ...]
    rejected: tuple[RejectedDocuments, ...]

    @classmethod
    def of(cls, receipts: Sequence[Receipt]) -> "DocumentCounts":
        """Count receipts."""
        outcomes = Counter(str(receipt.outcome) for receipt in receipts)
        missing = Counter((receipt.type or "", key) for receipt in receipts for key in receipt.missing_keys)
        codes = Counter(receipt.code for receipt in receipts if receipt.code is not None)
        examples = {receipt.code: receipt.reason or "" for receipt in reversed(receipts)}
        return cls(
            outcomes=dict(outcomes.most_common()),
            missing_keys=tuple(
                MissingKey(type=kind, key=key, documents=count) for (kind, key), count in missing.most_common()
            ),
            rejected=tuple(
                RejectedDocuments(code=code, documents=count, example=examples[code])
                for code, count in codes.most_common()
            ),
        )


class RunReport(Struct, frozen=True, kw_only=True):
    """What an evaluation did. Seconds are wall-clock time."""

    documents: DocumentCounts
    queries: int
    publish_seconds: float
    query_seconds: float
    out: str


def _print(report: RunReport) -> None:
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in report.documents.outcomes.items())
    console = err()
    console.print(f"{counts or 'no documents'} in {report.publish_seconds:.1f} s")
    for item in report.documents.missing_keys:
        console.print(f"  {item.type} without {item.key} ({counted(item.documents, 'document')})")
    for rejected in report.documents.rejected:
        example = f"  rejected {rejected.code} ({rejected.documents:,}), for example: {rejected.example}"
        console.print(example, style="red")
    console.print(
        f"{counted(report.queries, 'query', 'queries')} in {report.query_seconds:.1f} s, written to {report.out}"
    )


def _read_queries(path: Path) -> Iterator[Query]:
    with path.open("rb") as stream:
        for number, text in enumerate(split_documents(stream), 1):
            try:
                yield msgspec.json.decode(text, type=Query)
            except msgspec.DecodeError as error:
                raise InvalidRequest("queries", f"Query {number} of {path} is invalid: {error}.") from None

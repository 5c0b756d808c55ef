"""`python -m benchmarks.paper eval`: answers the queries of a closed collection into a run file for a scorer.

Promise: the engine is new, and every document counts whatever its date. A query's line has the results of its answer in
order, controlling documents only.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

import click
import msgspec
from msgspec import Struct

import stream_car
from stream_car.api.json import line
from stream_car.cli import options
from stream_car.cli.console import err
from stream_car.cli.publish import progress, publish_all
from stream_car.cli.summaries import Summary
from stream_car.cli.widgets import counted
from stream_car.codec import documents_in
from stream_car.errors import InvalidRequest
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


@click.command(
    "eval",
    epilog=options.examples(
        "python -m benchmarks.paper eval --documents ghsa/documents.jsonl --queries ghsa/queries.jsonl \\",
        "    --domain security --k 5 --out run.jsonl",
        "python -m benchmarks.paper eval --documents d.jsonl --queries q.jsonl \\",
        "    --domain legal --domain ./my-rules.toml --out run.jsonl",
    ),
)
@click.option("--documents", type=FILE, required=True, help="The documents, newline-delimited JSON.")
@click.option("--queries", type=FILE, required=True, help='The queries, lines of {"id": ..., "text": ...}.')
@click.option(
    "--domain", "domains", multiple=True, required=True, metavar="NAME|FILE", help="A rule pack; may be repeated."
)
@click.option("--k", type=click.IntRange(min=1), default=5, show_default=True, help="Documents per answer.")
@options.depth(DEPTH)
@options.encoder
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The run file to write.")
@options.as_json
def command(
    documents: Path,
    queries: Path,
    domains: Sequence[str],
    k: int,
    depth: int,
    encoder: str | None,
    out: Path,
    as_json: bool,
) -> None:
    """Run the queries of a closed collection.

    Publishes the documents into a new engine and writes `{"id", "docs"}` lines for a scorer. Every
    document of a closed collection counts, whatever its date.
    """
    requests = list(_read_queries(queries))
    started = perf_counter()
    with stream_car.open(None, domains=domains, future="apply", encoder=encoder) as engine:
        with documents.open("rb") as stream:
            summary = Summary.of(publish_all(engine, documents_in(stream), what="publishing", total=None))
        options.settle(engine, encoder)
        published = perf_counter()
        with progress() as bar, out.open("w", encoding="utf-8") as run:
            for query in bar.track(requests, description="querying"):
                answer = engine.query(query.text, k=k, depth=depth)
                run.write(line(RunLine(query.id, [document.id for document in answer.results])) + "\n")
    ended = perf_counter()
    report = RunReport(summary, len(requests), round(published - started, 3), round(ended - published, 3), str(out))
    if as_json:
        click.echo(line(report))
    else:
        _print(report)


class RunReport(Struct, frozen=True):
    """What an evaluation did. Seconds are wall-clock time."""

    documents: Summary
    queries: int
    publish_seconds: float
    query_seconds: float
    out: str


def _print(report: RunReport) -> None:
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in report.documents.outcomes.most_common())
    console = err()
    console.print(f"{counts or 'no documents'} in {report.publish_seconds:.1f} s")
    for item in report.documents.lacking:
        console.print(f"  {item.type} without {item.key} ({counted(item.documents, 'document')})")
    for rejected in report.documents.rejected:
        example = f"  rejected {rejected.code} ({rejected.documents:,}), for example: {rejected.example}"
        console.print(example, style="red")
    console.print(
        f"{counted(report.queries, 'query', 'queries')} in {report.query_seconds:.1f} s, written to {report.out}"
    )


def _read_queries(path: Path) -> Iterator[Query]:
    with path.open("rb") as stream:
        for number, text in enumerate(documents_in(stream), 1):
            try:
                yield msgspec.json.decode(text, type=Query)
            except msgspec.DecodeError as error:
                raise InvalidRequest("queries", f"Query {number} of {path} is invalid: {error}.") from None

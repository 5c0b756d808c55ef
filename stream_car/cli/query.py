"""`query`, `resolve`, `check`, `explain`: what is in force, asked in words or by id."""

from collections.abc import Sequence
from pathlib import Path

import click

from stream_car.cli import options, render
from stream_car.core.rules import Ruleset
from stream_car.pictures import answer, chain
from stream_car.queries.limits import DEPTH, K_MAX

UNSOUND = 1


@click.command(
    epilog=options.examples(
        "stream-car query 'is lodash 4.17.4 safe to use?'",
        "stream-car query 'Log4Shell mitigation' --as-of 2021-12-12",
        "stream-car query 'Zantac' --k 3 --json | jq '.results[].id'",
        "stream-car query 'Zantac' --budget 40                 stop once 40 keys were read; says what is left out",
        "stream-car query 'Zantac' --url http://127.0.0.1:8377     ask a service: stream-car up",
        "stream-car query 'is lodash safe?' --svg delta.svg        how far what holds is from your words",
    )
)
@click.argument("text")
@click.option("--k", type=click.IntRange(1, K_MAX), default=5, show_default=True, help="How many documents to return.")
@options.depth(DEPTH)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="N",
    help="Look at no further anchor once N keys were read, the likeliest first.  [default: no limit]",
)
@options.as_of
@options.svg("how relevance scores each anchor, and how what controls it (Definition 4),")
@options.encoder
@options.asking
def query(
    text: str,
    k: int,
    depth: int,
    budget: int | None,
    as_of: int | None,
    svg: Path | None,
    encoder: str | None,
    data: Path,
    rules: Sequence[str],
    url: str | None,
    as_json: bool,
) -> None:
    """Answer a question from what is in force.

    Relevance proposes anchors, authority leads from each to what controls it now. The last line says
    what the answer warrants. Exit code 1 where nothing was found.
    """
    with options.opened(data, rules, url, encoder) as engine:
        options.require_served(engine, k=k, depth=depth, budget=budget)
        options.settle(engine, encoder)
        said = engine.query(text, k=k, depth=depth, as_of=as_of, budget=budget)
        searched = [] if said.results else _searched(options.ruleset_of(engine))
        options.hint_at_rules(engine, is_found=bool(said.results))
    options.draw_to(svg, lambda: answer.draw_answer(said))
    options.answer_one(said, as_json=as_json, draw=lambda said: render.answer(said, searched))
    options.end(is_found=bool(said.results))


def _searched(ruleset: Ruleset) -> list[str]:
    """The types that a search looks at, where it looks at some only."""
    anchors = ruleset.anchor_types()
    return sorted(anchors) if anchors < ruleset.pack_of.keys() else []


@click.command(
    epilog=options.examples(
        "stream-car resolve GHSA-jf85-cpcp-j695",
        "stream-car resolve advisory-17#chunk-3 advisory-18 --json",
        "your-retriever | xargs stream-car resolve",
    )
)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@options.as_of
@options.asking
def resolve(
    ids: Sequence[str], as_of: int | None, data: Path, rules: Sequence[str], url: str | None, as_json: bool
) -> None:
    """Say what controls documents now, by id.

    Takes ids, chunk ids (`document#chunk`) and names of records, so your own retriever can stay as it is.
    Exit code 1 where none of them is known.
    """
    with options.opened(data, rules, url) as engine:
        said = engine.resolve(ids, as_of=as_of)
        is_found = any(one.status != "unknown" for one in said)
        options.hint_at_rules(engine, is_found=is_found)
    options.answer_each(said, as_json=as_json, draw=render.resolution, nothing="Nothing was asked.")
    options.end(is_found=is_found)


@click.command(
    epilog=options.examples(
        "stream-car check GHSA-jf85-cpcp-j695 lodash-4.17.12",
        "stream-car check doc-1 doc-2 doc-3 --question 'is lodash safe?'",
        "stream-car check $(your-retriever) --json && echo sound",
    )
)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--question", metavar="TEXT", help="Judge the set as an answer to this question.")
@options.depth(20)
@options.as_of
@options.asking
def check(
    ids: Sequence[str],
    question: str | None,
    depth: int,
    as_of: int | None,
    data: Path,
    rules: Sequence[str],
    url: str | None,
    as_json: bool,
) -> None:
    """Audit a retrieved set of documents.

    Does it hold everything in force, and nothing void without its successor? Says which condition
    of Theorem 4 (of the paper, see docs/concepts.md) breaks and what repairs it. Exit code 1 where it
    does not hold, or a name is unknown, retracted or waiting, or is void with nothing here to control it.
    """
    with options.opened(data, rules, url) as engine:
        options.require_served(engine, depth=depth)
        said = engine.check(ids, question=question, depth=depth, as_of=as_of)
    options.answer_one(said, as_json=as_json, draw=render.audit)
    if not said.holds:
        raise click.exceptions.Exit(UNSOUND)


@click.command(
    epilog=options.examples(
        "stream-car explain GHSA-jf85-cpcp-j695",
        "stream-car explain GHSA-jf85-cpcp-j695 --as-of 2019-07-01",
        "stream-car explain GHSA-jf85-cpcp-j695 --svg chain.svg",
    )
)
@click.argument("name", metavar="ID")
@options.as_of
@options.svg("the chain that leads to what controls it now")
@options.asking
def explain(
    name: str,
    as_of: int | None,
    svg: Path | None,
    data: Path,
    rules: Sequence[str],
    url: str | None,
    as_json: bool,
) -> None:
    """Say why a document is, or is not, in force.

    Scope by scope and link by link, with the path to what controls it now. Exit code 1 where nothing
    has this name.
    """
    with options.opened(data, rules, url) as engine:
        said = engine.explain(name, as_of=as_of)
        is_found = said.status != "unknown"
        options.hint_at_rules(engine, is_found=is_found)
    options.draw_to(svg, lambda: chain.draw_explanation(said))
    options.answer_one(said, as_json=as_json, draw=render.explanation)
    options.end(is_found=is_found)

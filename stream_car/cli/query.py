"""`query`, `search`, `resolve`, `get`, `check` and `explain`: what is in force, by question or by id."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import click

from stream_car.api.calls import Calls
from stream_car.cli import hints, options, render, render_originals
from stream_car.cli.options import Session, command, require
from stream_car.core.rules import Ruleset
from stream_car.pictures.answer import draw_answer
from stream_car.pictures.chain import draw_explanation
from stream_car.queries.limits import DEPTH, K_MAX

MAX_RESULTS = click.option(
    "-k", "--k", "k", type=click.IntRange(1, K_MAX), default=5, show_default=True, help="How many documents to return."
)
IDS = click.argument("ids", nargs=-1, required=True, metavar="ID...")


@command("data", "rules", "url", "encoder", "verbose", "attributes")
@click.argument("text")
@MAX_RESULTS
@options.depth(DEPTH)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop after reading N keys. The most likely starting points are tried first.  [default: no limit]",
)
@options.within
@options.as_of
@options.svg("the relevance of each starting point against that of the document that controls it (Definition 4)")
def query(
    session: Session,
    text: str,
    k: int,
    depth: int,
    budget: int | None,
    scope: Mapping[str, str],
    as_of: datetime | None,
    svg: Path | None,
) -> None:
    """Answer a question from the documents in force.

    Search finds relevant documents. Rules lead from each of them to the documents that control it now. The last line
    states whether the answer is complete. Exit code 1 if nothing was found.

    Examples:
      stream-car query 'is lodash 4.17.4 safe to use?'
      stream-car query 'Log4Shell mitigation' --as-of 2021-12-12
      stream-car query 'Zantac' --k 3 --json | jq '.results[].id'
      stream-car query 'Zantac' --budget 40 --verbose           read at most 40 keys; show what is left out
      stream-car query 'Zantac' --url http://127.0.0.1:8377     ask a service: stream-car serve
      stream-car query 'is lodash safe?' --svg scores.svg       draw how relevance ranked the documents
    """
    session.require_limits(k=k, depth=depth, budget=budget)
    with session.open() as calls:
        session.settle(calls)
        answer = calls.query(text, k=k, depth=depth, as_of=as_of, budget=budget, scope=scope, include=session.include)
        searched_types = () if answer.results else _searched_types(calls)
    options.write_svg(svg, lambda: draw_answer(answer))
    session.report(answer, lambda answer: render.answer(answer, searched_types, verbose=session.verbose))
    require(bool(answer.results))


def _searched_types(calls: Calls) -> Sequence[str]:
    """Return the types that a search reads if these are not all, and note why documents may be missing."""
    hints.note_unknown_types(calls)
    ruleset = Ruleset(calls.rules().packs)
    anchors = ruleset.anchor_types
    return sorted(anchors) if anchors < ruleset.pack_of.keys() else ()


@command("data", "rules", "url", "encoder", "attributes")
@click.argument("text")
@MAX_RESULTS
@options.within
def search(session: Session, text: str, k: int, scope: Mapping[str, str]) -> None:
    """Show what plain search finds, in force or not.

    This is the first step of `query`, without the rules: compare the two. Exit code 1 if nothing was found.

    Examples:
      stream-car search 'is lodash 4.17.4 safe to use?'
      stream-car search 'Zantac' --k 20 --json | jq -r 'select(.status != "in_force") | .id'
    """
    session.require_limits(k=k)
    with session.open() as calls:
        session.settle(calls)
        documents = calls.search(text, k, scope=scope, include=session.include)
    session.report_all(documents, render.ranking)
    require(bool(documents))


@command("data", "rules", "url", "attributes")
@IDS
@options.as_of
def resolve(session: Session, ids: Sequence[str], as_of: datetime | None) -> None:
    """Show what controls documents now, by id.

    IDs are those of documents, chunks (`document#chunk`) or records, so that you can keep your own retriever. They may
    be other names of a record, such as a CVE, a package, `package@version` or a purl. Exit code 1 if none of them is
    known.

    Examples:
      stream-car resolve GHSA-jf85-cpcp-j695
      stream-car resolve CVE-2019-10744 lodash@4.17.4 pkg:npm/lodash@4.17.4
      stream-car resolve advisory-17#chunk-3 advisory-18 --json
      your-retriever | xargs stream-car resolve
    """
    with session.open() as calls:
        resolutions = calls.resolve(ids, as_of=as_of, include=session.include)
        is_known = any(resolution.status != "unknown" for resolution in resolutions)
        if not is_known:
            hints.note_unknown_types(calls)
    session.report_each(resolutions, render.resolution)
    require(is_known)


@command("data", "rules", "url")
@IDS
def get(session: Session, ids: Sequence[str]) -> None:
    """Show documents as they were published, by id.

    IDs are those of documents, chunks (`document#chunk`) or records, or other names of a record. Of a record, the
    editions in force are shown; if there are none, the latest one. With --json, `document` is what was published:
    publishing it again changes nothing. Exit code 1 if none of them has a document.

    Examples:
      stream-car get GHSA-jf85-cpcp-j695
      stream-car get advisory-17#chunk-3 advisory-18 --json | jq '.documents[].document.attributes'
    """
    with session.open() as calls:
        lookups = calls.get(ids)
    session.report_each(lookups, render_originals.lookup)
    require(any(lookup.documents for lookup in lookups))


@command("data", "rules", "url", "verbose")
@IDS
@click.option(
    "--question", metavar="TEXT", help="Judge the set as the answer to this question, for its first --depth documents."
)
@options.depth(20)
@options.as_of
def check(session: Session, ids: Sequence[str], question: str | None, depth: int, as_of: datetime | None) -> None:
    """Check whether a set of retrieved documents is safe to use.

    It must hold every document in force that its members lead to, and no superseded document without the one that
    supersedes it (Theorem 4 of the paper, see docs/concepts.md). What repairs the set is shown. Exit code 1 if it is
    not safe, which includes names that are unknown, retracted or pending.

    With --question, it must hold what is in force for each of the first --depth documents that the question finds.
    An answer of `stream-car query` covers fewer of them: those for which its --k documents have room.

    Examples:
      stream-car check GHSA-jf85-cpcp-j695 lodash-4.17.12
      stream-car check doc-1 doc-2 doc-3 --question 'is lodash safe?'
      stream-car check $(your-retriever) --json && echo safe
    """
    session.require_limits(depth=depth)
    with session.open() as calls:
        audit = calls.check(ids, question=question, depth=depth, as_of=as_of)
    session.report(audit, lambda audit: render.audit(audit, verbose=session.verbose))
    require(audit.holds)


@command("data", "rules", "url", "attributes")
@click.argument("name", metavar="ID")
@options.as_of
@options.svg("the chain that leads to the document that controls it now")
def explain(session: Session, name: str, as_of: datetime | None, svg: Path | None) -> None:
    """Explain why a document is in force, or is not.

    Lists its scopes and links, what supersedes it there, and the path to what controls it now. If it joins no scope,
    names the keys that the rules of its type need. Exit code 1 if nothing has this name.

    Examples:
      stream-car explain GHSA-jf85-cpcp-j695
      stream-car explain GHSA-jf85-cpcp-j695 --as-of 2019-07-01
      stream-car explain GHSA-jf85-cpcp-j695 --svg chain.svg
    """
    with session.open() as calls:
        explanation = calls.explain(name, as_of=as_of, include=session.include)
        is_in_no_scope = explanation.status == "in_force" and not explanation.memberships
        ruleset = Ruleset(calls.rules().packs) if is_in_no_scope else None
        if explanation.status == "unknown":
            hints.note_unknown_types(calls)
    options.write_svg(svg, lambda: draw_explanation(explanation))
    session.report(explanation, lambda explanation: render.explanation(explanation, ruleset))
    require(explanation.status != "unknown")

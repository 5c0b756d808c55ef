"""Questions about a small world, what an answer to each says, and what it must say by the definition.

Promise: `read` reduces an answer to what the definition decides; `expected` is the same, computed from the documents.
`marks_of` has the reasons by which an answer says that it may lack what happened lately.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from stream_car.api.calls_aio import AsyncCalls
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import scope_parts
from stream_car.queries import answers as a
from stream_car.queries.read_options import MinRevision
from tests.simulation.two_hops.truth import Known

FAULTS = frozenset({"in_flight", "lost_history", "quarantined", "budget", "limit"})
K = 50

Gist = object
A = TypeVar("A")


class Question(Struct, frozen=True):
    """A kind of question, and its subject: an id, a scope or the name of a world."""

    kind: str
    subject: str


class Sample(Struct, frozen=True):
    """What an answer says, and whether it says that it may lack something."""

    gist: Gist
    is_marked: bool


async def ask(calls: AsyncCalls, question: Question, after: Sequence[MinRevision] = ()) -> Sample:
    """Ask, and return what the answer says."""
    return await _READERS[question.kind](calls, question.subject, after)


def expected(question: Question, indexed: Known, known: Known, ruleset: Ruleset) -> Gist:
    """Return what an answer must say as of `known`; the text index may be of another moment, `indexed`."""
    return _EXPECTED[question.kind](question.subject, indexed, known, ruleset)


async def _resolve(calls: AsyncCalls, subject: str, after: Sequence[MinRevision]) -> Sample:
    [resolution] = await calls.resolve([subject], min_revisions=[(each.id, each.revision) for each in after])
    return Sample(_gist_of_group(resolution.status, resolution.groups), is_marked(resolution))


def _gist_of_group(status: str, groups: Sequence[a.Group]) -> Gist:
    if status not in ("in_force", "superseded") or not groups:
        return None
    [group] = groups
    return (
        status,
        group.anchor.revision,
        frozenset((each.document.id, each.document.revision) for each in group.controlling),
    )


def _resolved(subject: str, _: Known, known: Known, __: Ruleset) -> Gist:
    if subject not in known.corpus:
        return None
    status = "in_force" if subject in known.active else "superseded"
    controlling = frozenset((name, known.corpus[name].revision) for name in known.controlling(subject))
    return status, known.corpus[subject].revision, controlling


async def _explain(calls: AsyncCalls, subject: str, _: Sequence[MinRevision]) -> Sample:
    explanation = await calls.explain(subject)
    groups = (explanation.group,) if explanation.group is not None else ()
    return Sample(_gist_of_group(explanation.status, groups), is_marked(explanation))


async def _get(calls: AsyncCalls, subject: str, after: Sequence[MinRevision]) -> Sample:
    [lookup] = await calls.get([subject], min_revisions=[(each.id, each.revision) for each in after])
    gist = [(each.status, each.document.revision, each.document.title) for each in lookup.documents]
    return Sample(gist[0] if gist else None, is_marked(lookup))


def _looked_up(subject: str, _: Known, known: Known, __: Ruleset) -> Gist:
    document = known.corpus.get(subject)
    status = "in_force" if subject in known.active else "superseded"
    return (status, document.revision, document.title) if document is not None else None


async def _frontier(calls: AsyncCalls, subject: str, _: Sequence[MinRevision]) -> Sample:
    frontiers = await calls.frontier(dict(scope_parts(subject)))
    [members] = [
        frozenset((each.id, each.revision) for each in frontier.in_force)
        for frontier in frontiers
        if frontier.scope == subject
    ] or [frozenset[tuple[str, int]]()]
    return Sample(members, any(map(is_marked, frontiers)))


def _front(subject: str, _: Known, known: Known, __: Ruleset) -> Gist:
    return frozenset((name, known.corpus[name].revision) for name in known.frontier(subject) & known.active)


async def _history(calls: AsyncCalls, subject: str, _: Sequence[MinRevision]) -> Sample:
    histories = await calls.history(dict(scope_parts(subject)))
    [members] = [
        frozenset((each.id, each.revision, each.ended is None) for each in history.members)
        for history in histories
        if history.scope == subject
    ] or [frozenset[tuple[str, int, bool]]()]
    return Sample(members, any(map(is_marked, histories)))


def _members(subject: str, _: Known, known: Known, ruleset: Ruleset) -> Gist:
    return frozenset(
        (name, document.revision, name in known.active)
        for name, document in known.corpus.items()
        if subject in ruleset.scopes(document)
    )


async def _query(calls: AsyncCalls, subject: str, after: Sequence[MinRevision]) -> Sample:
    minimum = [(each.id, each.revision) for each in after]
    answer = await calls.query(subject, k=K, min_revisions=minimum)
    results = frozenset((each.id, each.revision) for each in answer.results if each.id.startswith(f"{subject}."))
    return Sample(results, is_marked(answer))


def _results(_: str, indexed: Known, known: Known, __: Ruleset) -> Gist:
    anchors = [name for name in known.corpus if name in indexed.corpus]
    controlling = {name for anchor in anchors for name in known.controlling(anchor)}
    return frozenset((name, known.corpus[name].revision) for name in controlling)


async def _check(calls: AsyncCalls, subject: str, after: Sequence[MinRevision]) -> Sample:
    audit = await calls.check([subject], min_revisions=[(each.id, each.revision) for each in after])
    return Sample(subject in (*audit.unknown, *audit.retracted), is_marked(audit))


def _is_absent(subject: str, _: Known, known: Known, __: Ruleset) -> Gist:
    return subject not in known.corpus


def is_marked(answer: object) -> bool:
    """Return whether an answer says that it may lack something that happened lately, or before."""
    if isinstance(answer, a.Answer | a.Audit):
        reasons = set(answer.certificate.reasons) if answer.certificate is not None else set()
        return bool(reasons & FAULTS)
    if isinstance(answer, a.Resolution | a.Explanation):
        groups = answer.groups if isinstance(answer, a.Resolution) else [answer.group] if answer.group else []
        reasons = {*answer.reasons, *(reason for group in groups for reason in group.reasons)}
        return bool(reasons & FAULTS)
    assert isinstance(answer, a.Lookup | a.Frontier | a.History)
    return bool(set(answer.reasons) & FAULTS)


_Reader = Callable[[AsyncCalls, str, Sequence[MinRevision]], Awaitable[Sample]]
_READERS: Mapping[str, _Reader] = {
    "resolve": _resolve,
    "explain": _explain,
    "get": _get,
    "frontier": _frontier,
    "history": _history,
    "query": _query,
    "check": _check,
}
_EXPECTED: Mapping[str, Callable[[str, Known, Known, Ruleset], Gist]] = {
    "resolve": _resolved,
    "explain": _resolved,
    "get": _looked_up,
    "frontier": _front,
    "history": _members,
    "query": _results,
    "check": _is_absent,
}
WITH_AFTER = frozenset({"resolve", "get", "query", "check"})  # these take `min_revisions`
ABOUT_SCOPES = frozenset({"frontier", "history"})
KINDS = tuple(_READERS)

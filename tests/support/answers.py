"""Answers written by hand, for tests of what is drawn and encoded."""

from datetime import UTC, datetime
from io import StringIO

from rich.console import Console, RenderableType

from stream_car.queries.answers import (
    Answer,
    Audit,
    Blocked,
    Certificate,
    Change,
    ChangeCause,
    ChangedMember,
    ChangedRun,
    Controlling,
    Ending,
    Evidence,
    Explanation,
    Frontier,
    Group,
    History,
    Membership,
    Rejected,
    Resolution,
    Step,
    TimelineMember,
    Violation,
)

SCOPE = "package=lodash, vulnerability=CVE-2019-10744"
STEP = Step(id="lodash-4.17.12", rule="release_voids_advisory", scope=SCOPE)
ADVISORY = Evidence(
    id="GHSA-jf85",
    type="advisory",
    time=datetime(2019, 7, 10, 19, 45, 23, tzinfo=UTC),
    status="superseded",
    title="Prototype Pollution in lodash",
)
RELEASE = Evidence(
    id="lodash-4.17.12",
    type="release_note",
    time=datetime(2019, 7, 11, tzinfo=UTC),
    title="lodash 4.17.12 mends prototype pollution",
    source="lodash",
    url="https://example.org/4.17.12",
)
GROUP = Group(
    anchor=ADVISORY, score=3.5, controlling=(Controlling(document=RELEASE, path=(STEP,)),), superseded=(ADVISORY,)
)
SURE = Certificate(covered=("GHSA-jf85",), generation="g", cut=(61,), phi=0.5, kappa=2.0)
ANSWER = Answer(question="is lodash safe?", results=(RELEASE,), groups=(GROUP,), certificate=SURE)
CYCLE = Group(anchor=ADVISORY, complete=False, reasons=("cycle",), cycle=("GHSA-jf85", "GHSA-other"))
ORPHAN = Group(anchor=ADVISORY, complete=False, reasons=("successor_missing",), missing=("GHSA-new",))
BROKEN = Answer(
    question="is lodash safe?",
    results=(),
    groups=(CYCLE, ORPHAN),
    certificate=Certificate(covered=(), complete=False, reasons=("cycle", "successor_missing"), cut=(61,)),
    pending=2,
)
RESOLUTION = Resolution(name="GHSA-jf85#3", status="superseded", via="chunk", groups=(GROUP,))
AUDIT = Audit(
    holds=False,
    violations=(Violation(condition="frontier_inclusion", id="GHSA-jf85", add=("lodash-4.17.12",), path=(STEP,)),),
    repaired=("lodash-4.17.12",),
    unknown=("nobody",),
)
FRONTIER = Frontier(
    scope=SCOPE,
    in_force=(RELEASE,),
    blocked=(Blocked(document=ADVISORY, scope="record=R", by="R@2", rule="security.editions"),),
    members=3,
)
HISTORY = History(
    scope=SCOPE,
    members=(
        TimelineMember(
            id="GHSA-jf85",
            type="advisory",
            revision=1,
            time=ADVISORY.time,
            append_time=ADVISORY.time,
            ended=Ending(time=RELEASE.time, id=RELEASE.id, rule="release_voids_advisory"),
        ),
        TimelineMember(
            id=RELEASE.id,
            type="release_note",
            revision=1,
            time=RELEASE.time,
            append_time=RELEASE.time,
            title=RELEASE.title,
        ),
    ),
)
CHANGE = Change(
    position="g/0/41",
    scope=SCOPE,
    seq=2,
    cause=ChangeCause(id=RELEASE.id, revision=1, title=RELEASE.title),
    offset=17,
    entered=(ChangedMember(id=RELEASE.id, revision=1, type="release_note", time=RELEASE.time),),
    left=(
        ChangedMember(
            id=ADVISORY.id,
            revision=1,
            type="advisory",
            time=ADVISORY.time,
            why="voided",
            rule="release_voids_advisory",
        ),
    ),
    left_runs=(
        ChangedRun(
            type="workaround",
            start=datetime(1970, 1, 1, tzinfo=UTC),
            end=RELEASE.time,
            count=1200,
            why="voided",
            rule="release_voids_notes",
        ),
    ),
)
EXPLANATION = Explanation(
    name="GHSA-jf85",
    status="superseded",
    document=ADVISORY,
    memberships=(Membership(scope=SCOPE, holds=False, by=(STEP,)), Membership(scope="record=GHSA-jf85", holds=True)),
    group=GROUP,
)
REJECTED = Rejected(
    offset=9,
    code="syntax",
    reason="the JSON ends early",
    append_time=datetime(1970, 1, 1, tzinfo=UTC),
    number=3,
    content='{"id": "x\x1b[31m"',
)


def drawn(value: RenderableType, *, width: int = 120, color: bool = False) -> str:
    """Return what a terminal of this width would show."""
    file = StringIO()
    console = Console(
        file=file,
        width=width,
        force_terminal=color,
        color_system="truecolor" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(value)
    return file.getvalue()

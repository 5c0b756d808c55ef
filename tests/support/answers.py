"""Answers made by hand: what the drawings are judged by."""

from io import StringIO

from rich.console import Console, RenderableType

from stream_car.codec import parse_time
from stream_car.core.changes import Cause, FrontierChange, Member, Run
from stream_car.queries.answers import (
    Answer,
    Audit,
    Blocked,
    Bond,
    Certificate,
    Controlling,
    Ending,
    Evidence,
    Explanation,
    Frontier,
    Group,
    Held,
    History,
    Rejected,
    Resolution,
    Step,
    Told,
    Violation,
)

SCOPE = "package=lodash, vulnerability=CVE-2019-10744"
STEP = Step(id="lodash-4.17.12", rule="release_voids_advisory", scope=SCOPE)
ADVISORY = Evidence(
    id="GHSA-jf85",
    type="advisory",
    time=parse_time("2019-07-10T19:45:23Z"),
    active=False,
    title="Prototype Pollution in lodash",
)
RELEASE = Evidence(
    id="lodash-4.17.12",
    type="release_note",
    time=parse_time("2019-07-11T00:00:00Z"),
    title="lodash 4.17.12 mends prototype pollution",
    source="lodash",
    url="https://example.org/4.17.12",
)
GROUP = Group(
    anchor=ADVISORY, score=3.5, controlling=(Controlling(document=RELEASE, path=(STEP,)),), passed=(ADVISORY,)
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
RESOLUTION = Resolution(asked="GHSA-jf85#3", status="void", via="chunk", groups=(GROUP,))
AUDIT = Audit(
    holds=False,
    violations=(Violation(condition="frontier_inclusion", id="GHSA-jf85", add=("lodash-4.17.12",), path=(STEP,)),),
    repaired=("lodash-4.17.12",),
    unknown=("nobody",),
)
FRONTIER = Frontier(
    scope=SCOPE,
    active=(RELEASE,),
    blocked=(Blocked(document=ADVISORY, scope="record=R", by="R@2", rule="security.editions"),),
    members=3,
)
HISTORY = History(
    scope=SCOPE,
    members=(
        Held(
            id="GHSA-jf85",
            type="advisory",
            revision=1,
            time=ADVISORY.time,
            ended=Ending(time=RELEASE.time, id=RELEASE.id, rule="release_voids_advisory"),
        ),
        Held(id=RELEASE.id, type="release_note", revision=1, time=RELEASE.time, title=RELEASE.title),
    ),
)
CHANGE = FrontierChange(
    scope=SCOPE,
    seq=2,
    cause=Cause(id=RELEASE.id, revision=1, title=RELEASE.title),
    offset=17,
    entered=(Member(id=RELEASE.id, revision=1, type="release_note"),),
    left=(Member(id=ADVISORY.id, revision=1, type="advisory", why="voided", rule="release_voids_advisory"),),
    left_runs=(
        Run(
            type="workaround", start=(0, 0), end=(RELEASE.time, 0), count=1200, why="voided", rule="release_voids_notes"
        ),
    ),
)
TOLD = Told(position="g/0/41", oseq=41, change=CHANGE)
EXPLANATION = Explanation(
    asked="GHSA-jf85",
    status="void",
    document=ADVISORY,
    bonds=(Bond(scope=SCOPE, holds=False, by=(STEP,)), Bond(scope="record=GHSA-jf85", holds=True)),
    group=GROUP,
)
REJECTED = Rejected(offset=9, code="syntax", reason="the JSON ends early", append_time=0, value=b'{"id": "x\x1b[31m"')


def drawn(value: RenderableType, *, width: int = 120, color: bool = False) -> str:
    """What a terminal of this width would get."""
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

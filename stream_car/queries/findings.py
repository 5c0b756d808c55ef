"""What `affected` answers: for each package, which records in force concern its version."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from stream_car.queries.steps import Incomplete, Step
from stream_car.versions.verdicts import AffectedStatus, Basis, PackageStatus


class Exploitation(Struct, frozen=True, kw_only=True):
    """A report in force that a vulnerability is exploited, and since when it is listed."""

    id: str
    title: str
    time: datetime
    url: str = ""


class Statement(Struct, frozen=True, kw_only=True):
    """A VEX statement in force about a vulnerability of a package.

    `decides` says whether its author may say so: it is about the product that was named, or its author is trusted. A
    statement that a package is not affected must say why: without a justification or an impact it never decides.
    """

    id: str
    status: str
    author: str
    time: datetime
    product: str = ""
    justification: str = ""
    impact: str = ""
    decides: bool = False


class Disagreement(Struct, frozen=True, kw_only=True):
    """Another record in force about the same vulnerability, which says the opposite of the version."""

    record: str
    document: str
    status: AffectedStatus
    range: str = ""


class Succession(Struct, frozen=True, kw_only=True):
    """How an earlier document led to the one in force: the steps from `start`."""

    start: str
    steps: tuple[Step, ...]


class RecordFinding(Struct, frozen=True, kw_only=True):
    """A document in force about a vulnerability of a package, and what it says of the version.

    `names` are those of the vulnerability. `basis` tells what `status` rests on, `range` which versions are affected,
    `fixed_in` which later ones are not, the nearest first. `outcome` is set if the record holds no more, which is
    listed only on request. A statement that decides overrules what the document says, `stated_status`. Publishers may
    disagree: `disputed_by` names those who say the opposite.
    """

    document: str
    record: str
    type: str
    time: datetime
    names: tuple[str, ...]
    status: AffectedStatus
    basis: Basis
    range: str = ""
    fixed_in: tuple[str, ...] = ()
    justification: str = ""
    stated_status: AffectedStatus | None = None
    title: str = ""
    source: str = ""
    url: str = ""
    state: str = ""
    state_text: str = ""
    outcome: str = ""
    outcome_text: str = ""
    exploited: tuple[Exploitation, ...] = ()
    statements: tuple[Statement, ...] = ()
    disputed_by: tuple[Disagreement, ...] = ()
    chains: tuple[Succession, ...] = ()


class PackageFindings(Struct, frozen=True, kw_only=True):
    """What is known of one package and version. `status` is the worst of its findings in force.

    Exploited vulnerabilities come first, then affected, unknown and not affected. Without a finding, the package is
    `not_affected` if records name it, and none in force concerns its version. It is `no_record` if none names it: it
    may be clean, or its name is wrong. It is `unknown` if records about it exist, but not what they said at the time
    (`history_unknown`). `reasons` tell why these may not be all.
    """

    package: str
    name: str
    version: str
    ecosystem: str
    status: PackageStatus
    findings: tuple[RecordFinding, ...] = ()
    reasons: tuple[Incomplete, ...] = ()


def by_vulnerability(findings: Sequence[RecordFinding]) -> list[list[RecordFinding]]:
    """Return findings that share a name of a vulnerability together, in the order of the first of each."""
    groups: list[tuple[set[str], list[RecordFinding]]] = []
    for finding in findings:
        names = {name.upper() for name in finding.names}
        joined = [
            group for group in groups if not group[0].isdisjoint(names) and group[1][0].outcome == finding.outcome
        ]
        if not joined:
            groups.append((names, [finding]))
            continue
        first, *others = joined
        first[0].update(names, *(group[0] for group in others))
        first[1].extend([*(each for group in others for each in group[1]), finding])
        groups = [group for group in groups if group not in others]
    return [findings for _, findings in groups]

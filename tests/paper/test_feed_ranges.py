"""Go's vulnerability database, judged version by version: 2,444 editions of records, with 6,928 events.

Every version that an event introduces is affected. Of the 2,856 that fix a range, 99.5 % are not: the other 14 are in
another range of the same record, as it was published.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

import pytest
from msgspec import Struct
from msgspec.structs import replace

from stream_car.versions.osv_ranges import osv_judge
from stream_car.versions.packages import Package
from stream_car.versions.verdicts import Verdict
from tests.support.feeds import DATA

HISTORY = DATA / "osv-go.history.jsonl"
STILL_AFFECTED = {  # fixes that are in another range of the same record
    "GO-2023-2185": {"1.20.11", "1.21.4"},  # a first fix that did not hold, with a range of its own
    "GO-2025-3442": {"0.38.17"},  # a second entry about the same module has no first version: below 1.0.1
    "GO-2025-3443": {"0.38.16", "0.38.17"},
    "GO-2025-3448": {"2.0.6", "2.1.5"},
    "GO-2025-3561": {"1.16.8"},  # a second entry about the same module: all versions
    "GO-2025-3825": {"2.12.4-rc1+incompatible", "2.13.1-rc1+incompatible"},
    "GO-2026-5148": {"3.7.14"},
}

pytestmark = pytest.mark.skipif(not HISTORY.is_file(), reason=f"{HISTORY} is not there")


class RangeEvent(Struct, frozen=True):
    """An event of a range, the verdict on its version, and whether the fixes that it names are affected."""

    record: str
    kind: str
    version: str
    verdict: Verdict
    fixes: tuple[str, ...]


def events() -> Iterator[RangeEvent]:
    for line in HISTORY.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)["record"]
        affected: Sequence[Mapping[str, Mapping[str, str]]] = record.get("affected", [])
        judge = osv_judge(affected)
        for entry in affected:
            name, ecosystem = entry["package"]["name"], entry["package"]["ecosystem"]
            for kind, version in pairs(entry):
                package = Package(text=name, name=name, ecosystem=ecosystem, version=version)
                verdict = judge(package)
                assert verdict is not None
                at_fixes = (judge(replace(package, version=fix)) for fix in verdict.fixed_in)
                yield RangeEvent(record["id"], kind, version, verdict, tuple(each.status for each in at_fixes if each))


def pairs(entry: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    ranges = entry.get("ranges")
    assert isinstance(ranges, list)
    for each in ranges:
        for event in each["events"]:
            for kind, version in event.items():
                yield kind, version if version != "0" else "0.0.0-0"


def test_what_an_event_introduces_is_affected_and_what_it_fixes_is_not() -> None:
    judged = list(events())
    introduced = [each for each in judged if each.kind == "introduced"]
    fixed = [each for each in judged if each.kind == "fixed"]
    still_affected: dict[str, set[str]] = {}
    for each in fixed:
        if each.verdict.status != "not_affected":
            still_affected.setdefault(each.record, set()).add(each.version)

    assert (len(introduced), len(fixed), len(judged)) == (4072, 2856, 6928)
    assert {each.verdict.status for each in introduced} == {"affected"}
    assert still_affected == STILL_AFFECTED
    assert sum(each.verdict.status == "affected" for each in fixed) == 14


def test_a_fix_that_is_named_for_an_affected_version_is_not_affected() -> None:
    assert {status for each in events() for status in each.fixes} == {"not_affected"}

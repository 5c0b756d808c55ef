"""Samples of public feeds give, published and asked for, the counts that were worked out from them by hand.

The samples lie beside the repository, not in it; where they are missing these tests say so.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import stream_car
from stream_car.core.documents import Document
from stream_car.runtime.embedded import Engine
from tests.feeds import DATA, Reading, documents, in_force, published

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the samples are not at {DATA}")


class Osv(msgspec.Struct):
    """What the history of the Go database must give."""

    lines: int
    records: int
    superseded_revisions: int
    withdrawn_now: int
    withdrawn_ever: int
    fixed_now: int
    unfixed_now: int
    withdrawn_ids: list[str]
    reinstated_ids: list[str]
    fix_retracted_ids: list[str]
    packages: int
    transitions: dict[str, int]


class Truth(msgspec.Struct, rename={"osv": "osv-go"}):
    """The counts of every sample."""

    osv: Osv


@pytest.fixture(scope="module")
def truth() -> Truth:
    return msgspec.json.decode((DATA / "truth.json").read_bytes(), type=Truth)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with stream_car.open(tmp_path / "data") as opened:
        yield opened


HISTORY = DATA / "osv-go.history.jsonl"


def edition_of(name: str) -> str:
    return name.removesuffix("/fixed")


def record_of(name: str) -> str:
    return name.partition("@")[0]


def test_the_go_database_has_the_editions_in_force_that_it_should(truth: Truth, engine: Engine) -> None:
    steps = published(engine, "osv", [HISTORY])
    said = [one for step in steps if step.converted is not None for one in documents(step.converted.documents)]
    editions = {edition_of(one.id) for one in said}
    records = sorted({record_of(one.id) for one in said})
    active = in_force(engine, records)
    holding = {edition_of(name) for found in active.values() for name in found}
    withdrawn = {record for record, found in active.items() if "advisory_withdrawn" in found.values()}
    ever = {record_of(one.id) for one in said if one.type == "advisory_withdrawn"}

    assert len(editions) == truth.osv.lines
    assert len(records) == truth.osv.records
    assert len(holding) == truth.osv.records
    assert len(editions - holding) == truth.osv.superseded_revisions
    assert sorted(withdrawn) == truth.osv.withdrawn_ids
    assert len(withdrawn) == truth.osv.withdrawn_now
    assert len(ever) == truth.osv.withdrawn_ever
    assert sorted(ever - withdrawn) == truth.osv.reinstated_ids


def fixes(parts: list[Document]) -> set[tuple[str, str]]:
    found = [one.attributes["fixed"] for one in parts]
    return {
        (name, version)
        for fixed in found
        if isinstance(fixed, dict)
        for name, versions in fixed.items()
        for version in versions
    }


def values(parts: list[Document], key: str) -> set[str]:
    return {value for one in parts for part in one.scope for value in part.get(key, ())}


def test_fixes_and_aliases_come_and_go_as_the_go_database_says(truth: Truth) -> None:
    reading = Reading("osv")
    now: dict[str, list[Document]] = {}
    counts: Counter[str] = Counter()
    retracted = []
    for text in HISTORY.read_bytes().splitlines():
        parts = documents(reading.read(text))
        before = now.get(name := record_of(parts[0].id))
        now[name] = parts
        if before is None:
            continue
        old, new = fixes(before), fixes(parts)
        if old != new:
            what = "added" if not old else "replaced" if new else "retracted"
            counts.update([f"fix_{what}", "fix_set_changed"])
            retracted += [name] if what == "retracted" else []
        names = values(before, "vulnerability"), values(parts, "vulnerability")
        counts.update({"alias_added": bool(names[1] - names[0]), "alias_removed": bool(names[0] - names[1])})

    assert sum(bool(fixes(parts)) for parts in now.values()) == truth.osv.fixed_now
    assert sum(not fixes(parts) for parts in now.values()) == truth.osv.unfixed_now
    assert sorted(retracted) == truth.osv.fix_retracted_ids
    assert counts.items() <= truth.osv.transitions.items()
    assert len({name for parts in now.values() for name in values(parts, "package")}) == truth.osv.packages


def test_the_same_history_again_changes_nothing(engine: Engine) -> None:
    published(engine, "osv", [HISTORY])
    before = engine.next_offset
    [step] = published(engine, "osv", [HISTORY])

    assert step.unchanged is not None
    assert engine.next_offset == before

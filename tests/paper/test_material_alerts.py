"""What is told by default of the history of a public feed, against a count made from its records alone.

The sample is beside the repository, not in it; the test is skipped without it.
"""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from stream_car import RecordChange
from stream_car.local.engine import Engine
from tests.support.feeds import DATA, published

HISTORY = DATA / "osv-go.history.jsonl"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the samples are not at {DATA}")


def material(record: dict[str, object]) -> str:
    """Return what matters of an OSV record: its names, whether it is withdrawn, and what it affects."""
    affected = record.get("affected") or []
    assert isinstance(affected, list)
    parts = [[entry.get("package", {}).get("name"), _ranges(entry)] for entry in affected]
    names = sorted([str(record["id"]), *(record.get("aliases") or [])])  # type: ignore[misc]
    return json.dumps([names, bool(record.get("withdrawn")), sorted(map(json.dumps, parts))])


def _ranges(entry: dict[str, list[dict[str, object]]]) -> object:
    ranges = [[each["type"], each.get("events")] for each in entry.get("ranges") or ()]
    return ranges or sorted(map(str, entry.get("versions") or ()))


def test_each_edition_of_the_go_database_that_matters_is_told_and_no_other(tmp_path: Path) -> None:
    editions: dict[str, list[dict[str, object]]] = {}
    for line in HISTORY.read_bytes().splitlines():
        record = json.loads(line)["record"]
        editions.setdefault(record["id"], []).append(record)
    expected = Counter(
        name
        for name, records in editions.items()
        for before, after in pairwise(records)
        if material(before) != material(after)
    )
    with Engine(tmp_path / "data", rules=["security"]) as engine:
        published(engine, "osv", [HISTORY])
        events = [e for e in engine.subscribe(view="record", since="1970-01-01") if isinstance(e, RecordChange)]
        every = list(engine.subscribe(view="record", since="1970-01-01", material=False))
        resolved = {r.name: r for name in editions for r in engine.resolve([name])}
    news = [event for event in events if event.earlier]

    assert Counter(event.record for event in events if not event.earlier) == Counter(editions.keys())
    assert Counter(event.record for event in news) == expected
    assert len(every) == len(events) + sum(len(records) - 1 for records in editions.values()) - len(news)
    assert len(news) < len(every) / 4
    latest = {event.record: event for event in events}
    assert {name: (e.status, e.state_now) for name, e in latest.items()} == {
        name: (r.status, r.state) for name, r in resolved.items()
    }

"""What becomes of the records of a public feed, in the words of the pack, against counts made independently.

The sample is beside the repository, not in it; the test is skipped without it.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_car.local.engine import Engine
from tests.support.feeds import DATA, published

HISTORY = DATA / "osv-go.history.jsonl"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the samples are not at {DATA}")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path / "data", rules=["security"]) as car:
        yield car


def test_the_go_database_says_what_became_of_its_records(engine: Engine) -> None:
    truth = json.loads((DATA / "truth.json").read_bytes())["osv-go"]
    published(engine, "osv", [HISTORY])
    lines = HISTORY.read_bytes().splitlines()
    latest = {record["id"]: record for record in (json.loads(line)["record"] for line in lines)}
    resolutions = {r.name: r for r in engine.resolve(sorted(latest)[:1000]) + engine.resolve(sorted(latest)[1000:])}
    withdrawn = {name: r.outcome_text for name, r in resolutions.items() if r.state == "withdrawn"}
    members = [(name, m) for name in latest for h in engine.history({"record": name}) for m in h.members]
    of = {word: {name for name, m in members if m.outcome == word} for word in ("reopened", "reinstated")}

    assert sorted(withdrawn) == truth["withdrawn_ids"]
    assert withdrawn == {name: f"withdrawn {latest[name]['withdrawn'][:10]}" for name in withdrawn}
    assert {name for name, r in resolutions.items() if r.status == "superseded"} == set(withdrawn)
    assert sorted(of["reopened"]) == truth["fix_retracted_ids"]
    assert sorted(of["reinstated"]) == truth["reinstated_ids"]
    assert sum(m.outcome == "revised" for _, m in members) > sum(m.ended is not None for _, m in members) / 2
    for name, resolution in list(resolutions.items())[:100] + [(name, resolutions[name]) for name in withdrawn]:
        explanation = engine.explain(name)
        assert (explanation.status, explanation.outcome_text) == (resolution.status, resolution.outcome_text)

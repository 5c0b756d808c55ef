"""A publisher is killed at random points: what it was told is kept is there, once, and all that follows from it."""

import subprocess
import sys
from pathlib import Path
from random import Random

import msgspec
import pytest

import stream_car
from stream_car import Document, Engine
from stream_car.codec import decode
from stream_car.core import definitions
from stream_car.core.changes import FrontierChange
from stream_car.local.run_sync import at_once
from stream_car.processing.fold import CHANGES, Fold
from stream_car.processing.headers import Header
from stream_car.processing.state import HEADER, decode_value
from tests.simulation.world import World, finish
from tests.support.processes.publisher import BATCH_MAX, DOMAINS, said
from tests.support.repository import ROOT

ALL = 1 << 30


def killed_publisher(folder: Path, seed: int, seconds: float) -> int:
    """The last offset that was acknowledged to a publisher before it was killed, after so long a time."""
    program = [sys.executable, "-m", "tests.support.processes.publisher", str(folder), str(seed)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        try:
            told, _ = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            told, _ = child.communicate()
    lines = [line for line in told.splitlines(keepends=True) if line.endswith("\n")]
    return int(lines[-1]) if lines else 0


def check_state_and_changes(engine: Engine) -> None:
    """The state is, byte for byte, that of a shard which read this log without interruption; so are the events."""
    records = at_once(engine._log.fetch(0, 0, ALL))
    assert [record.value for record in records] == [said(n) for n in range(len(records))]
    world = World(records, Fold(engine.ruleset), Random(0), fault_rate=0.0)
    shard = world.shard()
    while finish(shard.run_once()):
        pass
    expected = world.store.state
    cut, found = at_once(engine._built.store.peek(0, list(expected.values)))
    rows: list[tuple[int]] = engine._built.file.connection.execute("SELECT COUNT(*) FROM entries").fetchall()
    assert (cut, rows[0][0]) == (len(records), len(expected.values))
    assert found == expected.values
    assert at_once(engine._built.journal.last(0)) == len(world.journal.events)
    told = [msgspec.json.decode(e.value, type=FrontierChange) for e in world.journal.events if e.stream == CHANGES]
    assert [one.change for one in engine.changes(limit=ALL)] == told


def check_against_the_definition(engine: Engine) -> None:
    """Every scope's frontier, and what its changes tell of it, equal the definition; every document is found."""
    corpus = definitions.current_documents(decode(said(n)) for n in range(engine.next_offset))
    by_scope: dict[str, dict[str, Document]] = {}
    for document in corpus.values():
        for scope in engine.ruleset.scopes(document):
            by_scope.setdefault(scope, {})[document.id] = document
    told: dict[str, set[tuple[str, int]]] = {}
    seqs: dict[str, int] = {}
    for one in engine.changes(limit=ALL):
        change = one.change
        seqs[change.scope] = seqs.get(change.scope, 0) + 1
        assert change.seq == seqs[change.scope]
        assert not (change.entered_runs or change.left_runs)
        members = told.setdefault(change.scope, set())
        if not change.scope.startswith("document="):
            members.difference_update((gone.id, gone.revision) for gone in change.left)
            members.update((new.id, new.revision) for new in change.entered)
    for scope, documents in by_scope.items():
        expected = definitions.frontier(scope, documents, engine.ruleset)
        assert told[scope] == {(name, corpus[name].revision) for name in expected}
        [frontier] = [one for one in engine.frontier(scope) if one.scope == scope]
        assert {e.id for e in frontier.active} | {b.document.id for b in frontier.blocked} == expected
    for document in corpus.values():
        assert [hit.id for hit in engine.relevance(document.title, 1)] == [document.id]


def kill_often(folder: Path, times: int, seed: int) -> None:
    random = Random(seed)
    acknowledged = 0
    seconds = 0.25  # the longest that a publisher lives; longer where the machine is slow
    for n in range(times):
        told = killed_publisher(folder, seed + n, random.uniform(0.02, seconds))
        acknowledged = max(told, acknowledged)
        with stream_car.open(folder, domains=DOMAINS) as engine:
            assert acknowledged <= engine.next_offset <= acknowledged + 2 * BATCH_MAX
            acknowledged = engine.next_offset
            seconds *= 1 if acknowledged else 1.3
            check_state_and_changes(engine)
            assert applied(engine) == engine.next_offset
    with stream_car.open(folder, domains=DOMAINS) as engine:
        assert engine.next_offset > times
        check_against_the_definition(engine)


def applied(engine: Engine) -> int:
    """How many records the state has counted, whatever their outcome."""
    _, found = at_once(engine._built.store.peek(0, [HEADER]))
    header = decode_value(HEADER, found.get(HEADER))
    return sum(header.counts.values()) if isinstance(header, Header) else 0


def test_nothing_acknowledged_is_lost_and_nothing_applied_twice(tmp_path: Path) -> None:
    kill_often(tmp_path, times=20, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_nothing_is_lost_at_two_hundred_points(block: int, tmp_path: Path) -> None:
    kill_often(tmp_path, times=20, seed=1000 * (block + 1))

"""A publisher is killed at random points: what was acknowledged is stored and applied exactly once."""

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

import stream_car
from stream_car import Engine, rule_packs
from stream_car.codec import decode
from stream_car.core import definitions
from stream_car.core.documents import Document
from stream_car.local.run_sync import run_sync
from stream_car.ports import Record
from stream_car.processing.fold import CHANGES, Fold
from tests.simulation.world import World, finish
from tests.support.processes.publisher import BATCH_MAX, RULE_PACKS, message
from tests.support.repository import ROOT

ALL = 1 << 30


def killed_publisher(folder: Path, seed: int, seconds: float) -> int:
    """Return the last offset that was acknowledged to a publisher before it was killed, after this time."""
    program = [sys.executable, "-m", "tests.support.processes.publisher", str(folder), str(seed)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        try:
            output, _ = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            output, _ = child.communicate()
    lines = [line for line in output.splitlines(keepends=True) if line.endswith("\n")]
    return int(lines[-1]) if lines else 0


class UninterruptedRun:
    """A shard that reads the same log without interruption. It continues from check to check."""

    def __init__(self) -> None:
        ruleset = rule_packs.load(RULE_PACKS)
        self.records: list[Record] = []
        self._world = World(self.records, Fold(ruleset), Random(0), fault_rate=0.0)
        self._shard = self._world.shard()

    def check(self, engine: Engine) -> None:
        """Compare log, state and changes of an engine, byte for byte."""
        directory, projection = engine.directory, engine.directory.projection
        records = list(run_sync(directory._log.fetch(0, 0, ALL)))
        assert records[: len(self.records)] == self.records
        assert [record.value for record in records] == [message(n) for n in range(len(records))]
        self._advance(records)
        state = self._world.store.state
        cut, values = run_sync(projection.store.peek(0, list(state.values)))
        rows: list[tuple[int]] = projection.file.connection.execute("SELECT COUNT(*) FROM entries").fetchall()
        assert (cut, rows[0][0]) == (len(records), len(state.values))
        assert values == state.values
        assert run_sync(projection.change_log.last(0)) == len(self._world.journal.events)
        changes = run_sync(projection.change_log.read(0, CHANGES, after=0, limit=ALL))
        assert list(changes) == [event for event in self._world.journal.events if event.stream == CHANGES]
        assert len(engine.changes(limit=ALL)) == len(changes)

    def _advance(self, records: list[Record]) -> None:
        self.records += records[len(self.records) :]
        self._world.log.end = len(records)
        while finish(self._shard.run_once()):
            pass


def check_against_the_definition(engine: Engine) -> None:
    """The frontier of every scope, and the sum of its changes, equal the definition; every document can be searched."""
    directory = engine.directory
    corpus = definitions.current_documents(decode(message(n)) for n in range(directory.next_offset))
    by_scope: dict[str, dict[str, Document]] = {}
    for document in corpus.values():
        for scope in directory.ruleset.scopes(document):
            by_scope.setdefault(scope, {})[document.id] = document
    replayed: dict[str, set[tuple[str, int]]] = {}
    seqs: dict[str, int] = {}
    for change in engine.changes(limit=ALL):
        seqs[change.scope] = seqs.get(change.scope, 0) + 1
        assert change.seq == seqs[change.scope]
        assert not (change.entered_runs or change.left_runs)
        members = replayed.setdefault(change.scope, set())
        if not change.scope.startswith("document="):
            members.difference_update((member.id, member.revision) for member in change.left)
            members.update((member.id, member.revision) for member in change.entered)
    for scope, documents in by_scope.items():
        expected = definitions.frontier(scope, documents, directory.ruleset)
        assert replayed[scope] == {(name, corpus[name].revision) for name in expected}
        [frontier] = [frontier for frontier in engine.frontier(scope) if frontier.scope == scope]
        assert {e.id for e in frontier.in_force} | {b.document.id for b in frontier.blocked} == expected
    for document in corpus.values():
        assert [hit.id for hit in engine.search(document.title, 1)] == [document.id]


def kill_often(folder: Path, times: int, seed: int) -> None:
    random = Random(seed)
    acknowledged = 0
    uninterrupted = UninterruptedRun()
    seconds = 0.25  # the longest life of a publisher; longer on a slow machine
    for n in range(times):
        printed = killed_publisher(folder, seed + n, random.uniform(0.02, seconds))
        acknowledged = max(printed, acknowledged)
        with stream_car.open(folder, rules=RULE_PACKS) as engine:
            status = engine.status()
            assert acknowledged <= status.next_offset <= acknowledged + 2 * BATCH_MAX
            acknowledged = status.next_offset
            seconds *= 1 if acknowledged else 1.3
            uninterrupted.check(engine)
            assert sum(status.outcomes.values()) == status.next_offset
    with stream_car.open(folder, rules=RULE_PACKS) as engine:
        assert engine.status().next_offset > times
        check_against_the_definition(engine)


def test_nothing_acknowledged_is_lost_and_nothing_applied_twice(tmp_path: Path) -> None:
    kill_often(tmp_path, times=20, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_nothing_is_lost_at_two_hundred_points(block: int, tmp_path: Path) -> None:
    kill_often(tmp_path, times=20, seed=1000 * (block + 1))

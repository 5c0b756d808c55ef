"""Pathway: R1-R10 as joins and groups, kept up to date by its incremental engine.

Promise: of the formulations that were tried this is the fastest that does the whole task: which
revision counts (the greatest by id), the scope of each document, the newest superseder by scope and
type, and whether a member reaches it; a callback numbers the changes of each scope. Easier: one scope
a document, rules that do not compare attributes, no links; changes are told once for a hundred
documents, without rule or cause; starting up is not counted; its engine runs beside the thread that
feeds it, on a core of its own.
"""

from collections.abc import Mapping, Sequence
from threading import Semaphore
from time import perf_counter

import pathway as pw

from benchmarks.speed.feed import Arrival
from benchmarks.speed.rivals import COMMIT, Held, Outcome, Row, rows, rule_pairs
from stream_car.core.documents import Retraction
from stream_car.processing.fold import Fold


class _Observer:
    """The frontiers as the callbacks tell of them, and a sequence number for each scope."""

    def __init__(self) -> None:
        self.held: Held = set()
        self.numbers: dict[str, int] = {}
        self.last = 0.0
        self.commits = 0
        self.told = Semaphore(0)
        self._batch: dict[str, tuple[list[str], list[str]]] = {}

    def on_change(self, key: object, row: Mapping[str, str], time: int, is_addition: bool) -> None:
        self._batch.setdefault(row["scope"], ([], []))[is_addition].append(row["name"])

    def on_time_end(self, time: int) -> None:
        for scope, (left, entered) in self._batch.items():
            self.numbers[scope] = self.numbers.get(scope, 0) + 1
            self.held.difference_update((scope, name) for name in left)
            self.held.update((scope, name) for name in entered)
        self._batch.clear()
        self.last = perf_counter()
        self.commits += 1
        self.told.release()


class _Feeder(pw.io.python.ConnectorSubject):  # type: ignore[misc]  # an optional package, without types here
    """Commits of a hundred; `wait` for the changes of each before the next."""

    def __init__(self, observer: _Observer, *, wait: bool, session: str) -> None:
        super().__init__(session_type=session)
        self.observer = observer
        self.wait = wait
        self.began = 0.0

    def committed(self) -> None:
        self.commit()
        if self.wait:
            self.observer.told.acquire()


class _Statements(_Feeder):
    """Every statement as its decoded fields."""

    def __init__(self, arrivals: Sequence[Arrival], observer: _Observer, *, wait: bool) -> None:
        super().__init__(observer, wait=wait, session="native")
        self.arrivals = arrivals

    def run(self) -> None:
        self.began = perf_counter()
        for at in range(0, len(self.arrivals), COMMIT):
            for arrival in self.arrivals[at : at + COMMIT]:
                said = arrival.said
                if isinstance(said, Retraction):
                    rank = 2 * (said.revision or 0) + 1
                    self.next(name=said.id, rank=rank, type="", time=0, employee="", ticker="")
                    continue
                part = said.scope[0]
                self.next(
                    name=said.id,
                    rank=2 * said.revision,
                    type=said.type,
                    time=said.time,
                    employee=part["employee"][0],
                    ticker=part["ticker"][0],
                )
            self.committed()


class _Rows(_Feeder):
    """Only the revision that counts, with its scope; which that is, is decided here."""

    def __init__(self, ready: Sequence[Row], observer: _Observer, *, wait: bool) -> None:
        super().__init__(observer, wait=wait, session="upsert")
        self.ready = ready

    def run(self) -> None:
        self.began = perf_counter()
        stands: dict[str, Row] = {}
        for at in range(0, len(self.ready), COMMIT):
            for row in self.ready[at : at + COMMIT]:
                stood = stands.get(row.id)
                if stood is not None and row.rank <= stood.rank:
                    continue
                stands[row.id] = row
                if row.scope:
                    self.next(name=row.id, type=row.type, time=row.time, scope=row.scope)
                elif stood is not None and stood.scope:
                    self.delete(name=stood.id, type=stood.type, time=stood.time, scope=stood.scope)
            self.committed()


def whole_task(fold: Fold, arrivals: Sequence[Arrival], *, wait: bool = True) -> Outcome:
    """Statements in, numbered changes out."""
    pw.internals.parse_graph.G.clear()
    observer = _Observer()
    feeder = _Statements(arrivals, observer, wait=wait)
    fields = pw.schema_from_types(name=str, rank=int, type=str, time=int, employee=str, ticker=str)
    said = pw.io.python.read(feeder, schema=fields, autocommit_duration_ms=None)
    newest = said.groupby(said.name).reduce(row=pw.reducers.argmax(said.rank))
    return _run(fold, _placed(fold, said.ix(newest.row)), feeder)


def frontier_only(fold: Fold, arrivals: Sequence[Arrival], *, wait: bool = False) -> Outcome:
    """What Pathway costs when intake and scopes are done for it, and nobody waits for its changes."""
    pw.internals.parse_graph.G.clear()
    feeder = _Rows(list(rows(fold, arrivals)), _Observer(), wait=wait)
    key = pw.column_definition(primary_key=True)
    fields = pw.schema_builder(
        {"name": key, "type": _of(str), "time": _of(int), "scope": _of(str)},
    )
    return _run(fold, pw.io.python.read(feeder, schema=fields, autocommit_duration_ms=None), feeder)


def _of(kind: type) -> object:
    return pw.column_definition(dtype=kind)


def _placed(fold: Fold, documents: "pw.Table") -> "pw.Table":
    """The documents that join a scope, with its name."""
    key_sets = {
        kind: ", ".join(rule.scope_keys)
        for rule in fold.ruleset.rules.values()
        for kind in (rule.superseding_type, rule.superseded_type)
    }
    memberships = pw.debug.table_from_rows(pw.schema_from_types(type=str, joins=str), list(key_sets.items()))
    person = "employee=" + documents.employee
    return documents.join(memberships, documents.type == memberships.type).select(
        documents.name,
        documents.type,
        documents.time,
        scope=pw.if_else(
            memberships.joins == "policy",
            "policy=*",
            pw.if_else(memberships.joins == "employee", person, person + ", ticker=" + documents.ticker.str.upper()),
        ),
    )


def _frontier(fold: Fold, members: "pw.Table") -> "pw.Table":
    """The members whose time reaches that of the newest superseder of their scope and type."""
    fields = pw.schema_from_types(superseding=str, superseded=str)
    rules = pw.debug.table_from_rows(fields, rule_pairs(fold))
    voiders = members.join(rules, members.type == rules.superseding).select(
        members.scope, members.time, type=rules.superseded
    )
    bars = voiders.groupby(voiders.scope, voiders.type).reduce(
        voiders.scope, voiders.type, time=pw.reducers.max(voiders.time)
    )
    judged = members.join_left(bars, members.scope == bars.scope, members.type == bars.type).select(
        members.name, members.scope, holds=members.time >= pw.coalesce(bars.time, 0)
    )
    return judged.filter(judged.holds).select(pw.this.name, pw.this.scope)


def _run(fold: Fold, members: "pw.Table", feeder: _Feeder) -> Outcome:
    observer = feeder.observer
    pw.io.subscribe(_frontier(fold, members), observer.on_change, on_time_end=observer.on_time_end)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, default_logging=False)
    return Outcome(observer.last - feeder.began, observer.held, sum(observer.numbers.values()))

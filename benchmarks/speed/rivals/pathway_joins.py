"""Pathway: R1-R10 as joins and groups, kept up to date by its incremental engine.

Promise: this is the fastest of the tried formulations that does the whole task: it finds the revision that counts (the
highest per id), the scope of each document, the newest superseder by scope and type, and whether a member reaches it; a
callback numbers the changes of each scope. Easier: one scope per document, rules that do not compare attributes, no
links; changes are reported once per hundred documents, without rule or cause; startup is not counted; its engine runs
on another core than the thread that feeds it.
"""

from collections.abc import Mapping, Sequence
from threading import Semaphore
from time import perf_counter

import pathway as pw

from benchmarks.speed.event_stream import Arrival
from benchmarks.speed.rivals import COMMIT, Members, Outcome, Row, rows, rule_pairs
from stream_car.core.documents import Retraction
from stream_car.processing.fold import Fold


class _Observer:
    """The frontiers as the callbacks report them, and a sequence number for each scope."""

    def __init__(self) -> None:
        self.members: Members = set()
        self.numbers: dict[str, int] = {}
        self.last = 0.0
        self.commits = 0
        self.reported = Semaphore(0)
        self._batch: dict[str, tuple[list[str], list[str]]] = {}

    def on_change(self, key: object, row: Mapping[str, str], time: int, is_addition: bool) -> None:
        self._batch.setdefault(row["scope"], ([], []))[is_addition].append(row["name"])

    def on_time_end(self, time: int) -> None:
        for scope, (removed, added) in self._batch.items():
            self.numbers[scope] = self.numbers.get(scope, 0) + 1
            self.members.difference_update((scope, name) for name in removed)
            self.members.update((scope, name) for name in added)
        self._batch.clear()
        self.last = perf_counter()
        self.commits += 1
        self.reported.release()


class _Feeder(pw.io.python.ConnectorSubject):  # type: ignore[misc]  # an optional package without types
    """Commits a hundred documents at a time. With `wait`, each commit waits for the changes of the previous one."""

    def __init__(self, observer: _Observer, *, wait: bool, session: str) -> None:
        super().__init__(session_type=session)
        self.observer = observer
        self.wait = wait
        self.start_time = 0.0

    def end_commit(self) -> None:
        self.commit()
        if self.wait:
            self.observer.reported.acquire()


class _Statements(_Feeder):
    """Feeds every statement as its decoded fields."""

    def __init__(self, arrivals: Sequence[Arrival], observer: _Observer, *, wait: bool) -> None:
        super().__init__(observer, wait=wait, session="native")
        self.arrivals = arrivals

    def run(self) -> None:
        self.start_time = perf_counter()
        for at in range(0, len(self.arrivals), COMMIT):
            for arrival in self.arrivals[at : at + COMMIT]:
                statement = arrival.statement
                if isinstance(statement, Retraction):
                    rank = 2 * (statement.revision or 0) + 1
                    self.next(name=statement.id, rank=rank, type="", time=0, employee="", ticker="")
                    continue
                part = statement.scope[0]
                self.next(
                    name=statement.id,
                    rank=2 * statement.revision,
                    type=statement.type,
                    time=statement.time,
                    employee=part["employee"][0],
                    ticker=part["ticker"][0],
                )
            self.end_commit()


class _Rows(_Feeder):
    """Feeds only the revision that counts, with its scope; this class decides which revision counts."""

    def __init__(self, prepared: Sequence[Row], observer: _Observer, *, wait: bool) -> None:
        super().__init__(observer, wait=wait, session="upsert")
        self.prepared = prepared

    def run(self) -> None:
        self.start_time = perf_counter()
        current: dict[str, Row] = {}
        for at in range(0, len(self.prepared), COMMIT):
            for row in self.prepared[at : at + COMMIT]:
                previous = current.get(row.id)
                if previous is not None and row.rank <= previous.rank:
                    continue
                current[row.id] = row
                if row.scope:
                    self.next(name=row.id, type=row.type, time=row.time, scope=row.scope)
                elif previous is not None and previous.scope:
                    self.delete(name=previous.id, type=previous.type, time=previous.time, scope=previous.scope)
            self.end_commit()


def whole_task(fold: Fold, arrivals: Sequence[Arrival], *, wait: bool = True) -> Outcome:
    """Run the whole task: statements in, numbered changes out."""
    pw.internals.parse_graph.G.clear()
    observer = _Observer()
    feeder = _Statements(arrivals, observer, wait=wait)
    fields = pw.schema_from_types(name=str, rank=int, type=str, time=int, employee=str, ticker=str)
    statements = pw.io.python.read(feeder, schema=fields, autocommit_duration_ms=None)
    newest = statements.groupby(statements.name).reduce(row=pw.reducers.argmax(statements.rank))
    return _run(fold, _with_scopes(fold, statements.ix(newest.row)), feeder)


def frontier_only(fold: Fold, arrivals: Sequence[Arrival], *, wait: bool = False) -> Outcome:
    """Run without intake and scopes, which are done before, and without waiting for changes."""
    pw.internals.parse_graph.G.clear()
    feeder = _Rows(list(rows(fold, arrivals)), _Observer(), wait=wait)
    key = pw.column_definition(primary_key=True)
    fields = pw.schema_builder(
        {"name": key, "type": _column(str), "time": _column(int), "scope": _column(str)},
    )
    return _run(fold, pw.io.python.read(feeder, schema=fields, autocommit_duration_ms=None), feeder)


def _column(kind: type) -> object:
    return pw.column_definition(dtype=kind)


def _with_scopes(fold: Fold, documents: "pw.Table") -> "pw.Table":
    """Return the documents that join a scope, with its name."""
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
    """Return the members whose time reaches that of the newest superseder of their scope and type."""
    fields = pw.schema_from_types(superseding=str, superseded=str)
    rules = pw.debug.table_from_rows(fields, rule_pairs(fold))
    voiders = members.join(rules, members.type == rules.superseding).select(
        members.scope, members.time, type=rules.superseded
    )
    thresholds = voiders.groupby(voiders.scope, voiders.type).reduce(
        voiders.scope, voiders.type, time=pw.reducers.max(voiders.time)
    )
    judged = members.join_left(thresholds, members.scope == thresholds.scope, members.type == thresholds.type).select(
        members.name, members.scope, holds=members.time >= pw.coalesce(thresholds.time, 0)
    )
    return judged.filter(judged.holds).select(pw.this.name, pw.this.scope)


def _run(fold: Fold, members: "pw.Table", feeder: _Feeder) -> Outcome:
    observer = feeder.observer
    pw.io.subscribe(_frontier(fold, members), observer.on_change, on_time_end=observer.on_time_end)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, default_logging=False)
    return Outcome(observer.last - feeder.start_time, observer.members, sum(observer.numbers.values()))

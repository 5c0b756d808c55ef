"""DuckDB in memory: after every hundred documents, SQL recomputes the frontiers of the scopes they touch.

Easier: one scope per document, rules that do not compare attributes, no links; a dictionary decides which revision
counts; changes are reported once per hundred documents, without rule or cause.
"""

from collections.abc import Sequence
from time import perf_counter

import duckdb

from benchmarks.speed.event_stream import Arrival
from benchmarks.speed.rivals import COMMIT, Outcome, Row, rows, rule_pairs
from stream_car.processing.fold import Fold

_SCHEMA = """
CREATE TABLE rule(superseding TEXT, superseded TEXT);
CREATE TABLE document(id TEXT, rank BIGINT, scope TEXT, type TEXT, time BIGINT);
CREATE TABLE frontier(scope TEXT, id TEXT);
CREATE TABLE batch(id TEXT, rank BIGINT, scope TEXT, type TEXT, time BIGINT);
"""

_SETTLE = """
CREATE OR REPLACE TEMP TABLE touched AS
  SELECT scope FROM batch WHERE scope <> '' UNION SELECT scope FROM document WHERE id IN (SELECT id FROM batch);
DELETE FROM document WHERE id IN (SELECT id FROM batch);
INSERT INTO document SELECT * FROM batch WHERE scope <> '';
CREATE OR REPLACE TEMP TABLE fresh AS
  WITH member AS MATERIALIZED (SELECT * FROM document WHERE scope IN (SELECT scope FROM touched)),
  threshold AS (SELECT m.scope, r.superseded AS type, max(m.time) AS time
                FROM member m JOIN rule r ON r.superseding = m.type GROUP BY ALL)
  SELECT m.scope, m.id FROM member m LEFT JOIN threshold b ON b.scope = m.scope AND b.type = m.type
  WHERE b.time IS NULL OR m.time >= b.time;
CREATE OR REPLACE TEMP TABLE previous AS SELECT * FROM frontier WHERE scope IN (SELECT scope FROM touched);
"""

_CHANGES = """
(SELECT scope, id, true FROM (SELECT * FROM fresh EXCEPT SELECT * FROM previous))
UNION ALL (SELECT scope, id, false FROM (SELECT * FROM previous EXCEPT SELECT * FROM fresh))
"""

_KEEP = """
DELETE FROM frontier WHERE scope IN (SELECT scope FROM touched);
INSERT INTO frontier SELECT * FROM fresh;
DELETE FROM batch;
"""


def duckdb_batches(fold: Fold, arrivals: Sequence[Arrival]) -> Outcome:
    """Commit a hundred documents at a time; read the changes of each commit before the next."""
    database = duckdb.connect(":memory:")
    database.execute(_SCHEMA)
    database.executemany("INSERT INTO rule VALUES (?, ?)", rule_pairs(fold))
    ranks: dict[str, int] = {}
    changes = 0
    begin = perf_counter()
    for at in range(0, len(arrivals), COMMIT):
        newest: dict[str, Row] = {}
        for row in rows(fold, arrivals[at : at + COMMIT]):
            if row.rank > ranks.get(row.id, 0):
                ranks[row.id] = row.rank
                newest[row.id] = row
        places = ", ".join(["(?, ?, ?, ?, ?)"] * len(newest))
        database.execute("BEGIN")
        database.execute(f"INSERT INTO batch VALUES {places}", [value for row in newest.values() for value in row])
        database.execute(_SETTLE)
        changes += len(database.execute(_CHANGES).fetchall())
        database.execute(_KEEP)
        database.execute("COMMIT")
    seconds = perf_counter() - begin
    members = {(str(scope), str(name)) for scope, name in database.execute("SELECT scope, id FROM frontier").fetchall()}
    database.close()
    return Outcome(seconds, members, changes)

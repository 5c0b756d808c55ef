"""SQLite in memory: triggers maintain a flag on every row, and list the flags that changed.

Easier: one scope per document, rules that do not compare attributes, no links, one transaction in total; changed flags
are listed one by one, without the rule or the document that caused the change.
"""

import sqlite3
from collections.abc import Sequence
from time import perf_counter

from benchmarks.speed.event_stream import Arrival
from benchmarks.speed.rivals import Outcome, rows, rule_pairs
from stream_car.processing.fold import Fold

_THRESHOLD = """(SELECT max((SELECT max(time) FROM document AS voider
                   WHERE voider.scope = {row}.scope AND voider.type = rule.superseding))
           FROM rule WHERE rule.superseded = {row}.type)"""

_ACTIVATE = f"""
  UPDATE document SET active = 0
    WHERE scope = NEW.scope AND active = 1 AND time < NEW.time AND NEW.scope <> ''
      AND type IN (SELECT superseded FROM rule WHERE superseding = NEW.type);
  UPDATE document SET active = 1
    WHERE id = NEW.id AND NEW.scope <> '' AND NEW.time >= coalesce({_THRESHOLD.format(row="NEW")}, NEW.time);
"""

SCHEMA = f"""
CREATE TABLE rule(superseding TEXT, superseded TEXT, PRIMARY KEY (superseded, superseding)) WITHOUT ROWID;
CREATE TABLE document(id TEXT PRIMARY KEY, rank INTEGER, scope TEXT, type TEXT, time INTEGER, active INTEGER);
CREATE INDEX by_time ON document(scope, type, time);
CREATE INDEX by_flag ON document(scope, type, active, time);
CREATE TABLE change(number INTEGER PRIMARY KEY, scope TEXT, id TEXT, entered INTEGER);

CREATE TRIGGER changed AFTER UPDATE OF active ON document WHEN OLD.active <> NEW.active BEGIN
  INSERT INTO change(scope, id, entered) VALUES (OLD.scope, OLD.id, NEW.active);
END;
CREATE TRIGGER placed AFTER INSERT ON document BEGIN {_ACTIVATE} END;
CREATE TRIGGER corrected AFTER UPDATE OF rank ON document BEGIN
  UPDATE document SET active = 1
    WHERE scope = OLD.scope AND active = 0 AND time < OLD.time AND OLD.scope <> ''
      AND type IN (SELECT superseded FROM rule WHERE superseding = OLD.type)
      AND time >= coalesce({_THRESHOLD.format(row="document")}, time);
  {_ACTIVATE}
END;
"""

_UPSERT = """
INSERT INTO document(id, rank, scope, type, time, active) VALUES (?, ?, ?, ?, ?, 0)
  ON CONFLICT (id) DO UPDATE
  SET rank = excluded.rank, scope = excluded.scope, type = excluded.type, time = excluded.time, active = 0
  WHERE excluded.rank > document.rank
"""


def sqlite_triggers(fold: Fold, arrivals: Sequence[Arrival]) -> Outcome:
    """Execute one statement per document; the triggers do the rest."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.executescript(SCHEMA)
    database.executemany("INSERT INTO rule VALUES (?, ?)", rule_pairs(fold))
    begin = perf_counter()
    database.execute("BEGIN")
    for row in rows(fold, arrivals):
        database.execute(_UPSERT, row)
    database.execute("COMMIT")
    seconds = perf_counter() - begin
    members = {
        (str(scope), str(name)) for scope, name in database.execute("SELECT scope, id FROM document WHERE active")
    }
    [(changes,)] = database.execute("SELECT count(*) FROM change")
    database.close()
    return Outcome(seconds, members, int(changes))

"""The list of keys beside the index of a query worker notices damage, and continues the files of earlier releases."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from stream_car.adapters.sqlite.key_list import SqliteKeys, find_keys_fault
from stream_car.files.seals import compare_with_seal, seal_path
from stream_car.local.run_sync import run_sync

KEYS = [f"d:{n:03}".encode() for n in range(500)]
OWNER = "installation"


def filled(path: Path) -> SqliteKeys:
    keys = SqliteKeys(path, OWNER)
    keys.add(KEYS, [300, 200])
    return keys


def content(path: Path) -> tuple[list[bytes], list[int] | None]:
    """What a query worker finds in the file."""
    keys = SqliteKeys(path, OWNER)
    listed = list(run_sync(keys.keys(b"d:", b"d;", 1000)))
    positions = keys.positions_at(500)
    keys.close()
    return listed, positions


def execute(statement: str) -> Callable[[Path], None]:
    """Return what changes rows of the file without breaking its structure."""

    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement)

    return change


def test_a_file_that_was_closed_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    filled(path).close()

    assert compare_with_seal(path) == "intact"
    assert content(path) == content(path) == (KEYS, [300, 200])


def test_every_changed_byte_of_a_closed_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    filled(path).close()
    whole, mark = path.read_bytes(), seal_path(path).read_bytes()
    for at in range(0, len(whole), len(whole) // 40):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        seal_path(path).write_bytes(mark)

        assert find_keys_fault(path, compare_with_seal(path)) == "has changed since it was closed"
        assert content(path) == ([], None)


@pytest.mark.parametrize(
    "change",
    [
        execute("UPDATE keys SET key = x'643a393939' WHERE key = x'643a303037'"),
        execute("UPDATE keys SET checksum = checksum + 1 WHERE key = x'643a303037'"),
        execute("UPDATE fed SET parts = substr(parts, 1, 4) || CAST('[200,300]' AS BLOB)"),
        execute("UPDATE fed SET parts = 'text'"),
    ],
)
def test_after_a_crash_an_altered_row_is_noticed(change: Callable[[Path], None], tmp_path: Path) -> None:
    path, crashed = tmp_path / "keys.sqlite", tmp_path / "crashed.sqlite"
    keys = filled(path)
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", f"{crashed}{end}")
    keys.close()
    change(crashed)

    assert find_keys_fault(crashed, "none")
    assert content(crashed) == ([], None)


def test_a_file_of_an_earlier_release_is_continued_and_gets_checksums(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE keys (key BLOB PRIMARY KEY) WITHOUT ROWID")
        connection.execute("CREATE TABLE fed (total INTEGER PRIMARY KEY, parts BLOB NOT NULL)")
        connection.execute("CREATE TABLE owner (name TEXT NOT NULL)")
        connection.executemany("INSERT INTO keys VALUES (?)", [(key,) for key in KEYS])
        connection.execute("INSERT INTO fed VALUES (500, ?)", (b"[300,200]",))
        connection.execute("INSERT INTO owner VALUES (?)", (OWNER,))

    assert content(path) == (KEYS, [300, 200])
    execute("UPDATE keys SET checksum = 1 WHERE key = x'643a303037'")(path)
    seal_path(path).unlink()
    assert content(path) == ([], None)

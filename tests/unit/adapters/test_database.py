"""What SQLite's errors mean."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from stream_car.adapters.database import connect, find_fault, translate_errors
from stream_car.adapters.search.scope_names import find_names_fault
from stream_car.adapters.sqlite.key_list import find_keys_fault
from stream_car.adapters.sqlite.state_file import find_state_fault
from stream_car.errors import Halted, StreamCarError, Unavailable
from stream_car.files.seals import Verdict
from tests.support.file_limit import no_more_files

SCHEMA_FORMAT = 44  # where it lies in the header of a file


@pytest.mark.parametrize(
    ("statement", "error", "text"),
    [
        ("SELECT CAST(x'ff' AS TEXT)", Halted, "is damaged"),
        ("SELECT * FROM nothing", StreamCarError, "cannot be used"),
    ],
)
def test_text_that_is_not_utf_8_is_damage_and_a_wrong_statement_is_none(
    statement: str, error: type[StreamCarError], text: str, tmp_path: Path
) -> None:
    path = tmp_path / "any.sqlite"
    with (
        closing(sqlite3.connect(path)) as connection,
        pytest.raises(error, match=text),
        translate_errors(path, "Restore it."),
    ):
        connection.execute(statement).fetchall()


@pytest.mark.parametrize("find", [find_fault, find_state_fault, find_keys_fault, find_names_fault])
def test_a_file_that_cannot_be_opened_now_is_not_damaged(find: Callable[[Path, Verdict], str], tmp_path: Path) -> None:
    path = tmp_path / "any.sqlite"
    connect(path, synchronous="FULL").close()

    with pytest.raises(Unavailable, match="cannot be opened"), no_more_files():
        find(path, "none")


def test_a_file_that_is_locked_is_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "any.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE any (one)")
        connection.execute("BEGIN EXCLUSIVE")
        reading = sqlite3.connect(path, timeout=0)
        monkeypatch.setattr("stream_car.adapters.database.open_read_only", lambda path: reading)

        with pytest.raises(Unavailable, match="is in use by another program"):
            find_fault(path, "none")


def test_a_file_whose_header_has_changed_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "any.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE any (one)")
    content = bytearray(path.read_bytes())
    content[SCHEMA_FORMAT + 3] = 99
    path.write_bytes(content)

    assert find_fault(path, "none") == "is damaged (unsupported file format)"

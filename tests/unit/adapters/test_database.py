"""What SQLite's errors mean."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from stream_car.adapters.database import translate_errors
from stream_car.errors import Halted, StreamCarError


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

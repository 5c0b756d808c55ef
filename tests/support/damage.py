"""Damage files on purpose."""

import sqlite3
from pathlib import Path

from stream_car.files.seals import seal_path


def flip(path: Path, at: int, bit: int = 0) -> None:
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


def change(path: Path, statement: str, *values: object) -> None:
    """Change a database without its owner, as if after a crash: no seal shows that it was changed."""
    seal_path(path).unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()

"""Damage, done on purpose."""

import sqlite3
from pathlib import Path


def flip(path: Path, at: int, bit: int = 0) -> None:
    """Turn one bit of a file over."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


def change(path: Path, statement: str, *values: object) -> None:
    """Write to a database behind its owner's back."""
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()

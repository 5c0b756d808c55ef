"""A state file opened for reading only, to compare it with another one."""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from stream_car.adapters.database import open_read_only, translate_errors
from stream_car.adapters.sqlite.state_file import CURE


class ReadOnlyState:
    """A state file, open for reading. Values keep the checksums with which they were stored."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with translate_errors(path, CURE):
            self._connection = open_read_only(path)

    def next_offset(self) -> int:
        """Return the offset of the first record that is not applied yet."""
        with translate_errors(self._path, CURE):
            row: tuple[int] | None = self._connection.execute(
                "SELECT next_offset FROM shards WHERE shard = 0"
            ).fetchone()
        return row[0] if row is not None else 0

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every key with its value, in key order."""
        with translate_errors(self._path, CURE):
            yield from self._connection.execute("SELECT key, value FROM entries WHERE shard = 0 ORDER BY key")

    def first_change(self) -> int:
        """Return the number of the oldest change that is still stored; beyond any number if there is none."""
        with translate_errors(self._path, CURE):
            row: tuple[int | None] = self._connection.execute(
                "SELECT MIN(at) FROM changes WHERE stream = ''"
            ).fetchone()
        return row[0] if row[0] is not None else 1 << 60

    def changes(self, first: int) -> Iterator[tuple[int, str, bytes, bytes]]:
        """Yield every event from number `first` on, in order."""
        with translate_errors(self._path, CURE):
            yield from self._connection.execute(
                "SELECT at, stream, key, value FROM changes WHERE at >= ? ORDER BY at", (first,)
            )

    def __enter__(self) -> "ReadOnlyState":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

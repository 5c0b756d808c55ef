"""A state file looked at and never changed, for whoever compares it with another."""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from stream_car.files.database import reading_only, translated

CURE = "it holds derived state only: remove it, and it is rebuilt from the log"


class Inspected:
    """A state file, read only. Values and changes come in order, guarded as they were kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with translated(path, CURE):
            self._connection = reading_only(path)

    def next_offset(self) -> int:
        """The first record that is not applied yet."""
        with translated(self._path, CURE):
            row: tuple[int] | None = self._connection.execute(
                "SELECT next_offset FROM shards WHERE shard = 0"
            ).fetchone()
        return row[0] if row is not None else 0

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """Every key of the shard with its value."""
        with translated(self._path, CURE):
            yield from self._connection.execute("SELECT key, value FROM entries WHERE shard = 0 ORDER BY key")

    def first_change(self) -> int:
        """The number of the first change that is still kept; what was told before may be forgotten."""
        with translated(self._path, CURE):
            row: tuple[int | None] = self._connection.execute(
                "SELECT MIN(oseq) FROM changes WHERE shard = 0 AND stream = 'changes'"
            ).fetchone()
        return row[0] if row[0] is not None else 1 << 60

    def changes(self, first: int) -> Iterator[tuple[int, str, bytes, bytes]]:
        """Every event from this one on."""
        with translated(self._path, CURE):
            yield from self._connection.execute(
                "SELECT oseq, stream, key, value FROM changes WHERE shard = 0 AND oseq >= ? ORDER BY at", (first,)
            )

    def __enter__(self) -> "Inspected":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

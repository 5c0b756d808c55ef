"""What a back end provides for the contract tests: ports that can be opened, crashed and opened again.

To add a back end, write a class like `Backend` and name it in `conftest.py`. The tests stay as they are.
"""

import shutil
from pathlib import Path
from typing import Protocol

from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.journal import SqliteJournal
from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.adapters.sqlite.state_file import StateFile
from stream_car.adapters.sqlite.store import SqliteStore
from stream_car.ports import AnchorIndex, ChangeLog, Clock, Log, Store


class Backend(Protocol):
    """Opens ports on storage that is empty when the test begins."""

    async def log(self, clock: Clock, partitions: int = 1) -> Log:
        """Open the log. A second call ends the first log, as a crash would."""
        ...

    async def store(self) -> Store:
        """Open the store in the same way."""
        ...

    async def journal(self) -> ChangeLog:
        """Open the journal in the same way."""
        ...

    async def index(self) -> AnchorIndex:
        """Open the index in the same way."""
        ...

    async def close(self) -> None:
        """Close what is open."""
        ...


class Embedded:
    """SQLite and tantivy.

    To simulate a crash of SQLite, a copy of the files of that moment is opened; for tantivy, whose threads change
    files at any moment, the index is released without a commit. Real kills are in the unit tests.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies = 0
        self._open: dict[str, SqliteLog | StateFile] = {}
        self._index: TantivyIndex | None = None

    def _place(self, name: str) -> Path:
        """Return where the port opens: on a copy of its files if it was open before."""
        source = self._folder / str(self._copies) / name
        if name not in self._open:
            source.mkdir(parents=True, exist_ok=True)
            return source
        self._copies += 1
        target = self._folder / str(self._copies) / name
        shutil.copytree(source, target)
        self._open[name].close()
        return target

    def _file(self) -> StateFile:
        file = self._open["state"] = StateFile(self._place("state") / "state.sqlite")
        return file

    async def log(self, clock: Clock, partitions: int = 1) -> Log:
        log = self._open["log"] = SqliteLog(self._place("log") / "log.sqlite", clock, partitions)
        return log

    async def store(self) -> Store:
        return SqliteStore(self._file())

    async def journal(self) -> ChangeLog:
        return SqliteJournal(self._file())

    async def index(self) -> AnchorIndex:
        if self._index is not None:
            self._index._writer.close()
            self._index._scopes._connection.close()
            self._index._texts._connection.close()
            self._index._lock.release()
        self._index = TantivyIndex(self._folder / "index")
        return self._index

    async def close(self) -> None:
        """Close what is open."""
        for port in self._open.values():
            port.close()
        if self._index is not None:
            self._index.close()


class SetClock:
    """Implements `ports.Clock` with a time that tests set."""

    def __init__(self, time: int = 1_700_000_000_000_000) -> None:
        self.time = time

    def now(self) -> int:
        return self.time

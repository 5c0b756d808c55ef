"""What a back end brings to the contract tests: ports that can be opened, crashed and opened again.

To add one, write a class of this shape and name it in `conftest.py`; the tests stay as they are.
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
        """The log; a second call ends what the first one gave, as a crash would."""
        ...

    async def store(self) -> Store:
        """The store, likewise."""
        ...

    async def journal(self) -> ChangeLog:
        """The journal, likewise."""
        ...

    async def index(self) -> AnchorIndex:
        """The index, likewise."""
        ...

    async def close(self) -> None:
        """Let everything go."""
        ...


class Embedded:
    """SQLite and tantivy.

    SQLite's crash is played by opening a copy of the files as they are at that moment; tantivy's, whose
    threads change files at any moment, by letting go without a commit. Real kills are in the unit tests.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies = 0
        self._open: dict[str, SqliteLog | StateFile] = {}
        self._index: TantivyIndex | None = None

    def _place(self, name: str) -> Path:
        """Where the port opens: on a copy of what it left, if it was open before."""
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
        """The log in a folder of its own."""
        log = self._open["log"] = SqliteLog(self._place("log") / "log.sqlite", clock, partitions)
        return log

    async def store(self) -> Store:
        """The store; it shares its file with the journal."""
        return SqliteStore(self._file())

    async def journal(self) -> ChangeLog:
        """The journal; it shares its file with the store."""
        return SqliteJournal(self._file())

    async def index(self) -> AnchorIndex:
        """The index in a folder of its own."""
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
    """A clock that shows what it was set to."""

    def __init__(self, time: int = 1_700_000_000_000_000) -> None:
        self.time = time

    def now(self) -> int:
        """The time it was set to."""
        return self.time

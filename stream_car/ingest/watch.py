"""Which of the files that somebody watches have something new.

Promise: a file that grows by lines is told of as soon as it has grown; any other only once it has stood still
from one look to the next, so that a file is not read while it is written. A file is told of once for each
state it was found in. Cost: one look at each file; nothing is read.
"""

from collections.abc import Sequence
from pathlib import Path

from stream_car.feeds import Format
from stream_car.ingest.files import Source, sources

State = tuple[int, int, int]  # size, time of change, and which file has the name


class Watch:
    """Files and directories by name; new files of a directory are found when they come."""

    def __init__(self, form: Format, named: Sequence[str]) -> None:
        self._form = form
        self._named = named
        self._told: dict[str, State] = {}
        self._looked: dict[str, State] = {}

    def changed(self) -> list[Source]:
        """The files with something new since they were last told of, in the order of their names."""
        found = []
        for source in sources(self._named, self._form.suffixes, may_be_empty=True):
            state = _state(source.path)
            if state is None or state == self._told.get(source.name):
                continue
            if source.name.endswith(self._form.growing) or state == self._looked.get(source.name):
                self._told[source.name] = state
                found.append(source)
            self._looked[source.name] = state
        return found

    def again(self, some: Sequence[Source]) -> None:
        """Tell of these once more at the next look: they could not be read yet."""
        for source in some:
            self._told.pop(source.name, None)


def _state(path: Path) -> State | None:
    try:
        found = path.stat()
    except OSError:  # it went between two looks
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino

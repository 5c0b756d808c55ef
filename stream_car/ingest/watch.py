"""Detects which of the watched files have something new.

Promise: a file that grows by lines is reported as soon as it has grown. Any other file is reported only after it
stayed unchanged between two checks, so that a file is not read while it is written. A file is reported once for each
state in which it was found. Cost: one `stat` per file and check; nothing is read.
"""

from collections.abc import Sequence
from pathlib import Path

from stream_car.feeds import Format
from stream_car.ingest.files import InputFile, input_files
from stream_car.ingest.git_history import GitInput, tip_of

FileState = tuple[int, int, int]  # size, modification time in nanoseconds, inode


class Watch:
    """Files and directories by name. New files of a directory are found when they appear."""

    def __init__(self, form: Format, names: Sequence[str]) -> None:
        self._form = form
        self._names = names
        self._reported: dict[str, FileState] = {}
        self._last_seen: dict[str, FileState] = {}

    def changed_files(self) -> list[InputFile]:
        """Return the files that changed since they were last reported, in the order of their names."""
        changed = []
        for file in input_files(self._names, self._form.suffixes, may_be_empty=True):
            state = _state(file.path)
            if state is None or state == self._reported.get(file.name):
                continue
            if file.name.endswith(self._form.line_suffixes) or state == self._last_seen.get(file.name):
                self._reported[file.name] = state
                changed.append(file)
            self._last_seen[file.name] = state
        return changed

    def retry(self, files: Sequence[InputFile]) -> None:
        """Report these files again at the next check, because they could not be read yet."""
        for file in files:
            self._reported.pop(file.name, None)


class RepositoryWatch:
    """A git repository, which is reported whenever its branch has moved. Cost: a few short runs of git per check."""

    def __init__(self, repository: GitInput) -> None:
        self._repository = repository
        self._reported = ""

    def changed_files(self) -> list[InputFile]:
        """Return the repository if its branch has moved since it was last reported."""
        tip = tip_of(self._repository)
        has_moved, self._reported = tip != self._reported, tip
        return [self._repository] if has_moved else []

    def retry(self, files: Sequence[InputFile]) -> None:
        """Report the repository again at the next check, because it could not be read yet."""
        self._reported = ""


def _state(path: Path) -> FileState | None:
    try:
        stat = path.stat()
    except OSError:  # the file was removed after it was listed
        return None
    return stat.st_size, stat.st_mtime_ns, stat.st_ino

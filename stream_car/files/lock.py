"""One writer at a time: a lock file that the operating system releases when its holder ends, however it ends.

Promise: a second holder is rejected with the first one's process id, also within one process.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from stream_car.errors import Busy, StreamCarError


class FileLock:
    """A lock held from construction to `release`. An empty file stays at `path`: only the lock on it counts."""

    def __init__(self, path: Path, what: str) -> None:
        what = what[:1].upper() + what[1:]
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StreamCarError(f"{what} cannot be opened: {error.strerror} ({path}).") from error
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._handle, 20, 0).decode("ascii", "replace").strip()
            os.close(self._handle)
            raise Busy(
                f"{what} is open in process {holder or 'unknown'}",
                "If a service has it open, use its --url. Otherwise end that process, or open another folder.",
            ) from error
        except OSError as error:
            os.close(self._handle)
            cure = "Put it on a local disk: not every network file system has locks."
            raise StreamCarError(f"{what} cannot be locked: {error.strerror} ({path}). {cure}") from error
        with suppress(OSError):  # on a full disk the lock still works, but its holder's process id is unknown
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, str(os.getpid()).encode(), 0)

    @property
    def is_released(self) -> bool:
        """Whether `release` was called."""
        return self._handle < 0

    def release(self) -> None:
        """Let the next holder in. Further calls do nothing."""
        if self._handle >= 0:
            with suppress(OSError):
                os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = -1

"""One writer at a time: a lock file that the operating system releases when its holder ends, however it ends.

Promise: a second holder is refused, in the same process too, and learns the first one's process id.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from stream_car.errors import Busy, StreamCarError


class FileLock:
    """Held from construction to `release`. `path` stays behind as an empty file: only the lock counts."""

    def __init__(self, path: Path, what: str) -> None:
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StreamCarError(f"{what} cannot be opened: {error.strerror} ({path})") from error
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._handle, 20, 0).decode("ascii", "replace").strip()
            os.close(self._handle)
            raise Busy(
                f"{what} is open in process {holder or 'unknown'}",
                "end that process, or open another folder. To share it: stream-car up, and ask with --url",
            ) from error
        with suppress(OSError):  # a full disk: the lock holds, only its holder's number is not told
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, str(os.getpid()).encode(), 0)

    @property
    def released(self) -> bool:
        """Whether it has been let go."""
        return self._handle < 0

    def release(self) -> None:
        """Let the next one in; again is harmless."""
        if self._handle >= 0:
            with suppress(OSError):
                os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = -1

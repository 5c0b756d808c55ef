"""One writer at a time, and what is reported when the lock itself fails."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from stream_car.errors import Busy, StreamCarError
from stream_car.files.lock import FileLock


def test_a_second_holder_learns_the_process_of_the_first(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock", "the folder")
    with pytest.raises(Busy, match=f"process {os.getpid()}"):
        FileLock(tmp_path / "lock", "the folder")
    lock.release()

    FileLock(tmp_path / "lock", "the folder").release()


def test_a_file_system_without_locks_is_not_reported_as_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(StreamCarError, match=r"No locks available .* local disk") as caught:
        FileLock(tmp_path / "lock", "the folder")

    assert not isinstance(caught.value, Busy)

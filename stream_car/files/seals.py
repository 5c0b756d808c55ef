"""Seals: a checksum beside a file that was closed in order, by which the next opening notices any change.

Promise: a seal matches only the bytes that it was written for. It is deleted, durably, before the file is opened for
writing, so a file without one was not closed in order: check it in another way. Cost: one read of the file, about a
second per gigabyte.
"""

import zlib
from pathlib import Path
from typing import BinaryIO, Literal

from stream_car.files.atomic import sync_folder

_CHUNK_BYTES = 1 << 20

Verdict = Literal["intact", "changed", "none"]  # none: there is no seal


def seal(path: Path) -> None:
    """Write the seal of a file that nobody writes to. Without one, the next opening takes longer."""
    seal_path(path).write_text(_seal_of(path))


def break_seal(path: Path) -> Verdict:
    """Compare a file with its seal, and delete the seal."""
    verdict = compare_with_seal(path)
    if verdict != "none":
        seal_path(path).unlink()
        sync_folder(path.parent)
    return verdict


def compare_with_seal(path: Path) -> Verdict:
    """Return whether a file is as it was when it was closed. One that is gone, but has a seal, is `changed`."""
    try:
        expected = seal_path(path).read_bytes()
    except FileNotFoundError:
        return "none"
    return "intact" if path.is_file() and _seal_of(path).encode() == expected else "changed"


def seal_path(path: Path) -> Path:
    """Return where the seal of a file lies."""
    return path.with_name(path.name + ".seal")


def checksum(file: BinaryIO, limit: int | None = None) -> tuple[int, int]:
    """Return the CRC-32 and the number of the next `limit` bytes of a file, or of all that follow."""
    crc = size = 0
    while chunk := file.read(_CHUNK_BYTES if limit is None else min(_CHUNK_BYTES, limit - size)):
        crc = zlib.crc32(chunk, crc)
        size += len(chunk)
    return crc, size


def _seal_of(path: Path) -> str:
    with path.open("rb") as file:
        crc, size = checksum(file)
    return f"{crc:08x} {size}\n"

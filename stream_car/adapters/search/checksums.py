"""Verifies that the files of a tantivy index have not changed since they were written.

Tantivy ends each segment file with a checksum but does not verify it when it reads the file, so a flipped bit would
give wrong answers. Cost: one read of the index, about a second per gigabyte.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from stream_car.files.seals import checksum

_MAGIC = 1337
_SUFFIXES = frozenset({".fast", ".fieldnorm", ".idx", ".pos", ".store", ".term"})


class _Deletes(Struct):
    opstamp: int


class _Segment(Struct):
    segment_id: str
    deletes: _Deletes | None = None

    def has(self, file: Path) -> bool:
        """Return whether a file is part of this segment as of the last commit."""
        name = self.segment_id.replace("-", "")
        if file.suffix in _SUFFIXES:
            return file.stem == name
        return self.deletes is not None and file.name == f"{name}.{self.deletes.opstamp}.del"


class _Meta(Struct):
    segments: list[_Segment]


class _Footer(Struct):
    crc: int


def is_intact(folder: Path) -> bool:
    """Return whether every file of the last commit matches its checksum."""
    try:
        meta = msgspec.json.decode((folder / "meta.json").read_bytes(), type=_Meta)
        files = [file for file in folder.iterdir() if any(segment.has(file) for segment in meta.segments)]
        return all(_is_file_intact(file) for file in files)
    except (OSError, msgspec.DecodeError):
        return False


def _is_file_intact(file: Path) -> bool:
    size = file.stat().st_size
    with file.open("rb") as handle:
        handle.seek(max(size - 8, 0))
        end = handle.read(8)
        length, magic = int.from_bytes(end[:4], "little"), int.from_bytes(end[4:], "little")
        body = size - 8 - length
        if magic != _MAGIC or body < 0:
            return False
        handle.seek(body)
        footer = msgspec.json.decode(handle.read(length), type=_Footer)
        handle.seek(0)
        return checksum(handle, body) == (footer.crc, body)

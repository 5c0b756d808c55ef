"""Whether the files of a tantivy index are those that were written.

Tantivy ends each segment file with a checksum, but reads the file without testing it: a flipped bit
would answer wrongly. Cost: one read of the index, about a second a gigabyte.
"""

import zlib
from pathlib import Path

import msgspec
from msgspec import Struct

_MAGIC = 1337
_SUFFIXES = frozenset({".fast", ".fieldnorm", ".idx", ".pos", ".store", ".term"})
_READ = 1 << 20


class _Deletes(Struct):
    opstamp: int


class _Segment(Struct):
    segment_id: str
    deletes: _Deletes | None = None

    def holds(self, file: Path) -> bool:
        """Whether a file is part of this segment's last commit."""
        name = self.segment_id.replace("-", "")
        if file.suffix in _SUFFIXES:
            return file.stem == name
        return self.deletes is not None and file.name == f"{name}.{self.deletes.opstamp}.del"


class _Meta(Struct):
    segments: list[_Segment]


class _Footer(Struct):
    crc: int


def intact(folder: Path) -> bool:
    """Whether every file of the last commit has the bytes that its checksum covers."""
    try:
        meta = msgspec.json.decode((folder / "meta.json").read_bytes(), type=_Meta)
        files = [file for file in folder.iterdir() if any(segment.holds(file) for segment in meta.segments)]
        return all(_is_intact(file) for file in files)
    except (OSError, msgspec.DecodeError):
        return False


def _is_intact(file: Path) -> bool:
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
        crc, left = 0, body
        while left and (chunk := handle.read(min(_READ, left))):
            crc = zlib.crc32(chunk, crc)
            left -= len(chunk)
    return not left and crc == footer.crc

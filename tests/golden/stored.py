"""The fixtures, unpacked and read: what an older release wrote."""

import json
import lzma
import tarfile
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from stream_car.errors import StreamCarError
from stream_car.ports import Hop, Message, Record

HERE = Path(__file__).parent
RELEASES = sorted(path.name for path in HERE.iterdir() if path.is_dir() and not path.name.startswith("_"))
TOPICS = ("documents", "placements", "changes", "rejected")

Row = tuple[int, int, int, str | None, str | None, list[tuple[str, str]]]
Shard = tuple[Hop, int, str, list[tuple[str, str]]]


def unpacked(release: str, name: str, target: Path) -> Path:
    """A folder as it was written."""
    with tarfile.open(HERE / release / f"{name}.tar.xz") as archive:
        archive.extractall(target, filter="data")
    return target / "data"


def values(release: str, name: str) -> dict[str, object]:
    """What a file of values holds."""
    text = lzma.decompress((HERE / release / f"{name}.json.xz").read_bytes())
    return cast(dict[str, object], json.loads(text))


def records(release: str, topic: str) -> dict[int, list[Record]]:
    """The records of a topic, by partition."""
    found: dict[int, list[Record]] = {}
    for partition, offset, time, key, value, headers in cast(list[Row], values(release, "topics")[topic]):
        record = Record(
            offset=offset,
            append_time=time,
            value=_bytes(value),
            key=_bytes(key),
            headers=tuple((name, _bytes(said) or b"") for name, said in headers),
        )
        found.setdefault(partition, []).append(record)
    return found


def hashes(release: str) -> list[Shard]:
    """What Redis held: hop, shard, key, and the pairs of its hash."""
    text = lzma.decompress((HERE / release / "redis.json.xz").read_bytes())
    return cast(list[Shard], json.loads(text))


def _bytes(text: str | None) -> bytes | None:
    return b64decode(text) if text is not None else None


class RecordedLog:
    """Implements `ports.Log` over records that were kept; nothing can be added."""

    def __init__(self, partitions: dict[int, list[Record]]) -> None:
        self._partitions = partitions

    async def append(self, partition: int, messages: Sequence[Message]) -> int:
        raise StreamCarError("nothing is added to what was recorded")

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        kept = self._partitions.get(partition, [])
        return [one for one in kept if one.offset >= from_offset][:max_records]

    async def range(self, partition: int) -> tuple[int, int]:
        kept = self._partitions.get(partition, [])
        return (kept[0].offset, kept[-1].offset + 1) if kept else (0, 0)

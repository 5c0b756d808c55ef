"""The fixtures as an older release wrote them, unpacked and read."""

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
    """Unpack a folder as it was written, and return its path."""
    with tarfile.open(HERE / release / f"{name}.tar.xz") as archive:
        archive.extractall(target, filter="data")
    return target / "data"


def values(release: str, name: str) -> dict[str, object]:
    """Return the content of a file of values."""
    text = lzma.decompress((HERE / release / f"{name}.json.xz").read_bytes())
    return cast(dict[str, object], json.loads(text))


def records(release: str, topic: str) -> dict[int, list[Record]]:
    """Return the records of a topic, by partition."""
    by_partition: dict[int, list[Record]] = {}
    for partition, offset, time, key, value, headers in cast(list[Row], values(release, "topics")[topic]):
        record = Record(
            offset=offset,
            append_time=time,
            value=_bytes(value),
            key=_bytes(key),
            headers=tuple((name, _bytes(content) or b"") for name, content in headers),
        )
        by_partition.setdefault(partition, []).append(record)
    return by_partition


def hashes(release: str) -> list[Shard]:
    """Return what Redis held: hop, shard, key, and the pairs of its hash."""
    text = lzma.decompress((HERE / release / "redis.json.xz").read_bytes())
    return cast(list[Shard], json.loads(text))


def _bytes(text: str | None) -> bytes | None:
    return b64decode(text) if text is not None else None


class RecordedLog:
    """Implements `ports.Log` over recorded records; nothing can be added."""

    def __init__(self, partitions: dict[int, list[Record]]) -> None:
        self._partitions = partitions

    async def append(self, partition: int, messages: Sequence[Message]) -> int:
        raise StreamCarError("Nothing can be added to recorded records.")

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        records = self._partitions.get(partition, [])
        return [record for record in records if record.offset >= from_offset][:max_records]

    async def range(self, partition: int) -> tuple[int, int]:
        records = self._partitions.get(partition, [])
        return (records[0].offset, records[-1].offset + 1) if records else (0, 0)

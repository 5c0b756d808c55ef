"""Writes the golden fixtures: `python -m tests.golden.write NAME` for what this release writes.

What an older release wrote stays as it is. Kafka and Redis are started for it (`make servers`).
"""

import asyncio
import json
import lzma
import sys
import tarfile
from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from deploy.local import Kafka, Redis
from stream_car.local import backup
from stream_car.local.change_feed import so_far
from stream_car.local.engine import Engine
from stream_car.subscriptions.events import Filter
from tests.golden import documents
from tests.golden.facts import events, facts
from tests.support.cluster import PARTITIONS, PLACES, Installed, installed
from tests.support.feeds import PAGES, WRITTEN, published

HERE = Path(__file__).parent
FEEDS = ("osv", "kev")
BEGAN = 1_800_000_000_000_000
VIEWS: tuple[Literal["document", "scope"], ...] = ("document", "scope")


class SlowClock:
    """A second passes with every look."""

    def __init__(self) -> None:
        self.time = BEGAN

    def now(self) -> int:
        self.time += 1_000_000
        return self.time


def main(name: str) -> None:
    target = HERE / name
    target.mkdir(exist_ok=True)
    with TemporaryDirectory() as scratch:
        _folders(Path(scratch), target)
        asyncio.run(_servers(Path(scratch), target))


def _folders(scratch: Path, target: Path) -> None:
    folder = scratch / "folder"
    with Engine(folder, ruleset=documents.ruleset(), clock=SlowClock()) as engine:
        cursors = [engine.generation + ":0"]
        for at, one in enumerate(documents.inputs()):
            engine.publish(one)
            if at % 97 == 0:
                cursors.append(f"{engine.generation}:{engine.last_change()}")
        for form in FEEDS:
            published(engine, form, [_written(scratch, form)])
        expected = facts(engine)
        middle = cursors[len(cursors) // 2]
        heard = {view: events(list(so_far(engine, Filter(view=view), middle, snapshot=False))) for view in VIEWS}
    backup.copy(folder, scratch / "backup")
    _pack(folder, target / "folder.tar.xz")
    _pack(scratch / "backup", target / "backup.tar.xz")
    small = scratch / "applied"
    with Engine(small, packs=["incident", "security"], future="wait", clock=SlowClock()) as engine:
        for one in (*documents.inputs()[:130], documents.inputs()[-4]):
            engine.publish(one)
        with engine.rebuild(future="apply") as rebuild:
            rebuild.switch()
        applied = facts(engine)
    _pack(small, target / "applied.tar.xz")
    _write(target / "expected.json.xz", {"folder": expected, "applied": applied, "after": [middle, heard]})
    _write(target / "cursors.json.xz", {"embedded": cursors})


def _written(scratch: Path, form: str) -> Path:
    """The feed that the how-to of a format publishes."""
    name, text = WRITTEN.findall((PAGES / f"{form}.md").read_text(encoding="utf-8"))[0]
    path = scratch / "feeds" / form / str(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(text), encoding="utf-8")
    return path


async def _servers(scratch: Path, target: Path) -> None:
    kafka, redis = Kafka(scratch / "kafka"), Redis(scratch / "redis")
    kafka.start()
    redis.start()
    try:
        async with installed(kafka.address, redis.url, ruleset=documents.ruleset()) as car:
            inputs = documents.inputs()
            for at in range(0, len(inputs), 50):
                await car.service.publish(inputs[at : at + 50])
            await car.rest()
            await asyncio.sleep(1)  # the last marks
            _write(target / "topics.json.xz", await _topics(car))
            _write(target / "redis.json.xz", await _redis(car))
            status = await car.service.status()
            names = json.loads(lzma.decompress((target / "expected.json.xz").read_bytes()))["folder"]["resolved"]
            answers = {one.asked: one.status for one in await car.service.resolve(list(names))}
            _write(
                target / "servers.json.xz",
                {
                    "generation": car.generation,
                    "cursor": status.cursor,
                    "partitions": list(PARTITIONS),
                    "outcomes": status.outcomes,
                    "statuses": answers,
                },
            )
    finally:
        kafka.kill()
        redis.kill()


async def _topics(car: Installed) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for topic in ("documents", "placements", "changes", "rejected"):
        log = car.works.log(topic)
        rows = found[topic] = []
        partition = 0
        while partition < (PARTITIONS[0] if topic == "documents" else PARTITIONS[1] if topic != "rejected" else 1):
            first, end = await log.range(partition)
            while first < end:
                for record in await log.fetch(partition, first, 1000):
                    headers = [[name, _text(value)] for name, value in record.headers]
                    row = [
                        partition,
                        record.offset,
                        record.append_time,
                        _text(record.key),
                        _text(record.value),
                        headers,
                    ]
                    rows.append(row)
                    first = record.offset + 1
            partition += 1
    return found


async def _redis(car: Installed) -> list[object]:
    rows: list[object] = []
    for place in PLACES:
        key = car.works.plan.store(car.works.client, place.hop)._key(place.shard)
        reply = await car.works.client.execute_command("HGETALL", key)
        assert isinstance(reply, dict)
        pairs = list(reply.items())
        rows.append([place.hop, place.shard, _text(key), [[_text(k), _text(v)] for k, v in pairs]])
    return rows


def _text(value: bytes | None) -> str | None:
    return b64encode(value).decode() if value is not None else None


def _pack(folder: Path, target: Path) -> None:
    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if member.name.endswith((".lock", "-shm")):
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = 0
        return member

    with tarfile.open(target, "w:xz") as archive:
        archive.add(folder, arcname="data", filter=plain)


def _write(path: Path, value: object) -> None:
    path.write_bytes(lzma.compress(json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()))


if __name__ == "__main__":
    main(sys.argv[1])

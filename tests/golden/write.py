"""Write the golden fixtures: `python -m tests.golden.write NAME` for those of this release.

The fixtures of older releases stay as they are. This starts Kafka and Redis (`make servers`).
"""

import asyncio
import json
import lzma
import sys
import tarfile
from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory

from deploy.local import Kafka, Redis
from stream_car.local import backup
from stream_car.local.engine import Engine
from stream_car.subscriptions.events import View
from tests.golden import documents
from tests.golden.facts import STATUS, event_facts, facts
from tests.support.cluster import PARTITIONS, PLACES, Installed, installed
from tests.support.feeds import PAGES, WRITTEN, published

HERE = Path(__file__).parent
FEEDS = ("osv", "kev")
BEGAN = 1_800_000_000_000_000
VIEWS: tuple[View, ...] = ("document", "scope")


class SlowClock:
    """A clock that moves on by a second whenever it is read."""

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
        directory = engine.directory
        cursors = [directory.generation + ":0"]
        for number, value in enumerate(documents.inputs()):
            engine.publish(value)
            if number % 97 == 0:
                cursors.append(f"{directory.generation}:{directory.last_change()}")
        for form in FEEDS:
            published(engine, form, [_written(scratch, form)])
        expected = facts(engine)
        middle = cursors[len(cursors) // 2]
        events = {view: event_facts(engine.subscribe(view=view, after=middle)) for view in VIEWS}
    backup.copy(folder, scratch / "backup")
    _pack(folder, target / "folder.tar.xz")
    _pack(scratch / "backup", target / "backup.tar.xz")
    small = scratch / "applied"
    with Engine(small, rules=["incident", "security"], future="wait", clock=SlowClock()) as engine:
        for value in (*documents.inputs()[:130], documents.inputs()[-4]):
            engine.publish(value)
        engine.rebuild(future="apply")
        applied = facts(engine)
    _pack(small, target / "applied.tar.xz")
    _write(target / "expected.json.xz", {"folder": expected, "applied": applied, "after": [middle, events]})
    _write(target / "cursors.json.xz", {"embedded": cursors})


def _written(scratch: Path, form: str) -> Path:
    """Write the feed that the how-to page of a format publishes."""
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
            for start in range(0, len(inputs), 50):
                await car.calls.publish(inputs[start : start + 50])
            await car.rest()
            await asyncio.sleep(1)  # the last watermarks
            _write(target / "topics.json.xz", await _topics(car))
            _write(target / "redis.json.xz", await _redis(car))
            status = await car.calls.status()
            names = json.loads(lzma.decompress((target / "expected.json.xz").read_bytes()))["folder"]["resolved"]
            resolutions = await car.calls.resolve(list(names))
            statuses = {resolution.name: STATUS[resolution.status] for resolution in resolutions}
            _write(
                target / "servers.json.xz",
                {
                    "generation": car.generation,
                    "cursor": status.cursor,
                    "partitions": list(PARTITIONS),
                    "outcomes": status.outcomes,
                    "statuses": statuses,
                },
            )
    finally:
        kafka.kill()
        redis.kill()


async def _topics(car: Installed) -> dict[str, list[object]]:
    topics: dict[str, list[object]] = {}
    for topic in ("documents", "placements", "changes", "rejected"):
        log = car.connections.log(topic)
        rows = topics[topic] = []
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
    return topics


async def _redis(car: Installed) -> list[object]:
    rows: list[object] = []
    for place in PLACES:
        client = car.connections.client
        key = car.connections.plan.store(client, place.hop)._key(place.shard)
        reply = await client.execute_command("HGETALL", key)
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

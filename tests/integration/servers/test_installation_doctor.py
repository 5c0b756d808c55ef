"""`stream-car doctor --kafka` finds damage and loss in real Kafka and Redis, names the cure, and changes nothing."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiokafka import TopicPartition
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from msgspec.structs import replace

from stream_car import rule_packs
from stream_car.adapters.redis.store import READ_MAX
from stream_car.adapters.search.index import TantivyIndex
from stream_car.cluster.doctor import examine
from stream_car.core.revisions import document_key
from stream_car.processing.findings import Finding
from stream_car.processing.state import HEADER
from tests.support.cluster import Installed, installed, query_worker
from tests.support.engines import document
from tests.support.servers import in_one_worker

pytestmark = in_one_worker("kafka")

DOCUMENTS = [document(f"d{n}", topic=str(n % 7), text=f"text {n}") for n in range(40)]
DOCUMENTS += [document("d3", revision=2, topic="3"), document("no", "denial", 9, topic="3")]
Harm = Callable[[Installed], Awaitable[None]]


@asynccontextmanager
async def at_rest(kafka: str, redis: str) -> AsyncIterator[Installed]:
    """Run an installation with documents within, whose shards have stopped."""
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish([*DOCUMENTS, b"{"])
        await cluster.calls.retract("d5")
        await cluster.rest()
        await cluster.stop_shards()
        yield cluster


async def findings(cluster: Installed, index: Path | None = None) -> list[Finding]:
    return [finding async for finding in examine(cluster.connections.plan, index)]


async def wrong_checks(cluster: Installed, index: Path | None = None) -> list[tuple[str, str]]:
    """Return the checks that found something, and how bad it is."""
    return [(each.check, each.status) for each in await findings(cluster, index) if each.status != "ok"]


def redis_key(cluster: Installed, hop: str, shard: int) -> str:
    return f"{{{cluster.connections.plan.name}.{hop}:{shard}}}"


async def damage_value(cluster: Installed) -> None:
    """Write a value with a valid checksum that no replay gives."""
    store = cluster.connections.plan.store(cluster.connections.client, "intake")
    claim = await store.claim(1)
    (other,) = (await store.read(await store.claim(0), [HEADER])).values()
    await store.commit(claim, claim.next_offset, {HEADER: other}, [])


async def flip_a_byte(cluster: Installed) -> None:
    key = redis_key(cluster, "frontier", 0)
    fields = await cluster.connections.client.execute_command("HKEYS", key)
    assert isinstance(fields, list)
    field = next(field for field in fields if field not in (b"head", b"outbox"))
    await cluster.connections.client.execute_command("HSET", key, field, b"\0" * 9)


async def write_a_document_that_nobody_published(cluster: Installed) -> None:
    """Write a value with a valid checksum under a key that no replay writes."""
    store = cluster.connections.plan.store(cluster.connections.client, "intake")
    (stored,) = (await store.read(await store.claim(0), [HEADER])).values()
    claim = await store.claim(1)
    await store.commit(claim, claim.next_offset, {document_key("nobody's"): stored}, [])


async def leave_a_key_behind(cluster: Installed) -> None:
    await cluster.connections.client.execute_command("HSET", redis_key(cluster, "intake", 7), b"head", b"x")


async def drop_a_shard(cluster: Installed) -> None:
    await cluster.connections.client.execute_command("UNLINK", redis_key(cluster, "frontier", 1))


async def lose_history(cluster: Installed) -> None:
    topic = cluster.connections.topic("intake")
    await delete_records(cluster, {TopicPartition(topic, 0): 3})


async def lose_changes(cluster: Installed) -> None:
    await delete_records(cluster, {TopicPartition(cluster.connections.layout.full_name("changes"), 0): 2})


async def delete_records(cluster: Installed, up_to: dict[TopicPartition, int]) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.connections.plan.kafka.address)
    await asyncio.to_thread(admin.delete_records, up_to)
    admin.close()


async def shorten_retention(cluster: Installed) -> None:
    name = cluster.connections.layout.full_name("placements")
    admin = KafkaAdminClient(bootstrap_servers=cluster.connections.plan.kafka.address)
    resource = ConfigResource(ConfigResourceType.TOPIC, name, configs={"retention.ms": "604800000"})
    await asyncio.to_thread(admin.alter_configs, [resource])
    admin.close()


HARMS: dict[Harm, tuple[tuple[str, str], str]] = {
    damage_value: (("state", "damaged"), "Drop that shard"),
    flip_a_byte: (("state", "damaged"), "Drop that shard"),
    write_a_document_that_nobody_published: (("state", "damaged"), "Drop that shard"),
    leave_a_key_behind: (("redis", "notice"), "UNLINK"),
    drop_a_shard: (("state", "notice"), "stream-car worker"),
    lose_history: (("log", "damaged"), "retention.ms"),
    lose_changes: (("changes", "notice"), "begin again"),
    shorten_retention: (("topics", "damaged"), "lost_history"),
}


async def test_a_sound_installation_is_found_sound_while_it_works(kafka: str, redis: str, tmp_path: Path) -> None:
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish([*DOCUMENTS, b"{"])
        await cluster.calls.retract("d5")
        await cluster.rest()
        async with query_worker(cluster.connections, tmp_path):
            pass
        stop = asyncio.Event()

        async def work() -> None:
            for number in range(1000):
                if stop.is_set():
                    return
                await cluster.calls.publish([document(f"more-{number}", topic=str(number % 7))])

        working = asyncio.create_task(work())
        meanwhile = await wrong_checks(cluster)
        stop.set()
        await working
        await cluster.rest()
        after = await findings(cluster)

    assert [(check, status) for check, status in meanwhile if (check, status) != ("changes", "notice")] == []
    assert [(each.check, each.status) for each in after] == [
        ("topics", "ok"), ("access", "ok"), ("state", "ok"), ("changes", "ok"),
    ]  # fmt: skip


async def test_each_kind_of_damage_and_loss_is_found_and_has_a_cure(kafka: str, redis: str) -> None:
    for harm, (expected, cure) in HARMS.items():
        async with at_rest(kafka, redis) as cluster:
            await harm(cluster)
            bad = [each for each in await findings(cluster) if each.status != "ok"]

        assert [(each.check, each.status) for each in bad] == [expected], harm.__name__
        assert cure in bad[0].cure, harm.__name__


async def test_more_foreign_values_than_one_read_tells_apart_are_at_least_so_many(kafka: str, redis: str) -> None:
    async with at_rest(kafka, redis) as cluster:
        key = redis_key(cluster, "intake", 1)
        for start in range(0, READ_MAX + 1, 1000):
            foreign = (part for at in range(start, start + 1000) for part in (b"foreign-%d" % at, b"x"))
            await cluster.connections.client.execute_command("HSET", key, *foreign)
        bad = [each for each in await findings(cluster) if each.status != "ok"]

    assert [(each.check, each.status) for each in bad] == [("state", "damaged")]
    assert f"At least {READ_MAX:,} fields have values that no replay gives" in bad[0].detail


async def test_other_rules_are_found_and_a_foreign_topic_name(kafka: str, redis: str) -> None:
    async with at_rest(kafka, redis) as cluster:
        plan = cluster.connections.plan
        other = [each async for each in examine(replace(plan, ruleset=rule_packs.load(["security"])), None)]
        nowhere = [each async for each in examine(replace(plan, prefix="nowhere"), None)]

    assert {(each.check, each.status) for each in other if each.status != "ok"} == {("rules", "damaged")}
    assert all("--rules" in each.cure for each in other if each.status != "ok")
    assert {(each.check, each.status) for each in nowhere} == {("topics", "damaged")}


async def test_a_stored_index_is_compared(kafka: str, redis: str, tmp_path: Path) -> None:
    async with at_rest(kafka, redis) as cluster:
        folder = tmp_path / "index"
        async with query_worker(cluster.connections, folder):
            pass
        sound = await findings(cluster, folder)
        index = TantivyIndex(folder)
        await index.apply([], ["d9"], await index.position())
        index.close()
        lacking = await findings(cluster, folder)

    assert (sound[-1].check, sound[-1].status) == ("index", "ok"), sound[-1]
    assert (lacking[-1].check, lacking[-1].status) == ("index", "damaged")
    assert "'d9'" in lacking[-1].detail

"""The rights of `deploy/kafka/acls.sh` and the users of `deploy/redis/redis.conf`, on a real broker with its standard
authorizer and a real Redis: each role can do its work, and no more."""

import argparse
import asyncio
import json
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourcePattern, ResourceType

from deploy.local import Kafka, Redis
from deploy.local.kafka import SETTINGS, read_properties
from stream_car import AsyncClient, rule_packs
from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import KEYS, Layout
from stream_car.adapters.kafka.topics import apply, session_min_s
from stream_car.adapters.redis.connection import connect
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.store import RedisStore
from stream_car.cluster.connections import Plan
from stream_car.cluster.doctor import examine
from stream_car.codec import encode
from stream_car.errors import StreamCarError
from stream_car.ports import Message
from tests.chaos.installation import RULES, STREAM_CAR
from tests.chaos.workers import QueryWorker, Worker
from tests.support.engines import document
from tests.support.redis_users import redis_users
from tests.support.repository import ROOT
from tests.support.servers import in_one_worker

pytestmark = in_one_worker(__name__)

USERS = ("publisher", "subscriber", "admin", "worker", "query-worker")
LAYOUT = Layout(prefix=f"acls-{secrets.token_hex(6)}", intakes=2, frontiers=2, single_broker=True)
DENIED_MS = 2500
THE_CLUSTER = "kafka-cluster"
TOPICS = ("documents", "placements", "changes", "rejected", KEYS)
READS = {
    "publisher": set[str](),
    "subscriber": {"changes"},
    "admin": set[str](),
    "worker": {"documents", "placements", "changes", KEYS},
    "query-worker": set(TOPICS),
}
WRITES = {
    "publisher": {"documents"},
    "subscriber": set[str](),
    "admin": {KEYS},
    "worker": {"documents", "placements", "changes", "rejected"},
    "query-worker": {"documents"},
}


def server(kafka: Kafka, user: str, timeout_ms: int = 5000) -> KafkaServer:
    return KafkaServer(
        address=kafka.address, username=user, password=f"{user}-word", mechanism="PLAIN", timeout_ms=timeout_ms
    )


def lines_of_the_script(folder: Path) -> list[list[str]]:
    """Run the script with a program that records the arguments of each call."""
    record, calls = folder / "record.py", folder / "calls"
    record.write_text(f"import json, sys\nprint(json.dumps(sys.argv[1:]), file=open({str(calls)!r}, 'a'))\n")
    environment = {**os.environ, "KAFKA_ACLS": f"{sys.executable} {record}"}
    subprocess.run(["sh", str(ROOT / "deploy/kafka/acls.sh"), LAYOUT.prefix], env=environment, check=True)
    return [json.loads(line) for line in calls.read_text().splitlines()]


def acls_of(words: list[str]) -> list[ACL]:
    """Return what a call of `kafka-acls.sh` adds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--add", action="store_true", required=True)
    parser.add_argument("--allow-principal", required=True)
    parser.add_argument("--operation", action="append", required=True)
    parser.add_argument("--topic")
    parser.add_argument("--group")
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--resource-pattern-type", default="literal")
    given = parser.parse_args(words)
    kind = ResourceType.CLUSTER if given.cluster else ResourceType.TOPIC if given.topic else ResourceType.GROUP
    pattern = ACLResourcePatternType[given.resource_pattern_type.upper()]
    operations = {operation.name.replace("_", "").lower(): operation for operation in ACLOperation}
    return [
        ACL(
            principal=given.allow_principal,
            host="*",
            operation=operations[name.lower()],
            permission_type=ACLPermissionType.ALLOW,
            resource_pattern=ResourcePattern(kind, given.topic or given.group or THE_CLUSTER, pattern),
        )
        for name in given.operation
    ]


@pytest.fixture(scope="module")
def broker(local_kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Run a broker on which nothing is allowed but what the script allows; its topics exist."""
    folder = tmp_path_factory.mktemp("acls")
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    users = 'username="broker" password="broker-word" '
    users += " ".join(f'user_{user}="{user}-word"' for user in ("broker", *USERS))
    kafka = Kafka(
        folder / "kafka",
        protocol="SASL_PLAINTEXT",
        properties={
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": f"{login} {users};",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": "User:broker;User:ANONYMOUS",  # the second is the broker on the controller's own listener
        },
    )
    kafka.start()
    try:
        admin = KafkaAdminClient(**server(kafka, "broker").options())
        added = admin.create_acls([acl for words in lines_of_the_script(folder) for acl in acls_of(words)])
        admin.close()
        assert not added["failed"]
        apply(server(kafka, "admin"), LAYOUT)
        asyncio.run(fill(kafka))
        yield kafka
    finally:
        kafka.kill()


async def fill(kafka: Kafka) -> None:
    """Put a record into every topic, so that there is something that must not be read."""
    sender = Sender(server(kafka, "broker"))
    for topic in TOPICS:
        await sender.send(LAYOUT.full_name(topic), 0, [Message(value=b"{}")])
    await sender.close()


async def can_read(kafka: Kafka, user: str, topic: str) -> bool:
    reader = await Reader.open(server(kafka, user, DENIED_MS))
    try:
        await KafkaLog(reader, Sender(server(kafka, user)), LAYOUT.full_name(topic), stall_s=1).fetch(0, 0, 1)
    except StreamCarError:  # the client asks about a topic that it may not see until the time is up
        return False
    finally:
        await reader.close()
    return True


async def can_write(kafka: Kafka, user: str, topic: str) -> bool:
    sender = Sender(server(kafka, user, DENIED_MS))
    try:
        await sender.send(LAYOUT.full_name(topic), 0, [Message(value=b"{}")])
    except StreamCarError:
        return False
    finally:
        await sender.close()
    return True


@pytest.mark.parametrize("user", USERS)
async def test_a_role_reads_and_writes_its_topics_and_no_others(broker: Kafka, user: str) -> None:
    written = await asyncio.gather(*(can_write(broker, user, topic) for topic in TOPICS))
    read = await asyncio.gather(*(can_read(broker, user, topic) for topic in TOPICS))

    assert {topic for topic, can in zip(TOPICS, written, strict=True) if can} == WRITES[user]
    assert {topic for topic, can in zip(TOPICS, read, strict=True) if can} == READS[user]


@pytest.mark.parametrize("user", ["publisher", "subscriber", "worker", "query-worker"])
def test_only_the_administrator_creates_topics(broker: Kafka, user: str) -> None:
    with pytest.raises(StreamCarError):
        apply(server(broker, user), Layout(prefix=f"{LAYOUT.prefix}.more", intakes=1, frontiers=1, single_broker=True))


async def test_doctor_names_the_topics_that_its_user_may_not_see(broker: Kafka, redis: Redis) -> None:
    def plan(user: str) -> Plan:
        access = RedisServer(url=redis.url, username="query-worker", password="query-worker-word")
        rules = rule_packs.load([str(RULES)])
        return Plan(kafka=server(broker, user), redis=access, ruleset=rules, prefix=LAYOUT.prefix, single_broker=True)

    denied = [finding async for finding in examine(plan("publisher"), None)]
    allowed = [finding async for finding in examine(plan("query-worker"), None)]

    assert [(each.check, each.status) for each in denied] == [("access", "damaged")]
    assert f"{LAYOUT.prefix}.placements" in denied[0].detail
    assert "acls.sh" in denied[0].cure
    assert [each.status for each in allowed if each.check in ("topics", "access")] == ["ok", "ok"]


def test_a_worker_may_ask_how_short_its_session_can_be(broker: Kafka) -> None:
    least = float(read_properties(SETTINGS)["group.min.session.timeout.ms"]) / 1000

    assert session_min_s(server(broker, "worker")) == least


@pytest.fixture(scope="module")
def redis(local_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """Run a Redis that has the users of `redis.conf`, for this installation, and no other."""
    folder = tmp_path_factory.mktemp("redis-users")
    users = folder / "users.acl"
    users.write_text("".join(f"user {' '.join(words)}\n" for words in redis_users(LAYOUT.prefix)))
    redis = Redis(folder / "redis", options=("--aclfile", str(users)))
    redis.start()
    yield redis
    redis.kill()


async def test_the_user_of_query_workers_reads_state_and_changes_nothing(redis: Redis) -> None:
    async with AsyncExitStack() as opened:

        async def store(user: str, prefix: str = LAYOUT.prefix) -> RedisStore:
            client = await connect(RedisServer(url=redis.url, username=user, password=f"{user}-word"))
            opened.push_async_callback(client.aclose)
            return RedisStore(client, f"{prefix}.test")

        writer, reader, foreign = await store("worker"), await store("query-worker"), await store("worker", "other")
        claim = await writer.claim(0)
        await writer.commit(claim, 1, {b"a": b"1"}, [])
        for denied in (reader.claim(0), reader.require_writable(0), reader.drop([0]), foreign.claim(0)):
            with pytest.raises(StreamCarError, match="denied access"):
                await denied
        await writer.require_writable(0)
        read = await reader.peek(0, [b"a"])
        await writer.drop([0])

    assert read == (1, {b"a": b"1"})


@asynccontextmanager
async def processes(broker: Kafka, redis: Redis, folder: Path) -> AsyncIterator[QueryWorker]:
    """Run a worker and a query worker within, each as its own user."""

    def environment(user: str) -> dict[str, str]:
        return {
            "STREAM_CAR_KAFKA": broker.address, "STREAM_CAR_KAFKA_USER": user, "STREAM_CAR_REDIS": redis.url,
            "STREAM_CAR_KAFKA_PASSWORD": f"{user}-word", "STREAM_CAR_KAFKA_MECHANISM": "PLAIN",
            "STREAM_CAR_REDIS_USER": user, "STREAM_CAR_REDIS_PASSWORD": f"{user}-word",
        }  # fmt: skip

    options = ["--single-broker", "--prefix", LAYOUT.prefix, "--rules", str(RULES)]
    worker = Worker(folder / "worker", environment("worker"), ["worker", "all", *options], STREAM_CAR)
    words = ["query-worker", "--port", "0", *options]
    query_worker = QueryWorker(folder / "query-worker", environment("query-worker"), words, STREAM_CAR)
    try:
        await worker.assigned(4)
        await query_worker.ready()
        yield query_worker
    finally:
        worker.kill()
        query_worker.kill()


async def test_documents_pass_from_a_publisher_to_a_subscriber(broker: Kafka, redis: Redis, tmp_path: Path) -> None:
    async with processes(broker, redis, tmp_path) as query_worker:
        sender = Sender(server(broker, "publisher"))
        value = encode(document("n1", "a", x="1"))
        for partition in range(LAYOUT.intakes):  # one of them is the wrong one: a worker forwards it
            await sender.send(LAYOUT.full_name("documents"), partition, [Message(value=value)])
        await sender.close()
        async with AsyncClient(await query_worker.url()) as client, asyncio.timeout(30):
            published = await client.publish(document("n2", "a", x="2"))
            while (await client.resolve(["n1"], min_revisions=[("n1", 1)]))[0].status != "in_force":
                await asyncio.sleep(0.1)

        reader = await Reader.open(server(broker, "subscriber"))
        log = KafkaLog(reader, sender, LAYOUT.full_name("changes"), stall_s=5)
        changes = [record for partition in range(2) for record in await log.fetch(partition, 0, 100)]
        await reader.close()

    assert published.receipts[0].outcome == "accepted"
    assert all(any(f'"{name}"'.encode() in (record.value or b"") for record in changes) for name in ("n1", "n2"))

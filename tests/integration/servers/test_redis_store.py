"""The store on a real Redis: what the contract does not cover, because it concerns this server."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

import pytest
from redis.asyncio import RedisCluster

from deploy.local import Redis
from stream_car.adapters.redis.connection import connect
from stream_car.adapters.redis.scripts import Pipeline, RedisClient
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.store import SWEEP_AT, RedisStore
from stream_car.adapters.redis.views import RedisViews
from stream_car.errors import ClaimLost, Halted, Overloaded, StreamCarError, Unavailable, UnsafeSettings
from stream_car.ports import Claim, Emission, ShardId
from tests.support.certificates import Certificates
from tests.support.redis_users import CLUSTER_RIGHTS, password_of, redis_users
from tests.support.repository import ROOT
from tests.support.servers import in_one_worker


def event(oseq: int) -> Emission:
    return Emission(oseq=oseq, stream="changes", key=b"scope", value=b"event %d" % oseq)


@pytest.fixture
def own(local_redis: None, tmp_path: Path) -> Iterator[Redis]:
    """Run a server that the test may break."""
    server = Redis(tmp_path / "redis", options=("--appendfsync", "always"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def client(own: Redis, runner: asyncio.Runner) -> Iterator[RedisClient]:
    client = runner.run(connect(RedisServer(url=own.url)))
    yield client
    runner.run(client.aclose())


@pytest.fixture
def store(client: RedisClient) -> RedisStore:
    return RedisStore(client, "test")


async def commit_up_to(store: RedisStore, commits: int) -> Claim:
    """Commit a state in which every value is the offset that it belongs to."""
    claim = await store.claim(0)
    for n in range(claim.next_offset + 1, commits + 1):
        claim = await store.commit(
            claim, n, {b"a": b"%d" % n, b"b": b"%d" % n, b"old %d" % n: None}, [event(claim.next_oseq)]
        )
        if n % 3 == 0:
            claim = await store.trim(claim, claim.next_oseq - 1)
    return claim


async def assert_whole(store: RedisStore) -> Claim:
    claim = await store.claim(0)
    offset = claim.next_offset
    values = await store.read(claim, [b"a", b"b"])
    assert values == ({b"a": b"%d" % offset, b"b": b"%d" % offset} if offset else {})
    assert claim.next_oseq == offset + 1
    assert [e.oseq for e in await store.outbox(claim)] == list(range(claim.trimmed + 1, claim.next_oseq))
    return claim


async def test_a_commit_is_exactly_one_command_in_the_append_only_file(own: Redis, store: RedisStore) -> None:
    claim = await store.claim(0)
    files = list((own.folder / "appendonlydir").glob("*.incr.aof"))
    before = files[0].stat().st_size

    await store.commit(claim, 3, {b"a": b"1", b"b": None}, [event(1), event(2)])

    words = files[0].read_bytes()[before:].split(b"\r\n")
    assert [word.upper() for word in words if word.upper() in (b"HSET", b"MULTI", b"EXEC", b"HDEL", b"EVAL")] == [
        b"HSET"
    ]


async def test_a_state_that_is_cut_anywhere_and_continued_is_one_that_was_committed(
    own: Redis, client: RedisClient, store: RedisStore
) -> None:
    random = Random(5)
    await commit_up_to(store, 40)
    for _ in range(12):
        own.kill()
        file_path = next((own.folder / "appendonlydir").glob("*.incr.aof"))
        with file_path.open("r+b") as file:
            file.truncate(random.randrange(file_path.stat().st_size // 2, file_path.stat().st_size))
        own.start()
        claim = await assert_whole(store)
        await commit_up_to(store, claim.next_offset + 10)
        own.kill()
        own.start()
        await assert_whole(store)


async def test_what_was_acknowledged_survives_a_kill(own: Redis, store: RedisStore) -> None:
    before = await commit_up_to(store, 20)
    own.kill()
    own.start()

    claim = await assert_whole(store)

    assert (claim.next_offset, claim.trimmed) == (before.next_offset, before.trimmed)


async def test_deleted_keys_are_swept(client: RedisClient, store: RedisStore) -> None:
    claim = await store.claim(0)
    keys = [b"key %d" % n for n in range(SWEEP_AT)]
    claim = await store.commit(claim, 1, dict.fromkeys(keys, b"value"), [])
    assert await client.execute_command("HLEN", "{test:0}") == SWEEP_AT + 1

    claim = await store.commit(claim, 2, {**dict.fromkeys(keys), b"kept": b"value"}, [])

    assert await client.execute_command("HLEN", "{test:0}") == 2
    assert await store.read(claim, [keys[0], b"kept"]) == {b"kept": b"value"}


async def test_the_step_of_the_runbook_drops_one_namespace_and_no_other(own: Redis, client: RedisClient) -> None:
    for namespace in ("streamcar", "streamcar-2"):
        for hop in ("intake", "frontier"):
            await commit_up_to(RedisStore(client, f"{namespace}.{hop}"), 1)
    runbook = (ROOT / "deploy" / "runbook.md").read_text(encoding="utf-8")
    [step] = {line for line in runbook.splitlines() if "--scan --pattern '{streamcar.*:*}'" in line}

    subprocess.run(["bash", "-ec", step], check=True, env={**os.environ, "STREAM_CAR_REDIS": own.url})

    remaining = await client.execute_command("KEYS", "*")
    assert isinstance(remaining, list)
    assert sorted(remaining) == [b"{streamcar-2.frontier:0}", b"{streamcar-2.intake:0}"]


@pytest.mark.parametrize("field", ["value", "head", "outbox"])
async def test_a_changed_byte_is_detected_before_it_is_used(client: RedisClient, store: RedisStore, field: str) -> None:
    claim = await store.commit(await store.claim(0), 1, {b"a": b"value"}, [event(1)])
    fields = await client.execute_command("HKEYS", "{test:0}")
    assert isinstance(fields, list)
    (name,) = [f for f in fields if f == field.encode() or (field == "value" and len(f) == 16)]
    stored = await client.execute_command("HGET", "{test:0}", name)
    assert isinstance(stored, bytes)
    position = 35 if field == "head" else -1  # of the head: a digit of the offset
    changed = bytearray(stored)
    changed[position] ^= 1
    await client.execute_command("HSET", "{test:0}", name, bytes(changed))
    reads = {"value": store.read(claim, [b"a"]), "head": store.claim(0), "outbox": store.outbox(claim)}

    with pytest.raises(Halted) as halted:
        await reads.pop(field)

    for other in reads.values():
        other.close()
    assert halted.value.code == "damaged"


async def test_a_batch_beyond_one_command_is_rejected_as_a_whole(store: RedisStore) -> None:
    claim = await store.claim(0)

    with pytest.raises(Overloaded):
        await store.commit(claim, 1, {b"%d" % n: b"" for n in range(4000)}, [])

    assert await store.read(claim, [b"1"]) == {}
    await store.commit(claim, 1, {b"%d" % n: b"" for n in range(3900)}, [event(1)])


async def test_a_full_server_rejects_a_commit_as_a_whole_and_continues_later(
    client: RedisClient, store: RedisStore
) -> None:
    claim = await store.commit(await store.claim(0), 1, {b"a": b"1"}, [])
    await client.execute_command("CONFIG", "SET", "maxmemory", "1mb")

    with pytest.raises(Unavailable, match="maxmemory"):
        await store.commit(claim, 2, {b"a": b"2" * 100_000}, [event(1)])

    assert await store.read(claim, [b"a"]) == {b"a": b"1"}
    await client.execute_command("CONFIG", "SET", "maxmemory", "0")
    assert (await store.commit(claim, 2, {b"a": b"2"}, [event(1)])).next_oseq == 2


class WrappedClient:
    """A client whose scans are those of another."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    def scan_iter(self, match: bytes) -> AsyncIterator[bytes]:
        return self._client.scan_iter(match)

    def hscan_iter(self, name: bytes, *, count: int) -> AsyncIterator[tuple[bytes, bytes]]:
        return self._client.hscan_iter(name, count=count)


class RepeatingClient(WrappedClient):
    """A client whose first replies are lost: it sends every command again, as drivers do."""

    async def execute_command(self, *args: str | bytes | int) -> object:
        await self._client.execute_command(*args)
        return await self._client.execute_command(*args)

    def pipeline(self, transaction: bool = False) -> Pipeline:
        return self._client.pipeline(transaction)

    async def aclose(self) -> None:
        await self._client.aclose()


async def test_a_call_that_was_executed_twice_counts_once(client: RedisClient) -> None:
    store = RedisStore(RepeatingClient(client), "test")

    await commit_up_to(store, 10)

    claim = await assert_whole(store)
    await store.commit(claim, 11, {}, [])
    with pytest.raises(ClaimLost):
        await store.commit(claim, 11, {}, [])


class LateClient(WrappedClient):
    """A client that returns for each command the reply of the one before."""

    def __init__(self, client: RedisClient) -> None:
        super().__init__(client)
        self._reply: object = []
        self.dropped = 0

    async def execute_command(self, *args: str | bytes | int) -> object:
        late, self._reply = self._reply, await self._client.execute_command(*args)
        return late

    def pipeline(self, transaction: bool = False) -> Pipeline:
        return LatePipeline(self, self._client.pipeline(transaction))

    async def aclose(self) -> None:
        self.dropped += 1


class LatePipeline:
    """Commands that get the replies of those before them."""

    def __init__(self, late: LateClient, pipeline: Pipeline) -> None:
        self._late, self._pipeline = late, pipeline

    def execute_command(self, *args: str | bytes | int) -> object:
        return self._pipeline.execute_command(*args)

    async def execute(self, raise_on_error: bool = True) -> list[object]:
        replies = [self._late._reply, *await self._pipeline.execute(raise_on_error)]
        self._late._reply = replies[-1]
        return replies[:-1]


async def test_the_reply_to_another_call_is_never_used(client: RedisClient, store: RedisStore) -> None:
    claim = await store.commit(await store.claim(0), 1, {b"a": b"1", b"b": b"2"}, [])
    late = LateClient(client)
    other = RedisStore(late, "test")

    for key in (b"a", b"b", b"a"):
        with pytest.raises(Unavailable):
            await other.read(claim, [key])

    assert late.dropped == 3

    views = RedisViews(intake=other, frontier=other)
    with pytest.raises(Unavailable):
        await views.peek({ShardId("intake", 0): [b"a"], ShardId("frontier", 0): [b"b"]})


async def test_many_shards_are_read_in_one_exchange_even_if_the_server_has_lost_the_script(client: RedisClient) -> None:
    intake, frontier = RedisStore(client, "in"), RedisStore(client, "out")
    await intake.commit(await intake.claim(0), 5, {b"a": b"1"}, [])
    many = {b"%d" % n: b"v%d" % n for n in range(3000)}
    claim = await frontier.commit(await frontier.claim(2), 7, many, [])
    for start in (3000, 6000):
        more = {b"%d" % n: b"v%d" % n for n in range(start, start + 3000)}
        claim = await frontier.commit(claim, 7, more, [])
        many |= more
    views = RedisViews(intake=intake, frontier=frontier)
    few = {
        ShardId("intake", 0): [b"a", b"a", b"absent"],
        ShardId("intake", 1): [],
        ShardId("frontier", 2): [b"1", b"2"],
    }
    expected = {
        ShardId("intake", 0): (5, {b"a": b"1"}),
        ShardId("intake", 1): (0, {}),
        ShardId("frontier", 2): (7, {b"1": b"v1", b"2": b"v2"}),
    }

    assert await views.peek(few) == expected
    await client.execute_command("SCRIPT", "FLUSH")
    assert await views.peek(few) == expected
    assert await views.peek({ShardId("frontier", 2): list(many)}) == {ShardId("frontier", 2): (7, many)}


async def test_cancelled_calls_mix_up_no_replies(store: RedisStore) -> None:
    claim = await store.claim(0)
    writes: dict[bytes, bytes | None] = {b"%d" % n: b"value %d" % n for n in range(100)}
    claim = await store.commit(claim, 1, writes, [])
    random = Random(3)
    for n in range(1000):
        key = b"%d" % (n % 100)
        reading = asyncio.create_task(store.read(claim, [key]))
        for _ in range(random.randrange(6)):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        other = b"%d" % ((n + 1) % 100)
        assert await store.read(claim, [other]) == {other: b"value " + other}


@pytest.mark.parametrize(
    ("setting", "value"),
    [("maxmemory-policy", "allkeys-lru"), ("appendonly", "no"), ("appendfsync", "no")],
)
async def test_unsafe_settings_are_rejected_by_name(own: Redis, client: RedisClient, setting: str, value: str) -> None:
    await client.execute_command("CONFIG", "SET", setting, value)

    with pytest.raises(UnsafeSettings, match=setting):
        await connect(RedisServer(url=own.url))


async def test_a_server_with_replicas_must_acknowledge_only_what_one_of_them_has(
    own: Redis, client: RedisClient, tmp_path: Path
) -> None:
    await client.execute_command("CONFIG", "SET", "repl-diskless-sync-delay", "0")
    replica = Redis(tmp_path / "replica", options=("--replicaof", "127.0.0.1", str(own.port)))
    replica.start()
    try:
        assert await client.execute_command("WAIT", 1, 4000) == 1
        with pytest.raises(UnsafeSettings, match="min-replicas-to-write"):
            await connect(RedisServer(url=own.url))
        with pytest.raises(UnsafeSettings, match="is a replica"):
            await connect(RedisServer(url=replica.url))
        await client.execute_command("CONFIG", "SET", "min-replicas-to-write", "1")
        await (await connect(RedisServer(url=own.url))).aclose()
    finally:
        replica.kill()


async def test_the_error_about_a_missing_server_names_its_port(own: Redis) -> None:
    own.kill()

    with pytest.raises(Unavailable, match=str(own.port)):
        await connect(RedisServer(url=own.url, timeout_s=0.3))


@pytest.fixture
def guarded(local_redis: None, tmp_path: Path, certificates: Certificates) -> Iterator[Redis]:
    """Run a server with encryption and one user who may do only what a worker does."""
    commands = "+eval +hget +hmget +hset +hdel +evalsha +unlink +info +ping +hello"
    users = tmp_path / "users"
    users.write_text(f"user worker on >secret-word ~{{test:* {commands}\nuser default off\n")
    files = ("--tls-cert-file", certificates.server, "--tls-key-file", certificates.server_key)
    server = Redis(
        tmp_path / "redis",
        options=(
            "--tls-ca-cert-file", certificates.ca, *files, "--tls-auth-clients", "no",
            "--aclfile", str(users),
        ),
        encrypted=True,
    )  # fmt: skip
    server.start()
    yield server
    server.kill()


async def test_an_encrypted_connection_of_a_user_with_few_rights(guarded: Redis, certificates: Certificates) -> None:
    server = RedisServer(url=guarded.url, username="worker", password="secret-word", ca=certificates.ca)
    client = await connect(server)

    await commit_up_to(RedisStore(client, "test"), 3)
    with pytest.raises(StreamCarError, match="denied access"):
        await RedisStore(client, "other").claim(0)

    await client.aclose()


async def test_errors_about_a_wrong_password_or_an_unknown_certificate_contain_no_password(
    guarded: Redis, certificates: Certificates
) -> None:
    with pytest.raises(StreamCarError) as caught:
        await connect(RedisServer(url=guarded.url, username="worker", password="wrong-word", ca=certificates.ca))
    with pytest.raises(Unavailable, match="certificate"):
        await connect(RedisServer(url=guarded.url, username="worker", password="secret-word", timeout_s=1))

    assert "wrong-word" not in str(caught.value)
    assert "word" not in repr(RedisServer(url="redis://me:secret-word@host:1", password="wrong-word"))


@in_one_worker("redis_cluster")
async def test_a_cluster_spreads_shards(redis_cluster: str) -> None:
    client = await connect(RedisServer(url=redis_cluster))
    store = RedisStore(client, "spread")
    for shard in range(16):
        await store.commit(await store.claim(shard), 1, {b"a": b"1"}, [])
    port = redis_cluster.rpartition(":")[2]
    nodes = subprocess.run(["redis-cli", "-p", port, "cluster", "nodes"], capture_output=True, text=True, check=True)
    ports = [line.split()[1].partition("@")[0].rpartition(":")[2] for line in nodes.stdout.splitlines()]
    sizes = [
        int(subprocess.run(["redis-cli", "-p", p, "dbsize"], capture_output=True, text=True, check=True).stdout)
        for p in ports
    ]
    shards = [ShardId("frontier", shard) for shard in range(16)]
    views = await RedisViews(intake=store, frontier=store).peek({shard: [b"a"] for shard in shards})
    await store.drop(range(16))
    await client.aclose()

    assert views == {shard: (1, {b"a": b"1"}) for shard in shards}
    assert len(sizes) == 3
    assert sum(sizes) >= 16
    assert min(sizes) > 0


@in_one_worker("redis_cluster")
async def test_on_a_cluster_the_shipped_users_work_with_the_further_rights_that_the_file_names(
    redis_cluster: str,
) -> None:
    async with AsyncExitStack() as opened:

        async def store(user: str) -> RedisStore:
            access = RedisServer(url=redis_cluster, username=user, password=password_of(user))
            client = await connect(access)
            opened.push_async_callback(client.aclose)
            return RedisStore(client, "users.test")

        admin = await connect(RedisServer(url=redis_cluster))
        opened.push_async_callback(admin.aclose)
        assert isinstance(admin, RedisCluster)
        for name, *rights in redis_users("users")[1:]:  # without the default user, which is this one
            await admin.execute_command("ACL SETUSER", name, *rights, *CLUSTER_RIGHTS, target_nodes="primaries")
        writer = await store("worker")
        reader = await store("query-worker")
        for shard in range(8):
            await writer.commit(await writer.claim(shard), 1, {b"a": b"%d" % shard}, [])
        read = [await reader.peek(shard, [b"a"]) for shard in range(8)]
        foreign = [await reader.foreign_fields(shard, []) for shard in range(8)]
        keys = await reader.foreign_keys([0, 3])
        with pytest.raises(StreamCarError, match="denied access"):
            await reader.claim(0)
        await writer.drop(range(8))

    assert read == [(1, {b"a": b"%d" % shard}) for shard in range(8)]
    assert [len(fields) for fields in foreign] == [1] * 8
    assert keys == [b"{users.test:%d}" % shard for shard in (1, 2, 4, 5, 6, 7)]

"""A client for Redis, if its settings keep our promises.

Promise: a server that could lose or half-keep state is refused at start, by the name of the setting.
"""

from collections.abc import Iterator, Mapping
from typing import TypedDict, cast

from redis import exceptions
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from stream_car.adapters.redis.scripts import Client, translated
from stream_car.adapters.redis.settings import RedisServer
from stream_car.errors import StreamCarError, UnsafeSettings

VERSION_MIN = (7, 0)
RETRIES = 3

Info = Mapping[str, object]


class _Options(TypedDict, total=False):
    socket_timeout: float
    socket_connect_timeout: float
    health_check_interval: int
    retry: Retry
    username: str
    password: str
    ssl_ca_certs: str
    ssl_certfile: str
    ssl_keyfile: str


async def connect(server: RedisServer) -> Client:
    """A client for it, as a cluster if it is one. Raises `UnsafeSettings`, `Unavailable`, `StreamCarError`."""
    single = Redis.from_url(server.url, **_options(server))
    try:
        with translated():
            info = cast(Info, await single.info())
            problems = list(_problems(info, await _flushing(single), server.place))
    except BaseException:
        await single.aclose()
        raise
    if info.get("redis_mode") != "cluster":
        if problems:
            await single.aclose()
            raise UnsafeSettings(tuple(problems))
        return cast(Client, single)
    await single.aclose()
    return await _cluster(server)


async def _cluster(server: RedisServer) -> Client:
    cluster = RedisCluster.from_url(server.url, **_options(server))
    try:
        with translated():
            await cluster.initialize()
            problems = [text for node in cluster.get_primaries() for text in await _of_node(cluster, node)]
        if problems:
            raise UnsafeSettings(tuple(problems))
    except BaseException:
        await cluster.aclose()
        raise
    return cast(Client, cluster)


async def _of_node(cluster: RedisCluster, node: object) -> list[str]:
    info = cast(Info, await cluster.info(target_nodes=node))
    return list(_problems(info, "", str(getattr(node, "name", "a node"))))


async def _flushing(client: Redis) -> str:
    """When the append-only file is flushed; empty where we may not ask."""
    try:
        return str((await client.config_get("appendfsync")).get("appendfsync", ""))
    except exceptions.ResponseError:
        return ""


def _problems(info: Info, flushing: str, place: str) -> Iterator[str]:
    version = str(info.get("redis_version", "0"))
    if tuple(int(part) for part in version.split(".")[:2]) < VERSION_MIN:
        yield f"Redis at {place} is version {version}; it must be 7.0 or later"
    policy = info.get("maxmemory_policy")
    if policy != "noeviction":
        yield f"maxmemory-policy of Redis at {place} is {policy}; it must be noeviction, or state disappears"
    if info.get("aof_enabled") != 1:
        yield f"appendonly of Redis at {place} is no; it must be yes, or a restart loses minutes of state"
    if flushing == "no":
        yield f"appendfsync of Redis at {place} is no; it must be everysec or always"
    if info.get("role") != "master":
        yield f"Redis at {place} is a replica; name its primary"
    elif info.get("connected_slaves") and "min_slaves_good_slaves" not in info:
        yield f"min-replicas-to-write of Redis at {place} is 0; with replicas it must be 1 or more"


def _options(server: RedisServer) -> _Options:
    options = _Options(
        socket_timeout=server.timeout_s,
        socket_connect_timeout=server.timeout_s,
        health_check_interval=30,
        retry=Retry(ExponentialBackoff(cap=0.2, base=0.02), RETRIES),
    )
    if server.username is not None:
        options["username"] = server.username
    if server.password is not None:
        options["password"] = server.password
    if server.ca is not None:
        options["ssl_ca_certs"] = server.ca
    if server.certificate is not None:
        options["ssl_certfile"] = server.certificate
    if server.key is not None:
        options["ssl_keyfile"] = server.key
    if not server.url.startswith(("redis://", "rediss://", "unix://")):
        raise StreamCarError(f"a Redis address looks like redis://host:6379 or rediss://host:6379, not {server.place}")
    if server.ca is not None and not server.url.startswith("rediss://"):
        raise StreamCarError("a certificate of Redis was given, but the address is not rediss://")
    return options

"""Connects to Redis, if its settings keep our promises.

Promise: a server that could lose state, or keep half of a commit, is rejected at start with the name of the setting.
"""

from collections.abc import Iterator, Mapping
from typing import TypedDict, cast

from redis import exceptions
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from stream_car.adapters.redis.scripts import RedisClient, translate_errors
from stream_car.adapters.redis.settings import RedisServer
from stream_car.errors import Unavailable, UnsafeSettings

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


async def connect(server: RedisServer) -> RedisClient:
    """Return a client for a server or a cluster.

    Raises:
        StreamCarError: the address is not one, a certificate is missing, or the server denies access.
        Unavailable: nothing answers at the address.
        UnsafeSettings: the server could lose state.
    """
    server.require_address()
    single = Redis.from_url(server.url, **_options(server))
    try:
        with translate_errors():
            info = cast(Info, await single.info())
            problems = list(_problems(info, await _appendfsync(single), server.place))
    except Unavailable as error:
        await single.aclose()
        raise Unavailable(f"{error} The address is {server.place}: check that Redis runs there.") from error
    except BaseException:
        await single.aclose()
        raise
    if info.get("redis_mode") != "cluster":
        if problems:
            await single.aclose()
            raise UnsafeSettings(tuple(problems))
        return cast(RedisClient, single)
    await single.aclose()
    return await _cluster(server)


async def _cluster(server: RedisServer) -> RedisClient:
    cluster = RedisCluster.from_url(server.url, **_options(server))
    try:
        with translate_errors():
            await cluster.initialize()
            problems = [text for node in cluster.get_primaries() for text in await _node_problems(cluster, node)]
        if problems:
            raise UnsafeSettings(tuple(problems))
    except BaseException:
        await cluster.aclose()
        raise
    return cast(RedisClient, cluster)


async def _node_problems(cluster: RedisCluster, node: object) -> list[str]:
    info = cast(Info, await cluster.info(target_nodes=node))
    return list(_problems(info, "", str(getattr(node, "name", "a node"))))


async def _appendfsync(client: Redis) -> str:
    """Return when the append-only file is flushed; an empty string if the user may not read settings."""
    try:
        return str((await client.config_get("appendfsync")).get("appendfsync", ""))
    except exceptions.ResponseError:
        return ""


def _problems(info: Info, appendfsync: str, place: str) -> Iterator[str]:
    version = str(info.get("redis_version", "0"))
    if tuple(int(part) for part in version.split(".")[:2]) < VERSION_MIN:
        yield f"Redis at {place} has version {version}: upgrade it to 7.0 or later"
    policy = info.get("maxmemory_policy")
    if policy != "noeviction":
        yield f"Set maxmemory-policy of Redis at {place} to noeviction (it is {policy}): otherwise it deletes state"
    if info.get("aof_enabled") != 1:
        yield f"Set appendonly of Redis at {place} to yes (it is no): otherwise a restart loses minutes of state"
    if appendfsync == "no":
        yield f"Set appendfsync of Redis at {place} to everysec or always (it is no)"
    if info.get("role") != "master":
        yield f"Redis at {place} is a replica: use the address of its primary"
    elif info.get("connected_slaves") and "min_slaves_good_slaves" not in info:
        yield f"Set min-replicas-to-write of Redis at {place} to 1 or more (it is 0): it has replicas"


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
    return options

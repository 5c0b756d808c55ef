"""A worker that dies at a named point: `python -m tests.chaos.doomed worker all ...`, as `stream-car` is called.

Promise: with `CHAOS_AT=point:n` the process kills itself, as `kill -9` would, when it comes to the point for the
n-th time; nothing in Stream-CAR knows of it. `CHAOS_SESSION_MS` shortens the session of the group, so that a
short run sees as many hand-overs as a long one; without it the session is the one that ships.
"""

import os
import signal
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.redis.scripts import Calls
from stream_car.adapters.redis.store import RedisStore
from stream_car.cli import main
from stream_car.cluster import consumer_group
from stream_car.processing.outbox import WatermarkEmitter

P = ParamSpec("P")
T = TypeVar("T")

BEFORE: dict[str, tuple[type, str]] = {
    "before a commit": (RedisStore, "commit"),
    "before a trim": (RedisStore, "trim"),
    "before a mark": (WatermarkEmitter, "mark"),
}
AFTER: dict[str, tuple[type, str]] = {
    "after a claim": (RedisStore, "claim"),
    "after a fetch": (KafkaLog, "fetch"),
    "after a read": (RedisStore, "read"),
    "after a write, before its reply is read": (Calls, "swap"),
    "after a commit": (RedisStore, "commit"),
    "after a part was published": (Sender, "send"),
    "after a trim": (RedisStore, "trim"),
    "after a mark": (WatermarkEmitter, "mark"),
}
POINTS = (*BEFORE, *AFTER)


def _dies(times: int) -> Callable[[], None]:
    """A function that ends the process when it is called for the n-th time."""
    left = times

    def passing() -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return passing


def _before(passing: Callable[[], None], work: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    async def doomed(*args: P.args, **kwargs: P.kwargs) -> T:
        passing()
        return await work(*args, **kwargs)

    return doomed


def _after(passing: Callable[[], None], work: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Only where there was something to do: an empty fetch is none."""

    async def doomed(*args: P.args, **kwargs: P.kwargs) -> T:
        done = await work(*args, **kwargs)
        if done:
            passing()
        return done

    return doomed


def doom(point: str, times: int) -> None:
    """Put the end of this process at that point."""
    passing = _dies(times)
    owner, name = BEFORE[point] if point in BEFORE else AFTER[point]
    put = _before if point in BEFORE else _after
    setattr(owner, name, put(passing, getattr(owner, name)))


if __name__ == "__main__":
    if at := os.environ.get("CHAOS_AT"):
        where, _, count = at.rpartition(":")
        doom(where, int(count))
    consumer_group.SESSION_MS = int(os.environ.get("CHAOS_SESSION_MS", consumer_group.SESSION_MS))
    main()

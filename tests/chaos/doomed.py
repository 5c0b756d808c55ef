"""A worker that dies at a named point: `python -m tests.chaos.doomed worker all ...`, with arguments of `stream-car`.

Promise: with `CHAOS_AT=point:n` the process kills itself, as `kill -9` would, when it reaches the point for the n-th
time; nothing in Stream-CAR knows of it.
"""

import os
import signal
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.redis.scripts import ScriptCalls
from stream_car.adapters.redis.store import RedisStore
from stream_car.cli import main
from stream_car.processing.outbox import IntakeOutbox

P = ParamSpec("P")
T = TypeVar("T")

BEFORE: dict[str, tuple[type, str]] = {
    "before a commit": (RedisStore, "commit"),
    "before a trim": (RedisStore, "trim"),
    "before a watermark": (IntakeOutbox, "emit_watermarks"),
}
AFTER: dict[str, tuple[type, str]] = {
    "after a claim": (RedisStore, "claim"),
    "after a fetch": (KafkaLog, "fetch"),
    "after a read": (RedisStore, "read"),
    "after a write, before its reply is read": (ScriptCalls, "swap"),
    "after a commit": (RedisStore, "commit"),
    "after a part was published": (Sender, "send"),
    "after a trim": (RedisStore, "trim"),
    "after a watermark": (IntakeOutbox, "emit_watermarks"),
}
POINTS = (*BEFORE, *AFTER)


def _die_at_call(number: int) -> Callable[[], None]:
    """Return a function that kills the process when it is called for the n-th time."""
    remaining = number

    def reach() -> None:
        nonlocal remaining
        remaining -= 1
        if remaining <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return reach


def _before(reach: Callable[[], None], method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    async def doomed(*args: P.args, **kwargs: P.kwargs) -> T:
        reach()
        return await method(*args, **kwargs)

    return doomed


def _after(reach: Callable[[], None], method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Count only calls that did something: an empty fetch does not count."""

    async def doomed(*args: P.args, **kwargs: P.kwargs) -> T:
        result = await method(*args, **kwargs)
        if result:
            reach()
        return result

    return doomed


def doom(point: str, number: int) -> None:
    """Let this process die when it reaches the point for the n-th time."""
    reach = _die_at_call(number)
    owner, name = BEFORE[point] if point in BEFORE else AFTER[point]
    wrap = _before if point in BEFORE else _after
    setattr(owner, name, wrap(reach, getattr(owner, name)))


if __name__ == "__main__":
    if death := os.environ.get("CHAOS_AT"):
        death_point, _, death_number = death.rpartition(":")
        doom(death_point, int(death_number))
    main()

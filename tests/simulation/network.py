"""The network between workers and what they call: it loses, delays and repeats requests.

Promise: what a request does, it does at one moment; everything that befalls it is drawn from one random source.
"""

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import suppress
from random import Random
from typing import TypeVar

from stream_car.errors import ClaimLost, StreamCarError

T = TypeVar("T")
FAULTS = ("crash before", "crash after", "lost before", "lost after", "late", "twice")


class Crash(Exception):
    """The worker is gone, with everything it had in memory."""


class Lost(StreamCarError):
    """No reply came; whether the request had an effect is not known."""


class Pause:
    """Gives the other worker a turn."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Network:
    """Carries requests; `rate` of them meet a fault. `now` is the clock of the logs."""

    def __init__(self, random: Random, rate: float) -> None:
        self.random = random
        self.rate = rate
        self.now = 0
        self.late: list[Callable[[], object]] = []
        self.seen: Counter[str] = Counter()

    def happens(self, rate: float) -> bool:
        return self.random.random() < rate

    async def call(self, effect: Callable[[], T]) -> T:
        """One request, with whatever befalls it."""
        await Pause()
        fault = self.random.choice(FAULTS) if self.happens(self.rate) else ""
        if fault:
            self.seen[fault] += 1
        if fault == "crash before":
            raise Crash
        if fault in ("lost before", "late"):
            if fault == "late":
                self.late.append(effect)
            raise Lost(fault)
        result = effect()
        if fault == "crash after":
            raise Crash
        if fault == "lost after":
            raise Lost(fault)
        if fault == "twice":
            with suppress(ClaimLost):
                effect()
        await Pause()
        return result

    def execute_late(self) -> None:
        """A request that was long in coming; nobody waits for its reply."""
        with suppress(ClaimLost):
            self.late.pop(self.random.randrange(len(self.late)))()

"""The synchronous face of the engine: its coroutines run to their end at once, because embedded adapters never wait."""

from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


def at_once(work: Coroutine[object, object, T]) -> T:
    """The result of a coroutine that never suspends, as those of the embedded adapters are."""
    try:
        work.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    work.close()
    raise RuntimeError("an embedded adapter waited for something")

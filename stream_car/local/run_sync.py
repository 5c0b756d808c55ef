"""Run coroutines that never suspend, without an event loop."""

from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


def run_sync(coroutine: Coroutine[object, object, T]) -> T:
    """Return the result of a coroutine that never suspends, as those of local adapters do."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("a local adapter suspended")

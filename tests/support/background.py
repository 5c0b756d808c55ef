"""Something asynchronous that runs in a thread of its own while a synchronous test uses it."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Generic, TypeVar

START_S = 90

T = TypeVar("T")
A = TypeVar("A")


class Background(Generic[T]):
    """What runs, and the loop that it runs on."""

    def __init__(self, value: T, loop: asyncio.AbstractEventLoop) -> None:
        self.value = value
        self._loop = loop

    def run(self, work: Coroutine[object, object, A]) -> A:
        """Run a coroutine on the loop, and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


@contextmanager
def in_background(opening: AbstractAsyncContextManager[T]) -> Iterator[Background[T]]:
    """Open an asynchronous context in another thread, and close it at the end of the block. Its errors are raised."""
    started: Future[T] = Future()
    ended: Future[None] = Future()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def run() -> None:
        async with opening as value:
            started.set_result(value)
            await stop.wait()

    def work() -> None:
        try:
            loop.run_until_complete(run())
        except BaseException as error:
            (ended if started.done() else started).set_exception(error)
        else:
            ended.set_result(None)
        finally:
            loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    value = started.result(START_S)
    try:
        yield Background(value, loop)
    finally:
        if not ended.done():
            loop.call_soon_threadsafe(stop.set)
        thread.join()
    ended.result()

"""Something to publish to and to ask: the embedded engine, or an installation on the servers of this test.

Over servers the calls go through the client, over a real socket, and each sees all that was published before.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from stream_car import Client, Engine
from stream_car.codec import Publishables
from stream_car.http import server
from stream_car.queries.answers import Published
from stream_car.ranking.settings import SETTINGS, Settings
from stream_car.settings import ServerSettings
from tests.support import engines
from tests.support.back_ends import Servers, servers
from tests.support.cluster import Installed, installed


class Served(Client):
    """A client of an installation that runs in a thread."""

    def __init__(self, url: str, here: Installed, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(url)
        self.here = here
        self._loop = loop

    @property
    def generation(self) -> str:
        """Names the rules and the partitions."""
        return self.here.generation

    def publish(self, documents: Publishables) -> Published:
        """Keep documents, and see to it that the next answer counts them."""
        published = super().publish(documents)
        asyncio.run_coroutine_threadsafe(self.here.rest(), self._loop).result()
        return published


Car = Engine | Served


@contextmanager
def engine(*, ranking: Settings = SETTINGS) -> Iterator[Car]:
    """With the small domain; over nothing beside this process its time stands still."""
    where = servers()
    if where is None:
        with engines.engine(ranking=ranking) as car:
            yield car
    else:
        with _served(where, ranking) as served:
            yield served


@contextmanager
def _served(where: Servers, ranking: Settings) -> Iterator[Served]:
    told: list[Served] = []
    failed: list[BaseException] = []
    has_begun = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    settings = ServerSettings(port=0)

    async def run() -> None:
        with server.bound(settings, None) as listener:
            async with installed(
                where.kafka, where.redis, ruleset=engines.RULESET, settings=settings, ranking=ranking
            ) as here:

                def ready(url: str) -> None:
                    told.append(Served(url, here, loop))
                    has_begun.set()

                await server.served(
                    here.service, listener, settings, token=None, ready=ready, stop=stop, end=here.service.end
                )

    def work() -> None:
        try:
            loop.run_until_complete(run())
        except BaseException as error:
            failed.append(error)
        finally:
            has_begun.set()

    thread = threading.Thread(target=work)
    thread.start()
    has_begun.wait()
    try:
        if failed:
            raise failed[0]
        yield told[0]
    finally:
        for served in told:
            served.close()
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
    if failed:
        raise failed[0]

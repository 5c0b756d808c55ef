"""An engine in this process, or a service over HTTP, for tests that publish to it and send it requests.

Promise: a call of a service goes through the client, over a real socket, and sees everything published before.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from stream_car import Client, Engine
from stream_car.api.requests import PublishOptions
from stream_car.codec import Publishables
from stream_car.core.rules import Ruleset
from stream_car.queries.answers import Published
from stream_car.ranking.settings import SETTINGS, Settings
from tests.support import engines
from tests.support.back_ends import servers
from tests.support.background import Background, in_background
from tests.support.engines import RULESET
from tests.support.http_service import Running, serving


class ServedClient(Client):
    """A client of a service that runs in another thread."""

    def __init__(self, service: Background[Running], token: str | None) -> None:
        super().__init__(service.value.url, token=token)
        self._service = service

    def _publish(self, documents: Publishables, options: PublishOptions) -> Published:
        """Publish, and return when the next answer counts it."""
        published = super()._publish(documents, options)
        self._service.run(self._service.value.rest())
        return published


Car = Engine | ServedClient


@contextmanager
def engine(*, ranking: Settings = SETTINGS) -> Iterator[Car]:
    """Return an engine whose time stands still, or on the servers of this test, a client of an installation."""
    if servers() is None:
        with engines.engine(ranking=ranking) as car:
            yield car
    else:
        with served(ranking=ranking) as client:
            yield client


@contextmanager
def served(
    *, ruleset: Ruleset = RULESET, ranking: Settings = SETTINGS, token: str | None = None
) -> Iterator[ServedClient]:
    """Return a client of a service: of one process, or of an installation on the servers of this test."""
    serving_now = serving(ruleset=ruleset, ranking=ranking, token=token)
    with in_background(serving_now) as service:
        client = ServedClient(service, token)
        with client:
            yield client

"""The webhooks of a service: each is a subscriber in the same process.

Promise: a webhook that cannot be used is reported at the start. It gets every change that is published once the service
accepts requests. Whatever happens to one disturbs no other.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec.structs import replace

from stream_car.api import requests as r
from stream_car.api.service import Service
from stream_car.errors import InvalidRequest, StreamCarError
from stream_car.settings import ServerSettings, WebhookSettings, read_secret_file
from stream_car.subscriptions.events import Event
from stream_car.webhooks.outbox import Outbox, rename_outbox
from stream_car.webhooks.webhook import DeliveryReport, Webhook, begin, deliver_events

FOLDER = "webhooks"
LOG = logging.getLogger(__name__)


class ServiceEvents:
    """Implements `EventSource` over a service in this process."""

    def __init__(self, service: Service, selection: r.Subscribe, cursor: Callable[[], Awaitable[str]]) -> None:
        self._service = service
        self._selection = selection
        self._cursor = cursor

    async def cursor(self) -> str:
        return await self._cursor()

    async def events(self, after: str) -> AsyncIterator[Sequence[Event]]:
        request = replace(self._selection, after=after, snapshot=None, since=None)
        async for batch in await self._service.subscribe(request):
            yield batch


class ServiceWebhooks:
    """The webhooks that settings name. Use it as an asynchronous context manager around the service's work.

    A new webhook begins at `cursor`, which must be known before the service accepts requests.
    """

    def __init__(
        self, service: Service, settings: ServerSettings, folder: Path, cursor: Callable[[], Awaitable[str]]
    ) -> None:
        """Raises `InvalidRequest` if a webhook cannot be used."""
        self._service = service
        self._cursor = cursor
        self._folder = folder / FOLDER
        self._webhooks = {outbox_path(self._folder, each): (webhook_of(each), each) for each in settings.webhooks}
        if len(self._webhooks) < len(settings.webhooks):
            raise InvalidRequest("webhooks", "Two webhooks have the same `url` and the same `select`. Remove one.")
        self.reports = [DeliveryReport(path.stem) for path in self._webhooks]
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "ServiceWebhooks":
        self._rename_earlier()
        for (path, (webhook, settings)), report in zip(self._webhooks.items(), self.reports, strict=True):
            source = ServiceEvents(self._service, settings.select, self._cursor)
            with suppress(StreamCarError):  # it is tried again, and logged
                await begin(path, settings.select, source)
            delivering = deliver_events(webhook, path, settings.select, source, report)
            self._tasks.append(asyncio.create_task(delivering))
        for path in self._folder.glob("*.sqlite"):
            if path not in self._webhooks:
                await asyncio.to_thread(_warn_of_abandoned, path)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _rename_earlier(self) -> None:
        """Give outboxes of an earlier release, which were named by the URL alone, their names of now.

        If several webhooks have the URL, nobody knows whose it is: it stays, and its messages are reported.
        """
        uses = Counter(settings.url for _, settings in self._webhooks.values())
        for path, (_, settings) in self._webhooks.items():
            earlier = self._folder / f"{_digest(settings.url.encode())}.sqlite"
            if uses[settings.url] == 1 and earlier.exists() and not path.exists():
                rename_outbox(earlier, path)


def webhook_of(settings: WebhookSettings) -> Webhook:
    """Return a webhook as settings describe it. Raises `InvalidRequest`."""
    secret = read_secret_file(settings.secret_file, "secret_file")
    webhook = Webhook(url=settings.url, secret=secret, allow=settings.allow)
    webhook.check()
    return webhook


def outbox_path(folder: Path, settings: WebhookSettings) -> Path:
    """Return the file of the messages of a webhook: another one for each URL and selection."""
    name = _digest(msgspec.json.encode([settings.url, settings.select], order="sorted"))
    return folder / f"{name}.sqlite"


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]


def _warn_of_abandoned(path: Path) -> None:
    """Log that messages wait in an outbox that no webhook uses, if that is so."""
    with suppress(StreamCarError), closing(Outbox(path)) as outbox:
        if waiting := outbox.waiting():
            LOG.warning(
                "%d messages wait in %s, which no webhook uses: its `url` or its `select` has changed. Remove the "
                "file, or set both back to deliver them.",
                *(waiting, path),
            )

"""Deliver the events of a subscription to a webhook.

Promise: at least once, in order by record, signed. What cannot be delivered is tried again for about three days. Then
it is dead: it stays in the outbox and holds nothing up. Redirects are not followed. One message per event; its
`webhook-id` is that of the event, so a receiver recognizes a repeat.
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import httpcore
import msgspec
from msgspec import Struct

from stream_car.adapters.database import find_fault
from stream_car.codec.times import format_time, to_micros
from stream_car.errors import InvalidRequest, Overloaded, StreamCarError, Unavailable
from stream_car.subscriptions.events import DocumentChange, Event, RecordChange, Reset, ScopeChange, SnapshotEnd
from stream_car.version import __version__
from stream_car.webhooks.addresses import AddressDenied, PublicNetwork, networks
from stream_car.webhooks.outbox import Outbox, OutgoingMessage, set_aside
from stream_car.webhooks.signature import read_secret, signed_headers

LOG = logging.getLogger(__name__)
PAUSES_S = (5, 30, 120, 600, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)  # between tries
AT_ONCE = 8  # messages, of different records
TIMEOUT_S = 15.0
RETRY_AFTER_MAX_S = 86_400.0  # that a receiver may ask for
GONE = 410
RECONNECT_S = 1.0
RESTART_S = 30.0
LOOK_S = 60.0  # between looks at the outbox, which another process may have changed


class EventSource(Protocol):
    """What a webhook is fed from."""

    async def cursor(self) -> str:
        """The cursor after the last event so far."""
        ...

    def events(self, after: str) -> AsyncIterator[Sequence[Event]]:
        """The events after a cursor, several at once."""
        ...


class Webhook(Struct, frozen=True, kw_only=True):
    """Where events go: a URL, the secret that signs them, and the networks that are allowed beside public ones."""

    url: str
    secret: str
    allow: tuple[str, ...] = ()
    pauses_s: tuple[float, ...] = PAUSES_S

    def check(self) -> None:
        """Raise `InvalidRequest` if the URL, the secret or a network cannot be used."""
        try:
            parts = urlsplit(self.url)
            is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            has_user = bool(parts.username or parts.password)
        except ValueError:
            is_url = has_user = False
        if not is_url:  # the error does not show it, for it may hold a secret
            raise InvalidRequest("webhook", "This is not the URL of a webhook. Write it like https://host/path.")
        if has_user:
            raise InvalidRequest("webhook", "The URL of a webhook must not have a user: messages are signed instead.")
        read_secret(self.secret)
        networks(self.allow)

    @property
    def origin(self) -> str:
        """Its URL without path and query, which may hold a secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"


class DeliveryReport(Struct):
    """What became of the messages of a webhook since this process began."""

    name: str = ""
    delivered: int = 0
    retried: int = 0
    dead: int = 0
    outbox: Outbox | None = None  # while it is open


def message_of(event: Event) -> tuple[str, str, bytes] | None:
    """Return the id, the record and the body of the message about an event; `None` if it needs none."""
    match event:
        case RecordChange(event_id=name, record=record, cause=cause):
            time_of_event = cause.time
        case DocumentChange(id=record, cause=cause, position=position):
            name, time_of_event = _digest(position, record), cause.time
        case ScopeChange(change=change):
            name, record, time_of_event = _digest(change.position), change.scope, change.cause.time
        case Reset(reason=reason, generation=generation, cursor=cursor):
            name, record, time_of_event = _digest(reason, generation, cursor or ""), "", None
        case _:
            return None
    kind = str(event.__struct_config__.tag)
    timestamp = format_time(to_micros(time_of_event)) if time_of_event is not None else None
    body = msgspec.json.encode({"type": kind, "timestamp": timestamp, "data": event})
    return name, record, body


def _digest(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()[:24]


class WebhookSender:
    """Delivers what is in an outbox."""

    def __init__(self, webhook: Webhook, outbox: Outbox, report: DeliveryReport | None = None) -> None:
        webhook.check()
        self.webhook = webhook
        self.outbox = outbox
        self.report = report or DeliveryReport()
        self._key = read_secret(webhook.secret)
        self._wake = asyncio.Event()

    async def receive(self, events: AsyncIterator[Sequence[Event]]) -> None:
        """Put events into the outbox until they end. A snapshot, which follows a reset, is left out."""
        is_in_snapshot = False
        async for batch in events:
            for event in batch:
                if not is_in_snapshot and (message := message_of(event)) is not None:
                    name, record, body = message
                    self.outbox.add(event, message_id=name, record=record, body=body)
                    self._wake.set()
                elif not is_in_snapshot or isinstance(event, SnapshotEnd):
                    self.outbox.skip(event)
                is_in_snapshot = isinstance(event, Reset) or (is_in_snapshot and not isinstance(event, SnapshotEnd))

    async def deliver(self) -> None:
        """Deliver messages until cancelled."""
        network = PublicNetwork(networks(self.webhook.allow))
        async with httpcore.AsyncConnectionPool(max_connections=AT_ONCE, network_backend=network) as pool:
            while True:
                self._wake.clear()
                heads = self.outbox.heads(AT_ONCE)
                due = [message for message in heads if message.due <= time.time()]
                if due:
                    await asyncio.gather(*(self._try(pool, message) for message in due))
                    continue
                wait = min(max(heads[0].due - time.time(), 0.0), LOOK_S) if heads else LOOK_S
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._wake.wait()

    async def _try(self, pool: httpcore.AsyncConnectionPool, message: OutgoingMessage) -> None:
        problem, pause = await self._send(pool, message)
        if problem is None:
            self.outbox.delivered(message)
            self.report.delivered += 1
            return
        pauses = self.webhook.pauses_s
        if pause is None or message.tries >= len(pauses):
            self.outbox.failed(message, problem, None)
            self.report.dead += 1
            LOG.error("Message %s about %s is dead: %s", message.id, message.record, problem)
            return
        pause = max(pause, pauses[message.tries] * random.uniform(0.9, 1.1))
        self.outbox.failed(message, problem, time.time() + pause)
        self.report.retried += 1
        LOG.warning("Message %s about %s failed: %s", message.id, message.record, problem)

    async def _send(
        self, pool: httpcore.AsyncConnectionPool, message: OutgoingMessage
    ) -> tuple[str | None, float | None]:
        """Return what went wrong, if anything, and for how long to wait at least; `None` if waiting is of no use."""
        headers: Mapping[str, str] = {
            "content-type": "application/json",
            "user-agent": f"stream-car/{__version__}",
            **signed_headers(self._key, message_id=message.id, timestamp=int(time.time()), body=message.body),
        }
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), TIMEOUT_S)
        try:
            async with asyncio.timeout(2 * TIMEOUT_S):
                response = pool.stream(
                    "POST",
                    self.webhook.url,
                    headers=list(headers.items()),
                    content=message.body,
                    extensions={"timeout": timeout},
                )
                async with response as answer:
                    status = answer.status
                    pause_s = _retry_after_s(answer.headers)
        except AddressDenied as error:
            return str(error), 0.0
        except TimeoutError:
            return "it does not answer in time.", 0.0
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
            return f"it does not answer ({str(error) or type(error).__name__}).", 0.0
        if 200 <= status < 300:
            return None, 0.0
        if status == GONE:
            return "it answers 410: it wants no more messages.", None
        return f"it answers {status}.", pause_s


def _retry_after_s(headers: Sequence[tuple[bytes, bytes]]) -> float:
    """Return for how many seconds a receiver wants to be left alone, at most `RETRY_AFTER_MAX_S`."""
    values = [value.strip() for name, value in headers if name.lower() == b"retry-after"]
    return max((min(float(value), RETRY_AFTER_MAX_S) for value in values if value.isdigit()), default=0.0)


async def run_webhook(webhook: Webhook, outbox: Outbox, source: EventSource, report: DeliveryReport) -> None:
    """Deliver the events after the outbox's cursor until cancelled."""
    sender = WebhookSender(webhook, outbox, report)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(sender.deliver())
        while True:
            receiving = asyncio.create_task(_receive(sender, source))
            try:
                await asyncio.wait({receiving})
            finally:
                receiving.cancel()
            if receiving.cancelled():  # it gave way to another subscriber
                LOG.warning("The subscription of %s gave way to others, and begins again.", webhook.origin)
            elif (error := receiving.exception()) is not None:
                if not isinstance(error, Unavailable | Overloaded):
                    raise error
                LOG.warning("%s Waiting for it.", error)
            await asyncio.sleep(RECONNECT_S)


async def begin(path: Path, selection: object, source: EventSource) -> None:
    """Let a new outbox begin with the next event. A damaged one is set aside, which is logged.

    Raises:
        Unavailable: the outbox cannot be read now. It stays as it is.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if fault := await asyncio.to_thread(find_fault, path, "none"):
        LOG.error(
            "The outbox %s %s. It was set aside as %s: its messages are not delivered, and what changed while no "
            "process used it is not sent. To see what changed: stream-car changes --since DATE",
            *(path.name, fault, set_aside(path)),
        )
    with closing(Outbox(path, selection)) as outbox:
        if outbox.cursor is None:
            outbox.begin_at(await source.cursor())


async def _receive(sender: WebhookSender, source: EventSource) -> None:
    cursor = sender.outbox.cursor
    assert cursor is not None
    await sender.receive(source.events(cursor))


async def deliver_events(
    webhook: Webhook, path: Path, selection: object, source: EventSource, report: DeliveryReport | None = None
) -> None:
    """Run a webhook over its outbox, and begin again after an error, which is logged."""
    report = report or DeliveryReport()
    while True:
        pause_s = RECONNECT_S
        try:
            await begin(path, selection, source)
            with closing(Outbox(path, selection)) as report.outbox:
                await run_webhook(webhook, report.outbox, source, report)
        except* (Unavailable, Overloaded) as errors:
            LOG.warning("%s Waiting for it.", errors.exceptions[0])
        except* StreamCarError as errors:
            pause_s = RESTART_S
            LOG.error("The webhook %s has stopped: %s It begins again.", webhook.origin, errors.exceptions[0])
        finally:
            report.outbox = None
        await asyncio.sleep(pause_s)

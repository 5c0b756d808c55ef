"""Webhooks of the command line: `watch --webhook`, and `dead-letters`.

Promise: what `watch --webhook` has not delivered when it ends is in its outbox, and the next run goes on with it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import ParamSpec, TypeVar

import click
from msgspec import Raw, Struct
from msgspec.structs import replace
from rich.text import Text

import stream_car
from stream_car import settings
from stream_car.api.bookmark import Bookmark
from stream_car.api.requests import Subscribe
from stream_car.api.subscription_aio import AsyncSubscription
from stream_car.cli.console import words
from stream_car.cli.logs import write_logs
from stream_car.cli.options import EXISTING_FILE, FILE, Session, command
from stream_car.cli.widgets import BAD, FAINT
from stream_car.subscriptions.events import Event

OUTBOX = Path("webhook.sqlite")

P = ParamSpec("P")
T = TypeVar("T")


def webhook_options(command: Callable[P, T]) -> Callable[P, T]:
    """`--webhook URL` and what belongs to it."""
    for option in (
        click.option(
            "--outbox",
            type=FILE,
            default=OUTBOX,
            show_default=True,
            help="With --webhook: the file of the messages that wait, and of the cursor.",
        ),
        click.option(
            "--webhook-allow",
            multiple=True,
            metavar="NETWORK",
            help="Also send to this address or network, which is not public; may be repeated.",
        ),
        click.option(
            "--webhook-secret-file",
            metavar="FILE",
            help=f"The secret that signs messages.  [default: ${settings.WEBHOOK_SECRET_VARIABLE}]",
        ),
        click.option(
            "--webhook", metavar="URL", help="Send each change there, signed as Standard Webhooks, until Ctrl-C."
        ),
    ):
        command = option(command)
    return command


class DeadLetter(Struct, frozen=True, kw_only=True):
    """A message that was given up; `body` is what was sent."""

    id: str
    record: str
    tries: int
    error: str
    body: Raw


class ClientEvents:
    """Implements `EventSource` over the service at a URL."""

    def __init__(self, url: str, selection: Subscribe) -> None:
        self._url = url
        self._selection = replace(selection, snapshot=None, since=None)

    async def cursor(self) -> str:
        async with stream_car.connect_async(self._url, token=settings.token_to_send()) as service:
            return (await service.status()).cursor

    async def events(self, after: str) -> AsyncIterator[Sequence[Event]]:
        async with stream_car.connect_async(self._url, token=settings.token_to_send()) as service:
            async for event in AsyncSubscription(service, self._selection, Bookmark(after, None)):
                yield [event]


def send_to_webhook(
    session: Session, selection: Subscribe, *, url: str, secret_file: str | None, allow: Sequence[str], outbox: Path
) -> None:
    """Send the changes of a service to a webhook until Ctrl-C."""
    from stream_car.webhooks.webhook import Webhook, deliver_events

    if not session.url or not session.is_remote:
        raise click.UsageError("A webhook gets the changes of a service: give its --url. See: stream-car serve")
    webhook = Webhook(url=url, secret=settings.webhook_secret(secret_file), allow=tuple(allow))
    webhook.check()
    write_logs("info", as_json=session.as_json)
    session.note(f"Sending what changes in {session.url} to {webhook.origin}. Press Ctrl-C to stop.")
    asyncio.run(deliver_events(webhook, outbox, selection, ClientEvents(session.url, selection)))


@command(name="dead-letters")
@click.argument("outbox", type=EXISTING_FILE, default=OUTBOX)
@click.option("--retry", is_flag=True, help="Try them all again.")
def dead_letters(session: Session, outbox: Path, retry: bool) -> None:
    """List the messages that a webhook gave up.

    OUTBOX is the file of `watch --webhook`, or of a webhook of a service: DATA/webhooks/*.sqlite. What is tried again
    is sent by the process that uses the file, within a minute.

    Examples:
      stream-car dead-letters
      stream-car dead-letters stream-car-data/webhooks/0123456789abcdef.sqlite --retry
    """
    from stream_car.webhooks.outbox import Outbox

    with closing(Outbox(outbox)) as letters:
        dead = [
            DeadLetter(id=m.id, record=m.record, tries=m.tries, error=m.error, body=Raw(m.body)) for m in letters.dead()
        ]
        if retry:
            letters.revive()
    session.report_each(dead, _draw, if_empty="No message was given up.")


def _draw(letter: DeadLetter) -> Text:
    return Text.assemble(
        ("- ", BAD),
        words(letter.record or "(all)", "bold"),
        words(f" {letter.error} {letter.tries} tries", ""),
        words(f"  {letter.id}", FAINT),
    )

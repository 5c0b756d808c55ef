"""`quarantine list`, `show`, `retry` and `drop`: records that the engine failed on, and set aside."""

import sys
from collections.abc import Sequence

import click
from rich.console import Group as Lines, RenderableType
from rich.text import Text

from stream_car.cli.console import words
from stream_car.cli.hints import advise
from stream_car.cli.options import Session, command, require
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, Rows, day
from stream_car.processing.receipts import Receipt
from stream_car.queries.answers import Base64, Quarantined

NOTHING = Text("Nothing is in quarantine.", IN_FORCE)


@click.group("quarantine")
def group() -> None:
    """List what the engine failed on, and retry or drop it."""


@command("data", "rules", "url", name="list", group=group)
def list_quarantine(session: Session) -> None:
    """List the records in quarantine, and the scopes that they might have changed.

    Answers that they may belong to say `quarantined` until they are retried or dropped. Exit code 1 if there are any.

    Examples:
      stream-car quarantine list
      stream-car quarantine list --url http://127.0.0.1:8377 --json
    """
    with session.open() as calls:
        items = calls.quarantine()
    session.report_all(items, draw_table, if_empty=NOTHING)
    require(not items)


@command("data", "rules", "url", name="show", group=group)
@click.argument("name")
@click.option("--bytes", "as_bytes", is_flag=True, help="Write exactly the bytes that were sent, and nothing else.")
def show_quarantined(session: Session, name: str, as_bytes: bool) -> None:
    """Show a record in quarantine with its bytes. NAME is as `list` shows it.

    Examples:
      stream-car quarantine show intake:0:17
      stream-car quarantine show intake:0:17 --bytes > record
    """
    with session.open() as calls:
        item = calls.quarantined(name)
    if as_bytes:
        sys.stdout.buffer.write(_bytes(item))
    else:
        session.report(item, draw)


@command("data", "rules", "url", name="retry", group=group)
@click.argument("name")
def retry_quarantined(session: Session, name: str) -> None:
    """Publish a record in quarantine again, for example after an upgrade.

    If it fails again, it is set aside again, and the exit code is 1.

    Examples:
      stream-car quarantine retry intake:0:17
    """
    with session.open() as calls:
        receipt = calls.retry_quarantined(name)
    session.report(receipt, _draw_receipt)
    require(receipt.outcome != "quarantined")


@command("data", "rules", "url", name="drop", group=group)
@click.argument("name")
def drop_quarantined(session: Session, name: str) -> None:
    """Drop a record from quarantine: answers are complete without it. Its bytes stay in the log.

    Examples:
      stream-car quarantine drop intake:0:17
    """
    with session.open() as calls:
        item = calls.drop_quarantined(name)
    session.report(item, lambda item: Text(f"{item.name} is dropped.", IN_FORCE))


def draw_table(items: Sequence[Quarantined]) -> RenderableType:
    """Draw the records in quarantine, a row each."""
    rows = [
        (
            Text(item.name, BAD),
            words(item.id or ""),
            words("all" if item.scopes is None else "; ".join(item.scopes)),
            words(item.error),
        )
        for item in items
    ]
    table = Rows(("name", "id", "scopes", "error"), rows, heads=1, whole=(0,))
    return Lines(table, advise("See the bytes of one", "quarantine show NAME", FAINT))


def draw(item: Quarantined) -> RenderableType:
    """Draw one record in quarantine with its bytes as text."""
    head = Text.assemble((item.name, BAD), f" was set aside. It was sent at {day(item.append_time)}.")
    return Lines(head, words(item.error), Text(), words(_bytes(item).decode("utf-8", "backslashreplace")))


def _bytes(item: Quarantined) -> bytes:
    if isinstance(item.content, Base64):
        return item.content.base64
    return (item.content or "").encode()


def _draw_receipt(receipt: Receipt) -> RenderableType:
    style = BAD if receipt.outcome == "quarantined" else IN_FORCE
    return Text(f"Sent again as message {receipt.offset}: {receipt.outcome} {receipt.id or ''}", style)

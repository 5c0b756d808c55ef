"""`rejected list` and `rejected show`: input that can never be accepted is kept, with its bytes."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from stream_car.cli import options, render
from stream_car.cli.console import emit, show
from stream_car.cli.plain import line
from stream_car.errors import InvalidRequest

EVERY = 1_000_000_000


@click.group("rejected")
def group() -> None:
    """Look at input that was refused."""


@group.command(
    "list",
    epilog=options.examples(
        "stream-car rejected list", "stream-car rejected list --json | jq -r .code | sort | uniq -c"
    ),
)
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="At most so many.")
@options.reading
def list_rejected(limit: int, data: Path, rules: Sequence[str], as_json: bool) -> None:
    """List refused input: its place in the log, a stable code, and why."""
    with options.opened(data, rules) as engine:
        items = engine.rejected(limit=limit)
    if as_json:
        for item in items:
            emit(line(item))
    else:
        show(render.rejected_table(items))


@group.command(
    "show",
    epilog=options.examples(
        "stream-car rejected show 17",
        "stream-car rejected show 17 --bytes > mended.json     mend it, then publish it again",
    ),
)
@click.argument("offset", type=click.IntRange(min=0))
@click.option("--bytes", "as_bytes", is_flag=True, help="Write exactly the bytes that came, and nothing else.")
@options.reading
def show_rejected(offset: int, as_bytes: bool, data: Path, rules: Sequence[str], as_json: bool) -> None:
    """Show one refused input with its bytes."""
    with options.opened(data, rules) as engine:
        item = next((item for item in engine.rejected(limit=EVERY) if item.offset == offset), None)
    if item is None:
        raise InvalidRequest("offset", f"input {offset} was not rejected; see: stream-car rejected list")
    if as_bytes:
        sys.stdout.buffer.write(item.value)
    else:
        options.answer_one(item, as_json=as_json, draw=render.rejected)

"""`rejected list`, `show` and `replay`: refused input is kept, with its bytes, and can be mended and sent again.

Of a folder, of a service (but for `replay`), or with `--kafka` of the topic `rejected`.
"""

import sys
from base64 import b64decode
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar

import click
import msgspec
from msgspec import Struct

from stream_car import rule_packs
from stream_car.adapters.kafka.topic_layout import PREFIX
from stream_car.api.json import line
from stream_car.cli import options, render
from stream_car.cli.console import emit, show
from stream_car.cli.hints import again
from stream_car.cli.topics import require_driver
from stream_car.errors import InvalidRequest
from stream_car.queries.answers import Rejected, Replayed
from stream_car.settings import kafka_server

P = ParamSpec("P")
R = TypeVar("R")

EVERY = 1_000_000_000


class Keeper(Protocol):
    """Whoever keeps refused input and takes it again."""

    def rejected(self, *, limit: int) -> Sequence[Rejected]:
        """Input that was refused."""
        ...

    def replay(
        self, mended: Mapping[int, bytes] | None = None, *, only: Collection[int] = (), trial: bool = False
    ) -> Sequence[Replayed]:
        """Send it again."""
        ...


def _in_kafka(command: Callable[P, R]) -> Callable[P, R]:
    """`--kafka HOST:PORT`, `--prefix NAME`"""
    for option in (
        click.option("--prefix", default=PREFIX, show_default=True, help="With --kafka: what the topics begin with."),
        click.option(
            "--kafka",
            metavar="HOST:PORT",
            help="What workers over Kafka refused: the topic `rejected` there; its offsets are meant. User, password "
            "and certificates come from $STREAM_CAR_KAFKA_USER and its like.",
        ),
    ):
        command = option(command)
    return command


def _topic(address: str, prefix: str, rules: Sequence[str]) -> Keeper:
    require_driver()
    from stream_car.cluster.rejected import Refused

    return Refused(kafka_server(address), prefix, rule_packs.load(rules))


@click.group("rejected")
def group() -> None:
    """Look at input that was refused, and send it again."""


@group.command(
    "list",
    epilog=options.examples(
        "stream-car rejected list",
        "stream-car rejected list --json | jq -r .code | sort | uniq -c",
        "stream-car rejected list --kafka localhost:9092       what workers over Kafka refused",
    ),
)
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="At most so many.")
@_in_kafka
@options.asking
def list_rejected(
    limit: int, kafka: str | None, prefix: str, data: Path, rules: Sequence[str], url: str | None, as_json: bool
) -> None:
    """List refused input: its place in the log, a stable code, and why."""
    items = _rejected(kafka, prefix, data, rules, url, limit)
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
@_in_kafka
@options.asking
def show_rejected(
    offset: int,
    as_bytes: bool,
    kafka: str | None,
    prefix: str,
    data: Path,
    rules: Sequence[str],
    url: str | None,
    as_json: bool,
) -> None:
    """Show one refused input with its bytes."""
    items = _rejected(kafka, prefix, data, rules, url, EVERY)
    item = next((item for item in items if item.offset == offset), None)
    if item is None:
        raise InvalidRequest("offset", f"input {offset} was not rejected; see: {again('rejected list')}")
    if as_bytes:
        sys.stdout.buffer.write(item.value)
    else:
        options.answer_one(item, as_json=as_json, draw=render.rejected)


@group.command(
    "replay",
    epilog=options.examples(
        "stream-car rejected replay --dry-run           what would be accepted now",
        "stream-car rejected replay                     send that again",
        "stream-car rejected replay 17 --edit           mend one in $EDITOR",
        "stream-car rejected replay 17 --from mended.json",
        "stream-car rejected replay --url http://127.0.0.1:8377",
        "stream-car rejected list --json > refused.jsonl",
        "stream-car rejected replay --from refused.jsonl     after mending the field `value` of some lines",
        "stream-car rejected replay --kafka localhost:9092 --dry-run",
    ),
)
@click.argument("offsets", nargs=-1, type=click.IntRange(min=0), metavar="[OFFSET...]")
@click.option("--edit", is_flag=True, help="Mend each in $EDITOR first.")
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help='Mended bytes: those of the one OFFSET that is given, or lines of {"offset": ..., "value": ...}.',
)
@click.option("--dry-run", is_flag=True, help="Send nothing, only say what would become of it.")
@_in_kafka
@options.asking
def replay_rejected(
    offsets: Sequence[int],
    edit: bool,
    source: Path | None,
    dry_run: bool,
    kafka: str | None,
    prefix: str,
    data: Path,
    rules: Sequence[str],
    url: str | None,
    as_json: bool,
) -> None:
    """Send refused input again, as it came or mended.

    Each input is replayed once, however often you ask; with --kafka as often, and what comes again is a duplicate.
    What would be refused again is not sent. Exit code 1 where something still is refused. New rules need no replay:
    building the state anew with them looks at every input again.
    """
    if kafka is not None:
        replayed = _replayed(_topic(kafka, prefix, rules), offsets, source, edit=edit, dry_run=dry_run)
    else:
        with options.opened(data, rules, url) as engine:
            replayed = _replayed(engine, offsets, source, edit=edit, dry_run=dry_run)
    if as_json:
        for one in replayed:
            emit(line(one))
    else:
        show(render.replayed(replayed, is_trial=dry_run))
    options.end(is_found=all(one.outcome != "refused" for one in replayed))


def _rejected(
    kafka: str | None, prefix: str, data: Path, rules: Sequence[str], url: str | None, limit: int
) -> Sequence[Rejected]:
    if kafka is not None:
        return _topic(kafka, prefix, rules).rejected(limit=limit)
    with options.opened(data, rules, url) as engine:
        return engine.rejected(limit=limit)


def _replayed(
    keeper: Keeper, offsets: Sequence[int], source: Path | None, *, edit: bool, dry_run: bool
) -> Sequence[Replayed]:
    mended = _mended_lines(source) if source is not None and not offsets else {}
    if source is not None and offsets:
        mended = _mended_file(source, offsets)
    if edit:
        mended |= _edited(keeper, offsets)
    try:
        return keeper.replay(mended, only=offsets, trial=dry_run)
    except InvalidRequest as error:
        if error.code != "offset":
            raise
        raise InvalidRequest(error.code, f"{error}: {again('rejected list')}") from error


class Mended(Struct, frozen=True):
    """A line of mended input: text, a JSON object as it is, or bytes that are no text as `{"base64": ...}`."""

    offset: int
    value: msgspec.Raw

    @property
    def sent(self) -> bytes:
        """What is to be sent."""
        raw = bytes(self.value)
        if raw.startswith(b'"'):
            return msgspec.json.decode(raw, type=str).encode()
        if raw.startswith(b'{"base64":'):
            return b64decode(msgspec.json.decode(raw, type=dict[str, str])["base64"])
        return raw


def _mended_file(source: Path, offsets: Sequence[int]) -> dict[int, bytes]:
    if len(offsets) != 1:
        raise InvalidRequest("offset", "a file of mended bytes is for one OFFSET; give exactly one, or none and lines")
    return {offsets[0]: source.read_bytes().strip()}


def _mended_lines(source: Path) -> dict[int, bytes]:
    """What the lines hold: as `rejected list --json` writes them."""
    try:
        lines = [msgspec.json.decode(text, type=Mended) for text in source.read_bytes().splitlines() if text.strip()]
        return {one.offset: one.sent for one in lines}
    except (ValueError, msgspec.MsgspecError) as error:
        raise InvalidRequest("mended", f"{source}: {error}; write it as `rejected list --json` does") from error


def _edited(keeper: Keeper, offsets: Sequence[int]) -> dict[int, bytes]:
    """What an editor made of them; what it left as it was stays out."""
    if not offsets:
        raise InvalidRequest("offset", f"name the inputs to edit; see: {again('rejected list')}")
    found = {item.offset: item.value for item in keeper.rejected(limit=EVERY) if item.offset in offsets}
    texts = {offset: value.decode("utf-8", "backslashreplace") for offset, value in found.items()}
    saved = {offset: click.edit(text, extension=".json") for offset, text in texts.items()}
    return {offset: text.strip().encode() for offset, text in saved.items() if text is not None}

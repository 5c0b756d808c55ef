"""`rejected list`, `show` and `replay`: rejected input is kept with its bytes, and can be corrected and sent again."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import msgspec
from msgspec import Struct
from rich.console import Group as Lines, RenderableType
from rich.text import Text

from stream_car.api.arguments import ALL
from stream_car.api.calls import Calls
from stream_car.cli import options
from stream_car.cli.console import note, words
from stream_car.cli.hints import advise, again
from stream_car.cli.options import EXISTING_FILE, Session, command, require
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, Rows, counted, day
from stream_car.errors import InvalidRequest
from stream_car.ingest.files import unreadable
from stream_car.queries.answers import Base64, Rejected, Replayed

NOTHING = Text("Nothing was rejected.", IN_FORCE)


@click.group("rejected")
def group() -> None:
    """List rejected input, and send it again."""


@command("data", "rules", "url", name="list", group=group)
@options.limit(100)
def list_rejected(session: Session, limit: int) -> None:
    """List rejected input: its offset, a code that programs can rely on, and the reason.

    Input that was replayed stays listed, with the message that it was replayed as.

    Examples:
      stream-car rejected list
      stream-car rejected list --json | jq -r .code | sort | uniq -c
      stream-car rejected list --url http://127.0.0.1:8377
    """
    with session.open() as calls:
        items = calls.rejected(limit=limit)
        replays = {} if session.as_json else _replays(calls, items)
        not_kept = calls.status().outcomes.get("not_kept", 0)
    session.report_all(items, lambda items: draw_table(items, replays), if_empty="" if not_kept else NOTHING)
    if not_kept:
        note(f"{counted(not_kept, 'more rejected input was', 'more rejected inputs were')} not kept (`kept: false`).")


@command("data", "rules", "url", name="show", group=group)
@click.argument("offset", type=click.IntRange(min=0))
@click.option("--bytes", "as_bytes", is_flag=True, help="Write exactly the bytes that were sent, and nothing else.")
def show_rejected(session: Session, offset: int, as_bytes: bool) -> None:
    """Show one rejected input with its bytes.

    Examples:
      stream-car rejected show 17
      stream-car rejected show 17 --bytes > corrected.json     correct it, then: stream-car rejected replay 17 ...
    """
    with session.open() as calls:
        item = next((item for item in calls.rejected(limit=ALL) if item.offset == offset), None)
        if item is None:
            raise InvalidRequest("offset", f"Input {offset} was not rejected. See: {again('rejected list')}")
        replays = {} if as_bytes or session.as_json else _replays(calls, [item])
    if as_bytes:
        sys.stdout.buffer.write(item.value)
    else:
        session.report(item, lambda item: draw(item, replays.get(offset)))


def _replays(calls: Calls, items: Sequence[Rejected]) -> dict[int, int]:
    """Return the messages that these inputs were replayed as, by offset; a dry run tells. Costs a read per input."""
    if not items:
        return {}
    plan = calls.replay(offsets=[item.offset for item in items], dry_run=True)
    return {item.offset: item.at for item in plan if item.outcome == "replayed_before" and item.at is not None}


@command("data", "rules", "url", name="replay", group=group)
@click.argument("offsets", nargs=-1, type=click.IntRange(min=0), metavar="[OFFSET...]")
@click.option("--edit", is_flag=True, help="Correct each in $EDITOR first.")
@click.option(
    "--from",
    "source",
    type=EXISTING_FILE,
    help='The corrected bytes of the one OFFSET that is given, or lines of {"offset": ..., "value": ...}.',
)
@click.option("--dry-run", is_flag=True, help="Send nothing; show what would happen.")
def replay_rejected(session: Session, offsets: Sequence[int], edit: bool, source: Path | None, dry_run: bool) -> None:
    """Send rejected input again, as it was or corrected.

    Each input is accepted at most once. Input that would be rejected again is not sent: then the exit code is 1. After
    a change of rules nothing needs to be sent again, because `stream-car rebuild` reads all input.

    Examples:
      stream-car rejected replay --dry-run           what would be accepted now
      stream-car rejected replay                     send it
      stream-car rejected replay 17 --edit           correct one in $EDITOR
      stream-car rejected replay 17 --from corrected.json
      stream-car rejected replay --url http://127.0.0.1:8377
      stream-car rejected list --json > rejected.jsonl
      stream-car rejected replay --from rejected.jsonl     after correcting the field `value` of some lines
    """
    with session.open() as calls:
        corrected = _read(source, offsets) if source is not None else {}
        if edit:
            corrected |= _edit(calls, offsets)
        try:
            replayed = calls.replay(corrected, offsets=offsets, dry_run=dry_run)
        except InvalidRequest as error:
            if error.code != "offset":
                raise
            raise InvalidRequest(error.code, f"{error} See: {again('rejected list')}") from error
    session.report_all(replayed, lambda items: draw_replayed(items, dry_run=dry_run), if_empty=NOTHING)
    require(all(item.outcome != "rejected" for item in replayed))


class CorrectedLine(Struct, frozen=True):
    """A line of corrected input. `value` is text, a JSON object to send as it is, or bytes as `{"base64": ...}`."""

    offset: int
    value: msgspec.Raw

    @property
    def content(self) -> bytes:
        """The bytes to send."""
        raw = bytes(self.value)
        if raw.startswith(b'"'):
            return msgspec.json.decode(raw, type=str).encode()
        if raw.startswith(b'{"base64":'):
            return msgspec.json.decode(raw, type=Base64).base64
        return raw


def _read(source: Path, offsets: Sequence[int]) -> dict[int, bytes]:
    """Return corrected input from a file: the bytes of one offset, or lines as `rejected list --json` writes them."""
    try:
        content = source.read_bytes()
    except OSError as error:
        raise unreadable(str(source), error) from error
    if len(offsets) == 1:
        return {offsets[0]: content.strip()}
    if offsets:
        raise InvalidRequest("offset", "With several OFFSETs, --from must hold lines. Omit the OFFSETs, or give one.")
    try:
        lines = [msgspec.json.decode(line, type=CorrectedLine) for line in content.splitlines() if line.strip()]
        return {line.offset: line.content for line in lines}
    except (ValueError, msgspec.MsgspecError) as error:
        reason = f"{source} cannot be read: {error}. Write lines as `stream-car rejected list --json` does."
        raise InvalidRequest("corrected", reason) from error


def _edit(calls: Calls, offsets: Sequence[int]) -> Mapping[int, bytes]:
    """Return input that was changed in an editor."""
    if not offsets:
        raise InvalidRequest("offset", f"Name the inputs to edit. See: {again('rejected list')}")
    items = [item for item in calls.rejected(limit=ALL) if item.offset in offsets]
    try:
        saved = {item.offset: click.edit(_as_text(item), extension=".json") for item in items}
    except click.ClickException as error:
        cure = "Set $EDITOR to an editor that waits until you close it, or correct a file and use --from."
        raise InvalidRequest("editor", f"The editor failed: {error.format_message()}. {cure}") from error
    return {offset: text.strip().encode() for offset, text in saved.items() if text is not None}


def _as_text(item: Rejected) -> str:
    return item.value.decode("utf-8", "backslashreplace")


def draw_table(items: Sequence[Rejected], replays: Mapping[int, int]) -> RenderableType:
    """Draw rejected input, a row each; `replays` maps the offset of input that was replayed to that of its replay."""
    names = ("offset", "code", "id", "reason", "replayed")
    rows = [
        (
            Text(f"{item.offset}"),
            Text(item.code, FAINT if item.offset in replays else BAD),
            words(item.id or ""),
            words(item.reason),
            Text(f"as message {replays[item.offset]}" if item.offset in replays else "", IN_FORCE),
        )
        for item in items
    ]
    shown = len(names) if replays else len(names) - 1
    table = Rows(names[:shown], [row[:shown] for row in rows], heads=2, whole=(0, 1))
    return Lines(table, advise("See the bytes of one", "rejected show OFFSET", FAINT))


def draw(item: Rejected, replay: int | None = None) -> RenderableType:
    """Draw one rejected input with its bytes as text, and the message that it was replayed as, if it was."""
    head = Text.assemble(f"Input {item.offset} was rejected (", (item.code, BAD), f") at {day(item.append_time)}.")
    replayed = [Text(f"It was replayed as message {replay}.", IN_FORCE)] if replay is not None else []
    return Lines(head, words(item.reason), *replayed, Text(), words(_as_text(item)))


def draw_replayed(items: Sequence[Replayed], *, dry_run: bool) -> RenderableType:
    """Draw what became of input that was sent again."""
    sent = "would be sent" if dry_run else "sent"
    return Rows(("offset", "", "result"), (_row(item, sent) for item in items), heads=2, whole=(0, 1))


def _row(item: Replayed, sent: str) -> tuple[Text, ...]:
    offset, receipt = Text(f"{item.offset}"), item.receipt
    if item.outcome == "rejected":
        return offset, Text("still rejected", BAD), words(f"{item.code}: {item.reason}")
    if item.outcome == "replayed_before":
        return offset, Text("replayed before", FAINT), Text(f"as message {item.at}")
    result = f"message {receipt.offset}: {receipt.outcome} {receipt.id or ''}" if receipt is not None else ""
    return offset, Text(sent, IN_FORCE), words(result)

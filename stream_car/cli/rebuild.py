"""`rebuild`: build the data under other rules, beside the old, compare, and switch in one step.

Promise: nothing changes before the last step, so a command that is interrupted or fails changes nothing.
"""

from collections.abc import Iterator

import click
from rich.console import Group as Lines, RenderableType
from rich.text import Text

from stream_car.api.calls import Calls
from stream_car.api.requests import Future
from stream_car.cli.console import progress, words
from stream_car.cli.options import Session, command, is_typed
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, WARN, Rows, counted, status_text
from stream_car.errors import StreamCarError
from stream_car.queries.answers import Difference, DocumentStatus, RebuildStatus

SHOWN_MAX = 50  # differences


@command("data", "rules", "url")
@click.option("--dry-run", is_flag=True, help="Change nothing. Show which documents would change their status.")
@click.option(
    "--future",
    type=click.Choice(["wait", "apply"]),
    help="Whether documents with a time in the future wait for it or count at once.  [default: as before]",
)
def rebuild(session: Session, dry_run: bool, future: Future | None) -> None:
    """Change the rules of the data.

    Builds state and index again from the log under other rules, beside the old ones, then switches at once. Input that
    the old rules rejected is tried again. Without --rules, the present packs are read again: after you have edited a
    file, or installed a new release. Packs that were sent to a service stay as they were sent. A service goes on
    answering meanwhile.

    Examples:
      stream-car rebuild --rules ./mine.toml --dry-run     which documents would change their status, and why
      stream-car rebuild --rules ./mine.toml --rules security
      stream-car rebuild                                   the same packs, read again
      stream-car rebuild --rules ./mine.toml --url http://127.0.0.1:8377     while the service answers
      stream-car rebuild --dry-run --json | jq -r '.differences[] | select(.after == "superseded") | .id'
    """
    with session.open(sends_rules=True) as calls:
        rules = session.rules if not session.is_remote or is_typed("rules") else ()
        with progress() as bar:
            task = bar.add_task("reading the log", total=None)
            status = calls.rebuild(
                rules,
                future=future,
                dry_run=dry_run,
                progress=lambda status: bar.update(
                    task,
                    description="comparing documents" if status.state == "comparing" else "reading the log",
                    completed=status.applied,
                    total=status.end,
                ),
            )
        if status.state == "failed":
            raise StreamCarError(status.detail)
        session.report(status, lambda status: Lines(*(_comparison(status) if dry_run else _summary(status, calls))))


def _comparison(status: RebuildStatus) -> Iterator[RenderableType]:
    if not status.counts:
        yield Text("✔ No document would change its status.", IN_FORCE)
        return
    shown = status.differences[:SHOWN_MAX]
    yield Rows(("document", "now", "then", "superseded by"), map(_row, shown), whole=(1, 2))
    rest = sum(count.documents for count in status.counts) - len(shown)
    if rest:
        yield Text(f"and {rest:,} more; --json lists up to 1,000", FAINT)
    for count in status.counts:
        before, after = _status(count.before).plain, _status(count.after).plain
        yield Text(f"{counted(count.documents, 'document')}: now {before}, then {after}")
    if any("unknown" in (count.before, count.after) for count in status.counts):
        yield Text(
            "Rejected: no pack declares the type, or the rules do not accept the input for another reason.", WARN
        )
    yield Text("This was a dry run, so nothing has changed. Run the command again without --dry-run to switch.", FAINT)


def _row(difference: Difference) -> tuple[Text, ...]:
    when = "then" if difference.after == "superseded" else "now"
    why = ", ".join(f"{step.id} ({step.rule} in {step.scope})" for step in difference.why[:3])
    return (
        words(difference.id),
        _status(difference.before),
        _status(difference.after),
        words(f"{when}: {why}" if why else ""),
    )


def _status(status: DocumentStatus) -> Text:
    """Return a status in words. What only one of two sets of rules knows was rejected by the other one."""
    return Text("rejected", BAD) if status == "unknown" else status_text(status)


def _summary(rebuilt: RebuildStatus, calls: Calls) -> Iterator[RenderableType]:
    status = calls.status()
    packs = ", ".join(pack.name for pack in calls.rules().packs)
    yield Text(f"✔ Built from {counted(rebuilt.applied, 'message')} of the log, and switched.", IN_FORCE)
    yield words(f"{counted(status.documents, 'document')}, {status.outcomes.get('rejected', 0):,} rejected, by {packs}")
    yield Text(f"generation {status.generation}", FAINT)

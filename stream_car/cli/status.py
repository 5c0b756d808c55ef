"""`status`: the state of a data directory or a service."""

from rich.console import Group as Lines, RenderableType

from stream_car.cli.console import words
from stream_car.cli.options import Session, command
from stream_car.cli.widgets import counted
from stream_car.queries.answers import Status


@command("data", "rules", "url", "verbose")
def status(session: Session) -> None:
    """Show how much there is, and what became of it.

    --verbose adds the generation of the rules, positions in the log, and the lag of subscriptions.

    Examples:
      stream-car status
      stream-car status --url http://127.0.0.1:8377 --verbose
      stream-car status --json | jq .documents
    """
    with session.open() as calls:
        answer = calls.status()
    session.report(answer, lambda status: draw(status, verbose=session.verbose))


def draw(status: Status, *, verbose: bool = False) -> RenderableType:
    """Draw the state of an installation."""
    lines = [f"{counted(status.documents, 'document')} from {counted(status.next_offset, 'message')}"]
    if status.pending:
        lines[0] += f", {status.pending:,} waiting for their time"
    lines += [f"  {count:>12,} {outcome}" for outcome, count in status.outcomes.items() if count]
    if status.quarantined:
        lines.append(f"{counted(status.quarantined, 'record')} in quarantine: stream-car quarantine list")
    if verbose:
        lines += [
            f"version {status.version}, generation {status.generation}",
            f"cursor {status.cursor}, changes are kept from {status.changes_from}",
            counted(status.subscriptions, "subscription"),
        ]
        if status.lag:
            lines[-1] += f", {counted(status.lag, 'change')} not received yet by the slowest"
    return Lines(*map(words, lines))

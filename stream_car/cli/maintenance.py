"""`backup`, `restore`, `verify` and `doctor`: copies of the original data, and checks of the data."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Group as Lines, RenderableType
from rich.text import Text

from stream_car.cli.console import progress, words
from stream_car.cli.hints import again
from stream_car.cli.options import FOLDER, Session, command, require
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, WARN, counted
from stream_car.errors import Busy, InvalidRequest, StreamCarError

if TYPE_CHECKING:
    from stream_car.local.backup import Copied
    from stream_car.processing.findings import Finding

MARKS = {"ok": ("✔", IN_FORCE), "notice": ("•", WARN), "damaged": ("✘", BAD)}
BACKUP_ELSEWHERE = (
    "A backup is made on the machine that has the files, also while a service uses them. Run this command there, with "
    "--data."
)
RESTORE_ELSEWHERE = (
    "Data is restored before a service starts. Run this command with --data on the machine of the service, then start "
    "it: stream-car serve"
)
IN_USE = (
    "{holder}. Stop it and check its data directory with --data; or check a copy, which can be made meanwhile: "
    "{backup}, then stream-car doctor --data COPY"
)

folder_argument = click.argument("folder", type=FOLDER)


@command("data", "no_url")
@folder_argument
def backup(session: Session, folder: Path) -> None:
    """Copy the data to a new folder, also while it is in use.

    The copy has the log as of one moment, with its hash chain verified, the rules, and how far feeds were read. State
    and index are not copied: they are built again from the log.

    Examples:
      stream-car backup ./backups/$(date +%F)
      stream-car backup /mnt/elsewhere/advisories --data ./advisories --json
    """
    from stream_car.local.backup import copy

    session.require_files(BACKUP_ELSEWHERE)
    session.report(copy(session.data, folder), _draw_copy)


@command("data", "no_url")
@folder_argument
def restore(session: Session, folder: Path) -> None:
    """Create the data directory from a backup.

    The backup is verified first. Existing data is never overwritten; move it away before. The next command builds
    state and index from the log.

    Examples:
      stream-car restore ./backups/2024-05-01
      stream-car restore ./backups/2024-05-01 --data ./advisories
    """
    from stream_car.local.backup import copy

    session.require_files(RESTORE_ELSEWHERE)
    session.report(copy(folder, session.data), _draw_copy)


@command()
@folder_argument
def verify(session: Session, folder: Path) -> None:
    """Check that a backup is intact.

    Verifies the hash chain of its log from the first record to the last, and changes nothing.

    Examples:
      stream-car verify ./backups/2024-05-01
      stream-car verify ./backups/2024-05-01 --json
    """
    from stream_car.local import backup as copies
    from stream_car.local.generation import LOG

    if not (folder / LOG).is_file():
        raise InvalidRequest("no_data", f"{folder} has no log. Name a folder that contains {LOG}.")
    try:
        records = copies.verify(folder)
    except Busy as busy:
        cure = f"Stop it, or make a backup, which is verified: stream-car backup COPY --data {folder}"
        raise StreamCarError(f"{busy.reason}. {cure}") from busy
    session.report({"path": str(folder), "records": records}, lambda _: _intact(records))


@command("data", "no_url", "kafka", "prefix", "namespace", "single_broker", "worker_rules")
@click.option("--index", type=FOLDER, metavar="DIR", help="With --kafka: also check this index of a query worker.")
def doctor(session: Session, index: Path | None) -> None:
    """Check the data, and tell what to do.

    Checks the rules, the hash chain of the log, the state against a replay of the whole log, and the index against
    both. Changes nothing. The data must not be in use. Exit code 1 if something is damaged.

    With --kafka, checks an installation over Kafka and Redis, which $STREAM_CAR_REDIS names: settings and rights, the
    state of both hops against a replay of all topics, the published changes, quarantine and clocks. Nothing need be
    stopped. Give the --rules of its workers.

    Examples:
      stream-car doctor
      stream-car doctor --data ./advisories --json | jq 'select(.status == "damaged")'
      stream-car doctor --kafka localhost:9092 --single-broker
    """
    if session.kafka is not None:
        _examine_installation(session, index)
        return
    if session.rules or index is not None:
        raise click.UsageError("--rules and --index are for an installation. Give --kafka too.")
    from stream_car.local.doctor import examine

    session.require_files(
        IN_USE.format(holder="A service uses its files", backup="stream-car backup COPY --data FOLDER")
    )
    try:
        with progress() as bar:
            task = bar.add_task("replaying the log", total=None)
            findings = list(examine(session.data, lambda done, end: bar.update(task, completed=done, total=end)))
    except Busy as busy:
        raise StreamCarError(IN_USE.format(holder=busy.reason, backup=again("backup COPY"))) from busy
    _report(session, findings)


def _examine_installation(session: Session, index: Path | None) -> None:
    plan = session.installation()
    from stream_car.cluster.doctor import examine

    async def collect() -> list["Finding"]:
        with progress() as bar:
            task = bar.add_task("replaying the topics", total=None)
            return [
                finding
                async for finding in examine(plan, index, lambda done, end: bar.update(task, completed=done, total=end))
            ]

    _report(session, asyncio.run(collect()))


def _report(session: Session, findings: Sequence["Finding"]) -> None:
    session.report_each(findings, _draw_finding)
    require(not any(finding.status == "damaged" for finding in findings))


def _draw_copy(copied: "Copied") -> RenderableType:
    return Lines(
        _intact(copied.records),
        words(f"{copied.path}, {copied.bytes:,} bytes"),
        Text("The first command that uses it builds state and index from the log.", FAINT),
    )


def _intact(records: int) -> Text:
    return Text(f"✔ {counted(records, 'message')}, verified", IN_FORCE)


def _draw_finding(finding: "Finding") -> RenderableType:
    mark, style = MARKS[finding.status]
    head = Text.assemble((f"{mark} {finding.check}: ", style), words(finding.detail))
    return Lines(head, words(f"    {finding.cure}", FAINT)) if finding.cure else head

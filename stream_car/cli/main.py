"""The command `stream-car`: its subcommands, and how errors end it.

Promise: every error that Stream-CAR raises on purpose becomes one sentence on standard error. The exit code is 2, or 1
if documents were rejected. Anything else is a bug and ends with a traceback. Cost: only the module of the command that
runs is imported.
"""

from collections.abc import Iterator
from importlib import import_module

import click
from rich.text import Text

from stream_car.cli.console import err, words
from stream_car.cli.options import BROKEN, FAILED, with_examples
from stream_car.errors import DocumentsRejected, InvalidRules, StreamCarError, UnsafeSettings
from stream_car.suggest import did_you_mean

CommandPath = tuple[str, ...]
PROBLEMS_MAX = 10  # rejected documents that are shown
COMMANDS = {  # the modules, and the commands that they define, in the order of the help
    "demo": ("demo",),
    "publish": ("publish", "retract"),
    "feeds": ("follow", "convert", "formats"),
    "query": ("query", "search", "resolve", "get", "check", "explain"),
    "affected": ("affected",),
    "scopes": ("frontier", "history", "changes", "pending"),
    "watch": ("watch",),
    "webhooks": ("dead-letters",),
    "status": ("status",),
    "rules": ("rules",),
    "rebuild": ("rebuild",),
    "rejected": ("rejected",),
    "quarantine": ("quarantine",),
    "serve": ("serve", "up"),
    "mcp": ("mcp",),
    "token": ("token",),
    "maintenance": ("backup", "restore", "verify", "doctor"),
    "topics": ("topics",),
    "worker": ("worker", "query-worker"),
}
MODULES = {command: module for module, commands in COMMANDS.items() for command in commands}


class SentenceErrors(click.Group):
    """A group whose errors are sentences."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. Exit with 2 if it cannot be carried out."""
        try:
            return super().invoke(ctx)
        except StreamCarError as error:
            for sentence in _sentences(error):
                err().print(sentence, soft_wrap=True)
            ctx.exit(FAILED if isinstance(error, DocumentsRejected) else BROKEN)


class Commands(SentenceErrors):
    """The commands, which are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in MODULES:
            return None
        module = import_module(f"stream_car.cli.{MODULES[cmd_name]}")
        commands = (value for value in vars(module).values() if isinstance(value, click.Command))
        return next(command for command in commands if command.name == cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was typed; suggest another name if there is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            error.message += did_you_mean(args[0], MODULES)
            raise


def iterate_commands(group: click.Group, path: CommandPath = ()) -> Iterator[tuple[CommandPath, click.Command]]:
    """Yield every command that is not a group, with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from iterate_commands(command, (*path, name))
        elif command is not None:
            yield (*path, name), command


def _sentences(error: StreamCarError) -> list[Text]:
    notes = [words(note) for note in getattr(error, "__notes__", ())]
    if isinstance(error, InvalidRules):
        head = Text("The rules cannot be loaded. Correct this and try again:", "bold red")
        return [head, *(words(f"  - {problem}", "red") for problem in error.problems), *notes]
    if isinstance(error, DocumentsRejected):
        listed = [words(f"  {problem}", "red") for problem in error.problems[:PROBLEMS_MAX]]
        more = len(error.problems) - PROBLEMS_MAX
        return [words(error.summary, "bold red"), *listed, *([Text(f"  and {more} more")] if more > 0 else []), *notes]
    problems = error.problems if isinstance(error, UnsafeSettings) else (str(error),)
    return [*(words(problem, "bold red") for problem in problems), *notes]


@with_examples
@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="stream-car")
def main() -> None:
    """Answer questions from the documents that are in force now.

    Publish documents. Rules decide which documents supersede which. Then ask. Data is in ./stream-car-data, in
    $STREAM_CAR_DATA, or in the directory that --data names; with --url, a service is used instead. With --json, a
    command prints JSON.

    Examples:
      stream-car demo                                   see how it works in a minute
      stream-car publish advisories.jsonl releases.jsonl
      stream-car query 'is lodash 4.17.4 safe to use?'
      stream-car frontier package=lodash                what is in force for a package
      stream-car explain GHSA-jf85-cpcp-j695            why a document is in force, or is not
      stream-car serve                                  the same as a service over HTTP
      stream-car watch --url http://127.0.0.1:8377      what changes there, as it happens
    """

"""The group of all commands, and what becomes of an error.

Promise: whatever Stream-CAR raises on purpose becomes one sentence on standard error that says what
to do, and exit code 2; a broken rule pack lists every problem. Anything else is a bug and shows itself.
"""

import click
from rich.text import Text

from stream_car.cli import (
    copies,
    demo,
    doctor,
    feeds,
    follow,
    publish,
    query,
    rebuild,
    rejected,
    rules,
    scopes,
    serve,
    topics,
    up,
    watch,
    worker,
)
from stream_car.cli.console import clean, err
from stream_car.cli.options import examples
from stream_car.errors import InvalidRules, StreamCarError, UnsafeSettings

FAILED = 2


class Commands(click.Group):
    """A group whose commands end errors in words."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command that was asked for; exit with 2 where it cannot be done."""
        try:
            return super().invoke(ctx)
        except StreamCarError as error:
            for text in _sentences(error):
                err().print(text, soft_wrap=True)
            ctx.exit(FAILED)


def _sentences(error: StreamCarError) -> list[Text]:
    if isinstance(error, InvalidRules):
        head = Text(f"the rules cannot be loaded, {len(error.problems)} to mend:", "bold red")
        return [head, *(Text(f"  - {clean(problem)}", "red") for problem in error.problems)]
    if isinstance(error, UnsafeSettings):
        return [Text(clean(problem), "bold red") for problem in error.problems]
    return [Text(clean(str(error)), "bold red")]


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "stream-car demo                                   see the idea in a minute",
        "stream-car publish advisories.jsonl releases.jsonl",
        "stream-car query 'is lodash 4.17.4 safe to use?'",
        "stream-car frontier package=lodash                what is in force there now",
        "stream-car explain GHSA-jf85-cpcp-j695            why it is, or is not, in force",
        "stream-car up                                     the same as a service over HTTP",
        "stream-car watch --url http://127.0.0.1:8377      what becomes void there, as it happens",
    ),
)
@click.version_option(package_name="stream-car")
def main() -> None:
    """Answer from the documents that are in force now, never from those that they void.

    Publish documents; rules say which void which; ask. Data lives in ./stream-car-data, in
    $STREAM_CAR_DATA, or where --data says; or a service has it: --url. Every command takes --json.
    """


for command in (
    demo.command,
    publish.command,
    follow.command,
    feeds.convert,
    feeds.formats,
    query.query,
    query.resolve,
    query.check,
    query.explain,
    scopes.frontier,
    scopes.history,
    scopes.changes,
    scopes.pending,
    rules.group,
    rejected.group,
    rebuild.command,
    doctor.command,
    copies.backup,
    copies.restore,
    topics.group,
    serve.serve,
    up.up,
    watch.watch,
    worker.worker,
):
    main.add_command(command)

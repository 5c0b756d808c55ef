"""`demo`: the idea in a minute, on real cases, in a temporary directory.

Promise: it runs the same code as `publish` and `query`, leaves nothing behind, and waits for nothing.
"""

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from msgspec.structs import replace
from rich import box
from rich.console import Console, RenderableType
from rich.console import Group as Lines
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

import stream_car
from stream_car.api.json import line
from stream_car.cli import options
from stream_car.cli.console import emit, out, words
from stream_car.cli.render import left_line, ranking, telling
from stream_car.cli.widgets import FAINT, certificate_line, controlled
from stream_car.core.changes import Cause, Member
from stream_car.demo import DemoQuestion, feed, questions
from stream_car.queries.answers import Answer, Evidence, Told

K = 3
WIDE = 100
SHOWN = 12  # changes; the rest is counted
TITLE_MAX = 40
TELLING = (  # documents whose end says most: chains, links, late arrivals, and what no similarity can tell
    "plessy-1896",
    "label-vioxx-1999",
    "CVE-2024-3094",
    "facebook-down-2021",
    "CVE-2021-44228",
    "log4j-2.15.0",
    "CVE-2021-45046",
    "log4j-2.17.0",
    "roe-1973",
    "kazakhstan-capital-2019",
    "exmp-approved",
    "chevron-1984",
)

INTRODUCTION = (
    "Search finds what is relevant. Whether it still holds is another question: a patch voids an advisory,",
    "a recall voids a label, a later ruling voids an earlier one, and the later text is often the less similar.",
    "Stream-CAR follows authority from the relevant document to what controls it now, and says what it warrants.",
)


@click.command("demo", epilog=options.examples("stream-car demo", "stream-car demo --json | jq .question"))
@options.as_json
def command(as_json: bool) -> None:
    """See the idea in a minute.

    Documents flow in, frontiers change, questions are answered. The cases are real and well known
    (compliance events are made up). Nothing is left behind.
    """
    with stream_car.open() as engine:
        if as_json:
            engine.publish(feed())
            for asked in questions():
                emit(line(_told(engine, asked)))
        else:
            _perform(engine, out())


def _told(engine: stream_car.Engine, asked: DemoQuestion) -> dict[str, object]:
    return {
        "question": asked.question,
        "why": asked.why,
        "controlling": asked.controlling,
        "relevance": engine.relevance(asked.question, K),
        "answer": engine.query(asked.question, k=K),
    }


def _perform(engine: stream_car.Engine, console: Console) -> None:
    console.print("\n".join(INTRODUCTION))
    documents = feed()
    console.print(Rule(f"1. {len(documents)} documents flow in; frontiers change", align="left", style="cyan"))
    happened = list(_happenings(engine, documents))
    shown = [(member, cause) for member, cause in happened if member.id in TELLING][:SHOWN]
    for member, cause in shown:
        console.print(left_line(member, _shortened(cause)), no_wrap=True, overflow="ellipsis")
    console.print(Text(f"... and {len(happened) - len(shown)} more", FAINT))
    console.print(Rule("2. The same questions, asked twice", align="left", style="cyan"))
    for asked in questions():
        console.print(
            _scene(asked, engine.relevance(asked.question, K), engine.query(asked.question, k=K), console.width)
        )
    console.print(Rule("3. Your turn", align="left", style="cyan"))
    console.print("stream-car publish FILE, stream-car query TEXT, stream-car --help; your own rules: docs/rules.md")
    if not _on_path():
        console.print(f"The command is {sys.argv[0]}; to call it by its name: . {Path(sys.argv[0]).parent}/activate")


def _on_path() -> bool:
    """Whether a person who types `stream-car` gets this very command, or some other way of calling it was taken."""
    called = Path(sys.argv[0])
    return called.name != "stream-car" or shutil.which("stream-car") is not None


def _happenings(engine: stream_car.Engine, documents: Sequence[bytes]) -> Iterator[tuple[Member, Cause]]:
    """Every document that something just published made void, and because of what."""
    seen = 0
    for document in documents:
        engine.publish([document])
        changes = engine.changes(after=seen)
        if changes:
            seen = changes[-1].oseq
        yield from _ended(changes).values()


def _ended(changes: Sequence[Told]) -> dict[str, tuple[Member, Cause]]:
    """The documents that left some frontier, each once however many scopes it left."""
    return {member.id: (member, told.change.cause) for told in changes for member in told.change.left}


def _shortened(cause: Cause) -> Cause:
    """The cause with a title that leaves room for the rule."""
    if len(cause.title) <= TITLE_MAX:
        return cause
    return replace(cause, title=f"{cause.title[: TITLE_MAX - 1].rstrip()}…")


def _scene(asked: DemoQuestion, relevant: Sequence[Evidence], said: Answer, width: int) -> RenderableType:
    """A question, what plain relevance answers, and what Stream-CAR answers with the chain to it."""
    head = [words(asked.question, "bold"), words(asked.why, FAINT)]
    plain = ranking(relevant)
    ours = Lines(controlled(telling(said)[:1]), certificate_line(said.certificate))
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", expand=True, pad_edge=False)
    if width < WIDE:
        table.add_column("plain relevance answers")
        table.add_row(plain)
        table.add_row(Text("Stream-CAR answers", "bold"))
        table.add_row(ours)
    else:
        table.add_column("plain relevance answers", ratio=2)
        table.add_column("Stream-CAR answers", ratio=3)
        table.add_row(plain, ours)
    return Lines(*head, table)

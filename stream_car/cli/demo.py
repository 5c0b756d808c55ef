"""`demo`: the idea in a minute, on real cases, in a temporary directory.

Promise: it runs the same code as `publish` and `query`, leaves nothing behind, and waits for nothing.
"""

import shutil
import sys
from pathlib import Path

from rich import box
from rich.console import Group as Lines, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

import stream_car
from stream_car.api.calls import Calls
from stream_car.api.json import to_json
from stream_car.cli import render, render_changes
from stream_car.cli.console import emit, out, words
from stream_car.cli.options import Session, command
from stream_car.cli.widgets import FAINT
from stream_car.demo import DemoQuestion, feed, questions
from stream_car.queries.answers import Answer, Evidence

K = 3
WIDE = 100  # characters; a narrower terminal shows the two answers one below the other
SHOWN_MAX = 12  # changes
SHOWN = {  # documents that show the most: chains, links, late arrivals, and what no similarity can tell
    "plessy-1896", "label-vioxx-1999", "CVE-2024-3094", "facebook-down-2021", "CVE-2021-44228", "log4j-2.15.0",
    "CVE-2021-45046", "log4j-2.17.0", "roe-1973", "kazakhstan-capital-2019", "exmp-approved", "chevron-1984",
}  # fmt: skip
INTRODUCTION = """\
Search finds relevant documents. Whether they are still in force is another question: a patch supersedes an advisory,
a recall supersedes a label, a later ruling supersedes an earlier one, and the later text is often the less similar one.
Stream-CAR goes from the relevant document to what controls it now, and tells what the answer guarantees."""


@command()
def demo(session: Session) -> None:
    """See how it works in a minute.

    Publishes documents, shows what they supersede, and answers questions. The cases are real and well known, except
    for the compliance events. Nothing is left behind.

    Examples:
      stream-car demo
      stream-car demo --json | jq .question
    """
    with stream_car.open() as engine:
        if not session.as_json:
            _perform(engine)
            return
        engine.publish(feed())
        for question in questions():
            text = question.question
            answers = {"search": engine.search(text, K), "answer": engine.query(text, k=K)}
            emit(to_json({"question": text, "why": question.why, "controlling": question.controlling, **answers}))


def _perform(calls: Calls) -> None:
    console = out()
    console.print(INTRODUCTION)
    documents = feed()
    calls.publish(documents)
    console.print(Rule(f"1. {len(documents)} documents arrive, and supersede others", align="left", style="cyan"))
    changes = calls.changes()
    # A document that left several scopes is shown once.
    endings = {(member.id, change.cause.id): (member, change.cause) for change in changes for member in change.left}
    shown = [ending for ending in endings.values() if ending[0].id in SHOWN][:SHOWN_MAX]
    for member, cause in shown:
        console.print(render_changes.left_line(member, cause), no_wrap=True, overflow="ellipsis")
    console.print(Text(f"... and {len(endings) - len(shown)} more", FAINT))
    console.print(Rule("2. The same questions, asked twice", align="left", style="cyan"))
    for question in questions():
        text = question.question
        console.print(_scene(question, calls.search(text, K), calls.query(text, k=K), console.width))
    console.print(Rule("3. Your turn", align="left", style="cyan"))
    console.print("stream-car publish FILE, stream-car query TEXT, stream-car --help. To write rules: docs/rules.md")
    program = Path(sys.argv[0])
    if program.name == "stream-car" and shutil.which("stream-car") is None:
        console.print(f"This command is {program}. To call it by its name: . {program.parent}/activate")


def _scene(question: DemoQuestion, relevant: tuple[Evidence, ...], answer: Answer, width: int) -> RenderableType:
    """Draw a question, what search alone answers, and what Stream-CAR answers, with the path to it."""
    plain = render.ranking(relevant)
    guarantee = render.certificate_line(answer.certificate, advise=False)
    ours = Lines(render.controlled(render.shown_groups(answer)[:1]), guarantee)
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", expand=True, pad_edge=False)
    table.add_column("plain search answers", ratio=2)
    if width < WIDE:
        for row in (plain, Text("Stream-CAR answers", "bold"), ours):
            table.add_row(row)
    else:
        table.add_column("Stream-CAR answers", ratio=3)
        table.add_row(plain, ours)
    return Lines(words(question.question, "bold"), words(question.why, FAINT), table)

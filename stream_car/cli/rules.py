"""`rules show` and `rules check`: what the packs say, what is wrong with one, and what it would connect."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
from msgspec import Struct
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from stream_car.api.json import line
from stream_car.cli import options
from stream_car.cli.console import emit, show, words
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, VOID, WARN, Rows, arrow, counted
from stream_car.codec import decode, documents_in
from stream_car.core.documents import Document
from stream_car.core.rule_pack import Rule, RulePack
from stream_car.errors import InvalidDocument
from stream_car.rule_packs import Connection, Report, examine, load

SHOWN = 20
BROKEN = 2


@click.group("rules")
def group() -> None:
    """Look at rule packs, and check your own."""


@group.command(
    "show",
    epilog=options.examples(
        "stream-car rules show                     all shipped packs",
        "stream-car rules show security ./mine.toml",
        "stream-car rules show facts --json",
    ),
)
@click.argument("names", nargs=-1, metavar="[NAME|FILE...]")
@options.as_json
def show_rules(names: Sequence[str], as_json: bool) -> None:
    """Show packs: what voids what in which scope."""
    ruleset = load(names)
    options.answer_each(ruleset.packs, as_json=as_json, draw=draw_pack, nothing="No pack is loaded.")
    if not as_json:
        show(Text(f"generation {ruleset.digest}", FAINT))


@group.command(
    "check",
    epilog=options.examples(
        "stream-car rules check ./mine.toml",
        "stream-car rules check ./mine.toml --sample documents.jsonl",
    ),
)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--sample",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Documents to try it on; a few hundred are enough. Without, some are made up from the rules.",
)
@click.option("--beside", multiple=True, metavar="NAME|FILE", help="A pack loaded beside it; may be repeated.")
@options.as_json
def check_rules(file: Path, sample: Path | None, beside: Sequence[str], as_json: bool) -> None:
    """Check a pack of your own.

    Says everything that is wrong with it, and shows which documents it would connect. Exit code 2
    where it cannot be loaded.
    """
    documents, refused = _sampled(sample) if sample is not None else ([], Counter[str]())
    report = examine(file, documents, beside=beside)
    if as_json:
        emit(line(Checked.of(report, refused)))
    else:
        show(draw_report(report, refused))
    if report.problems:
        raise click.exceptions.Exit(BROKEN)


class Checked(Struct, frozen=True, kw_only=True):
    """A report as programs get it."""

    name: str
    problems: tuple[str, ...]
    invented: bool
    documents: int
    connections: tuple[Connection, ...]
    unscoped: tuple[str, ...]
    lacking: tuple[tuple[str, str, int], ...]
    unknown: tuple[str, ...]
    idle: tuple[str, ...]
    refused: Counter[str]

    @classmethod
    def of(cls, report: Report, refused: Counter[str]) -> "Checked":
        """Without the rule set and the documents themselves."""
        return cls(
            name=report.name,
            problems=report.problems,
            invented=report.invented,
            documents=len(report.sample),
            connections=report.connections,
            unscoped=report.unscoped,
            lacking=report.lacking,
            unknown=report.unknown,
            idle=report.idle,
            refused=refused,
        )


def _sampled(path: Path) -> tuple[list[Document], Counter[str]]:
    """The documents of a sample, and how many were refused under which code."""
    documents: list[Document] = []
    refused: Counter[str] = Counter()
    with path.open("rb") as stream:
        for text in documents_in(stream):
            try:
                statement = decode(text)
            except InvalidDocument as error:
                refused[error.code] += 1
            else:
                if isinstance(statement, Document):
                    documents.append(statement)
    return documents, refused


def draw_pack(domain: RulePack) -> RenderableType:
    """A pack for people."""
    lines: list[RenderableType] = [Text.assemble(words(domain.name, "bold"), words(f"  {domain.description}", FAINT))]
    described = [kind for kind in domain.types if domain.type_descriptions.get(kind)]
    others = [kind for kind in domain.types if kind not in described]
    lines += [
        Text.assemble("  ", words(kind), words(f"  {domain.type_descriptions[kind]}", FAINT)) for kind in described
    ]
    if others:
        lines.append(words("  types: " + ", ".join(others)))
    lines.append(_rules_table(domain.rules))
    lines += [words(f"  key {text}") for text in _keys(domain)]
    if domain.anchor_types:
        lines.append(words("  anchors: " + ", ".join(domain.anchor_types)))
    return Lines(*lines, Text())


def _rules_table(rules: Iterable[Rule]) -> RenderableType:
    return Rows(("rule", "later", "", "earlier", "in a scope of", "if they differ on"), map(_rule, rules))


def _rule(rule: Rule) -> tuple[Text, ...]:
    is_voiding = rule.effect == "supersede"
    return (
        words(rule.name),
        words(rule.superseding_type, IN_FORCE),
        Text("voids" if is_voiding else "amends"),
        words(rule.superseded_type, VOID if is_voiding else ""),
        words(", ".join(rule.scope_keys)),
        words(", ".join(rule.differ_on)),
    )


def _keys(domain: RulePack) -> Iterator[str]:
    for name, key in domain.keys.items():
        renamed = f" is read as {key.rename}" if key.rename else ""
        yield f"{name}{renamed}{'' if key.fold == 'none' else f', in {key.fold} case'}"
    for kind, values in domain.fixed.items():
        pairs = ", ".join(f"{key}={value}" for key, some in values.items() for value in some)
        yield f"of every {kind}: {pairs}"


def draw_report(report: Report, refused: Counter[str]) -> RenderableType:
    """A report for people."""
    if report.problems:
        head = Text(f"✘ {report.name} cannot be loaded, {len(report.problems)} to mend:", BAD)
        return Lines(head, *(words(f"  - {problem}", "red") for problem in report.problems))
    kind = "made-up document" if report.invented else "document"
    lines = [
        Text(f"✔ {report.name} is in order", IN_FORCE),
        Text(f"Of {counted(len(report.sample), kind)} it would connect {counted(len(report.connections), 'pair')}:"),
    ]
    lines += [_connection(connection) for connection in report.connections[:SHOWN]]
    if len(report.connections) > SHOWN:
        lines.append(Text(f"  and {len(report.connections) - SHOWN:,} more; --json lists all", FAINT))
    lines += list(_warnings(report, refused))
    return Lines(*lines)


def _connection(pair: Connection) -> Text:
    style = VOID if pair.effect == "supersede" else ""
    return Text.assemble(
        "  ", words(pair.earlier, style), arrow(pair.rule), words(pair.later, IN_FORCE), words(f"  {pair.scope}", FAINT)
    )


def _warnings(report: Report, refused: Counter[str]) -> Iterator[Text]:
    if report.idle:
        yield words(f"Rules that connected nothing: {', '.join(report.idle)}", WARN)
    if report.unknown:
        yield words(f"Types that no loaded pack declares: {', '.join(report.unknown)}", WARN)
    if report.unscoped:
        yield words(f"{counted(len(report.unscoped), 'document')} joined no scope, {report.unscoped[0]} for one", WARN)
    for kind, key, count in report.lacking:
        yield words(f"{kind} lacked {key} ({counted(count, 'document')})", WARN)
    for code, count in refused.most_common():
        yield words(f"{counted(count, 'document')} of the sample {'is' if count == 1 else 'are'} refused ({code})", BAD)

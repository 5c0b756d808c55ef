"""`rules show`, `rules check` and `rules test`: what packs say, what is wrong with one, and examples of it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict
from rich.console import Group as Lines, RenderableType
from rich.text import Text

from stream_car.api.json import to_json
from stream_car.cli import options
from stream_car.cli.console import emit, show, words
from stream_car.cli.options import BROKEN, EXISTING_FILE, Session, command, is_typed, require
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, VOID, WARN, Rows, arrow, counted
from stream_car.codec import decode
from stream_car.core.documents import Document
from stream_car.core.rule_pack import REPLACED, REVISED, Rule, RulePack
from stream_car.core.rules import Ruleset
from stream_car.errors import InvalidDocument, InvalidRules
from stream_car.ingest.files import read_documents
from stream_car.pictures.rule_pack import draw_rule_pack
from stream_car.rule_packs import Report, RuleConnection, derived_for, examine_pack, load

if TYPE_CHECKING:
    from stream_car.local.rule_cases import CaseResult

SHOWN_MAX = 20  # connections


@click.group()
def rules() -> None:
    """Show rule packs, check your own, and test it with examples."""


@command("data", "url", name="show", group=rules)
@click.argument("names", nargs=-1, metavar="[NAME|FILE...]")
def show_rules(session: Session, names: Sequence[str]) -> None:
    """Show packs: which type supersedes or amends which, in which scope.

    Shows the packs that are named. Without names, shows those of the data or service that --data or --url names, else
    all shipped packs.

    Examples:
      stream-car rules show                     all shipped packs
      stream-car rules show security ./mine.toml
      stream-car rules show facts --json
      stream-car rules show --data ./court      the packs of this data
      stream-car rules show --url http://127.0.0.1:8377
    """
    is_of_data = any(map(is_typed, ("data", "url")))
    if is_of_data and names:
        raise click.UsageError("Name packs, or the data whose packs to show with --data or --url, but not both.")
    if is_of_data:
        with session.open() as calls:
            ruleset = Ruleset(calls.rules().packs)
    else:
        ruleset = load(names)
    session.report_each(ruleset.packs, lambda pack: _draw_pack(pack, derived_for(pack, ruleset)))
    if not session.as_json:
        show(Text(f"rules digest {ruleset.digest}", FAINT))


@command(name="check", group=rules)
@click.argument("file", type=EXISTING_FILE)
@click.option(
    "--sample",
    type=EXISTING_FILE,
    help="Documents to try the rules on; a few hundred are enough.  [default: documents made up from the rules]",
)
@click.option("--beside", multiple=True, metavar="NAME|FILE", help="A pack that yours builds on; may be repeated.")
@options.svg("what ends and what amends the documents of each type")
def check_rules(session: Session, file: Path, sample: Path | None, beside: Sequence[str], svg: Path | None) -> None:
    """Check a rule pack of your own.

    Reports everything that is wrong with it, and shows which documents it would connect. Warns of what is probably not
    meant: amendments that outlive what they amend, types that nothing ends, keys that no type has. Exit code 2 if the
    pack cannot be loaded.

    Examples:
      stream-car rules check ./mine.toml
      stream-car rules check ./mine.toml --sample documents.jsonl
      stream-car rules check ./mine.toml --svg mine.svg       draw the pack
    """
    documents, rejected = _read_sample(sample) if sample is not None else ([], Counter[str]())
    report = examine_pack(file, documents, beside=beside)
    if session.as_json:
        fields = {name: value for name, value in asdict(report).items() if name not in ("ruleset", "sample")}
        emit(to_json(fields | {"documents": len(report.sample), "rejected": rejected}))
    elif report.problems:
        raise InvalidRules(report.problems)
    else:
        show(*_draw_report(report, rejected))
    if report.ruleset is not None:
        ruleset = report.ruleset
        [pack] = (pack for pack in ruleset.packs if pack.name == report.name)
        options.write_svg(svg, lambda: draw_rule_pack(pack, ruleset))
    require(not report.problems, BROKEN)


@command(name="test", group=rules)
@click.argument("files", type=EXISTING_FILE, nargs=-1, required=True)
def test_rules(session: Session, files: Sequence[Path]) -> None:
    """Test rule packs with examples of your own.

    A file of cases has documents, and says which of them are in force and why; the page on rule packs describes it.
    Exit code 1 if a case fails, 2 if a file or its packs cannot be read.

    Examples:
      stream-car rules test ./cases.toml
      stream-car rules test ./cases.toml --json
    """
    from stream_car.local.rule_cases import run_cases  # imports the engine

    results = [result for file in files for result in run_cases(file)]
    session.report_each(results, _draw_result)
    failed = sum(bool(result.failures) for result in results)
    if not session.as_json:
        words_failed = f", {counted(failed, 'failure')}" if failed else ""
        show(Text(f"{counted(len(results), 'case')}{words_failed}", BAD if failed else IN_FORCE))
    require(not failed)


def _draw_result(result: "CaseResult") -> RenderableType:
    if not result.failures:
        return Text.assemble(("✔ ", IN_FORCE), words(result.name))
    return Lines(Text.assemble(("✘ ", BAD), words(result.name)), *(words(f"    {text}") for text in result.failures))


def _read_sample(path: Path) -> tuple[list[Document], Counter[str]]:
    """Return the documents of a sample, and how many were rejected with each code."""
    documents: list[Document] = []
    rejected: Counter[str] = Counter()
    for text in read_documents(str(path)):
        try:
            statement = decode(text)
        except InvalidDocument as error:
            rejected[error.code] += 1
        else:
            documents += [statement] if isinstance(statement, Document) else []
    return documents, rejected


def _draw_pack(pack: RulePack, derived: Sequence[Rule]) -> RenderableType:
    lines = [Text.assemble(words(pack.name, "bold"), words(f"  {pack.description}", FAINT))]
    described = [(kind, pack.type_descriptions[kind]) for kind in pack.types if pack.type_descriptions.get(kind)]
    lines += [Text.assemble("  ", words(kind), words(f"  {text}", FAINT)) for kind, text in described]
    others = [kind for kind in pack.types if not pack.type_descriptions.get(kind)]
    if others:
        lines.append(words(f"  types: {', '.join(others)}"))
    columns = ("rule", "later", "", "earlier", "in a scope of", "if they differ on", "outcome")
    notes = [words(f"  state {text}") for text in _states(pack.states, pack.ending_states)]
    notes += [words(f"  key {text}") for text in _keys(pack)]
    if pack.anchor_types:
        notes.append(words(f"  anchors: {', '.join(pack.anchor_types)}"))
    return Lines(*lines, Rows(columns, map(_row, (*pack.rules, *derived))), *notes, Text())


def _row(rule: Rule) -> tuple[Text, ...]:
    supersedes = rule.effect == "supersede"
    return (
        words(rule.name),
        words(rule.superseding_type, IN_FORCE),
        Text("supersedes" if supersedes else "amends, and follows" if rule.follows else "amends"),
        words(rule.superseded_type, VOID if supersedes else ""),
        words(", ".join(rule.scope_keys)),
        words(", ".join(rule.differ_on)),
        words(_outcome(rule)),
    )


def _outcome(rule: Rule) -> str:
    """Return what becomes of the earlier document, in the pack's word."""
    if rule.effect == "amend":
        return ""
    other = f", or {REVISED} if {', '.join(rule.material)} is the same" if rule.material else ""
    return (rule.outcome or REPLACED) + other


def _states(states: Mapping[str, str], ending_states: Sequence[str]) -> Iterator[str]:
    """Yield each state with the types that give it to their record."""
    for state in dict.fromkeys(states.values()):
        ending = " (the record no longer holds)" if state in ending_states else ""
        yield f"{state}{ending}: {', '.join(kind for kind, other in states.items() if other == state)}"


def _keys(pack: RulePack) -> Iterator[str]:
    for name, key in pack.keys.items():
        renamed = f", read as {key.rename}" if key.rename else ""
        yield f"{name}{renamed}{'' if key.fold == 'none' else f', in {key.fold} case'}"
    for kind, fixed in pack.fixed.items():
        yield f"of every {kind}: {', '.join(f'{key}={value}' for key, values in fixed.items() for value in values)}"


def _draw_report(report: Report, rejected: Counter[str]) -> Iterator[Text]:
    kind = "made-up document" if report.invented else "document"
    yield Text(f"✔ {report.name} can be loaded", IN_FORCE)
    pairs = counted(len(report.connections), "pair")
    yield Text(f"Among {counted(len(report.sample), kind)} it would connect {pairs}:")
    yield from map(_connection, report.connections[:SHOWN_MAX])
    if len(report.connections) > SHOWN_MAX:
        yield Text(f"  and {len(report.connections) - SHOWN_MAX:,} more; --json lists all", FAINT)
    yield from (words(text) for text in _labels(report))
    if report.derived:
        yield words("Rules that `follows` implies:")
        yield from (_derived(rule) for rule in report.derived)
    yield from (words(warning, WARN) for warning in report.warnings)
    if report.idle:
        yield words(f"Rules that connect nothing here: {', '.join(report.idle)}", WARN)
    if report.unknown:
        yield words(f"Types that no loaded pack declares: {', '.join(report.unknown)}", WARN)
    if report.unscoped:
        subject = counted(len(report.unscoped), "document is", "documents are")
        yield words(f"{subject} in no scope, for example {report.unscoped[0]}", WARN)
    for kind, key, count in report.missing_keys:
        subject = counted(count, f"document of type {kind}", f"documents of type {kind}")
        yield words(f"{subject} without the key {key}", WARN)
    for code, count in rejected.most_common():
        yield words(f"{counted(count, 'document of the sample', 'documents of the sample')} rejected ({code})", BAD)


def _labels(report: Report) -> Iterator[str]:
    """Yield the outcomes of the rules and the states of the types."""
    rules: dict[str, list[str]] = {}
    for rule, outcome in report.outcomes.items():
        rules.setdefault(outcome, []).append(rule)
    if rules:
        yield "What becomes of a superseded document:"
        yield from (f"  {outcome}: {', '.join(names)}" for outcome, names in rules.items())
    if report.states:
        yield "What a document says of its record:"
        yield from (f"  {text}" for text in _states(report.states, report.ending_states))


def _derived(rule: Rule) -> Text:
    earlier = words(f"  {rule.superseded_type}", VOID)
    scope = words(f"  {', '.join(rule.scope_keys)}", FAINT)
    return Text.assemble(earlier, arrow(rule.name), words(rule.superseding_type, IN_FORCE), scope)


def _connection(pair: RuleConnection) -> Text:
    earlier = words(f"  {pair.earlier}", VOID if pair.effect == "supersede" else "")
    return Text.assemble(earlier, arrow(pair.rule), words(pair.later, IN_FORCE), words(f"  {pair.scope}", FAINT))

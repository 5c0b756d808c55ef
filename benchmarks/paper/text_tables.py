"""Reports as tables of text, for people and programs.

Promise: pure. Figures have three decimals; shares have their 95 % Wilson interval if there is room.
"""

from collections.abc import Sequence

from msgspec import Struct

from benchmarks.paper import paper_figures
from benchmarks.paper.budgets import BudgetStep, Curve
from benchmarks.paper.lab import OURS, Line, Report
from benchmarks.paper.measures import Share

ABSENT = "-"


class TextTable(Struct, frozen=True, kw_only=True):
    """A table whose cells are text. `notes` are shown below it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def figure(value: float | None, places: int = 3) -> str:
    """Format a number; `None` becomes a dash."""
    return ABSENT if value is None else f"{value:.{places}f}"


def bare(share: Share | None) -> str:
    """Format a share without its interval."""
    return figure(share.value if share is not None else None)


def spread(share: Share | None) -> str:
    """Format a share with its interval."""
    return ABSENT if share is None else f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]"


TCA = (
    "TCA: the share of questions whose first five documents include everything that controls, and nothing superseded "
    "without a superseder. RSSG: the paper's way to apply rules. See docs/how-to/benchmark-answers.md."
)


def comparison(reports: Sequence[Report]) -> TextTable:
    """Compare the paper, the best baseline, the engine and the ceiling on every set."""
    return TextTable(
        title="Paper, baselines, Stream-CAR, ceiling (TCA@5)",
        columns=("set", "n", "paper, best", "best baseline", OURS, "ceiling", "own scorer", "its ceiling"),
        rows=tuple(_comparison_row(report) for report in reports),
        notes=(
            TCA,
            "TCA by Theorem 4; the columns of the paper and of the own scorer use each set's own scorer.",
            "A ceiling applies to all questions of a set; of the split used here a different share may be answerable.",
        ),
    )


def _comparison_row(report: Report) -> tuple[str, ...]:
    collection = report.collection
    rivals = [line for line in report.lines if not line.system.startswith(OURS) and not line.gold]
    best = max(rivals, key=lambda line: line.scores.tca.value)
    (ours,) = (line for line in report.lines if line.system == OURS)
    return (
        collection.title,
        str(report.questions),
        figure(paper_figures.best_tca(collection.name)),
        f"{best.scores.tca.value:.3f} {best.system}",
        spread(ours.scores.tca),
        figure(collection.ceiling),
        bare(ours.scores.own),
        figure(collection.own_ceiling if collection.own_ceiling is not None else collection.ceiling),
    )


def systems(report: Report) -> TextTable:
    """List all systems on one set."""
    has_answers = any(line.scores.accurate is not None for line in report.lines)
    columns = ["system", "paper", "TCA, Theorem 4", "TCA, own scorer"]
    columns += ["Acc", "Recall@5", "ProvRec"] if has_answers else ["Recall@5"]
    counts = f"{report.questions} questions ({report.split}), {report.documents:,} documents"
    return TextTable(
        title=f"{report.collection.title}: {counts}",
        columns=tuple(columns),
        rows=tuple(_system_row(report, line, has_answers=has_answers) for line in report.lines),
        notes=(
            TCA,
            *_notes(report),
            *(f"{missing.system}: not run: needs {missing.needs}" for missing in report.needs),
        ),
    )


def _system_row(report: Report, line: Line, *, has_answers: bool) -> tuple[str, ...]:
    scores = line.scores
    cells = [
        _name(line),
        figure(paper_figures.tca(report.collection.name, line.system)),
        spread(scores.tca),
        spread(scores.own),
    ]
    figures = [scores.accurate, scores.recall, scores.provenance] if has_answers else [scores.recall]
    return (*cells, *map(bare, figures))


def hops(report: Report) -> TextTable | None:
    """List all systems by hop; return `None` if the set has only one hop."""
    names = list(next((line.hops for line in report.lines if line.hops), {}))
    if not names:
        return None
    return TextTable(
        title=f"{report.collection.title}, by hop: TCA by Theorem 4",
        columns=("system", *names),
        rows=tuple((_name(line), *(spread(line.hops[name].tca) for name in names)) for line in report.lines),
    )


def _name(line: Line) -> str:
    return f"{line.system} (sees gold)" if line.gold and "gold" not in line.system else line.system


def _notes(report: Report) -> list[str]:
    collection = report.collection
    notes = []
    if collection.because:
        own = f", {collection.own_ceiling:.3f} by the own scorer" if collection.own_ceiling is not None else ""
        notes.append(f"Ceiling {collection.ceiling:.3f}{own}: {collection.because}.")
    if report.same_words < 1:
        notes.append(
            f"At most {report.same_words:.3f} of these questions can be right: the same words get the same {report.k} "
            "documents."
        )
    notes += [
        f"{line.system}: applies to {line.applied} of {report.questions} questions."
        for line in report.lines
        if line.applied < report.questions
    ]
    return notes


def factorisation(reports: Sequence[Report]) -> TextTable:
    """Show Proposition 1 for the engine: where right answers are lost."""
    rows = []
    for report in reports:
        if (each := report.factors) is not None:
            product = each.anchor * each.identified * each.frontier
            values = (each.anchor, each.identified, each.frontier, product + each.otherwise, each.phi, each.kappa)
            rows.append((report.collection.title, *map(figure, values), figure(each.delta, 2), figure(each.apart)))
    return TextTable(
        title="Where answers are lost (Proposition 1), and how far authority is from relevance (Definitions 4, 5)",
        columns=("set", "R anchor", "identified", "R frontier", "product", "phi", "kappa", "Delta", "Delta > 0"),
        rows=tuple(rows),
        notes=(
            "R anchor: the gold anchor is among Stage 1's 50. identified: its chain is in the answer, given that. "
            "R frontier: the answer is right, given both. phi bounds the middle one for systems without rules.",
            "Delta: mean BM25 score (nats) of the most relevant document minus that of what controls it.",
        ),
    )


def lookups(reports: Sequence[Report]) -> TextTable:
    """Compare the cost of Stage 2 with Proposition 3."""
    rows = [
        (
            report.collection.title,
            figure(each.anchors, 1),
            figure(each.lookups, 1),
            figure(each.lookups / each.anchors if each.anchors else None, 1),
            figure(each.rounds, 1),
            figure(report.checks, 1),
        )
        for report in reports
        if (each := report.factors) is not None
    ]
    return TextTable(
        title="Authority look-ups per question (Proposition 3)",
        columns=("set", "anchors (the least)", "keys read", "keys per anchor", "rounds", "RSSG's rule checks"),
        rows=tuple(rows),
        notes=(
            "Proposition 3 (i): at least one look-up per anchor in the answer. A key is that of a document or a scope; "
            "an anchor costs one key, and one for each of its scopes. Anchors are read ten at a time, so some keys "
            "belong to anchors that the answer does not need.",
        ),
    )


def budget_table(curve: Curve) -> TextTable:
    """Show coverage and risk on one set as the budget grows."""
    return TextTable(
        title=f"{curve.collection.title}: what a budget of look-ups buys, {curve.questions} questions ({curve.split})",
        columns=("budget", "keys read", "complete", "coverage", "of the whole answer", "risk", "risk where complete"),
        rows=tuple(_budget_row(step) for step in curve.steps),
        notes=(
            "coverage: the mean of the certificates', an estimate of how much of what a question may mean is covered. "
            f"risk: the share answered wrongly at {curve.k} by Theorem 4. complete: the share of answers that neither "
            "the budget nor anything else limited.",
            "A budget is checked after every anchor, so slightly more keys may be read. Without one, anchors are read "
            "ten at a time: more keys, in fewer rounds.",
        ),
    )


def _budget_row(step: BudgetStep) -> tuple[str, ...]:
    return (
        "none" if step.budget is None else str(step.budget),
        figure(step.keys, 1),
        bare(step.complete),
        figure(step.coverage),
        figure(step.recall),
        spread(step.risk),
        bare(step.trusted if step.trusted.n else None),
    )


def failures(report: Report) -> TextTable:
    """List the questions that the engine answers wrongly, and why."""
    return TextTable(
        title=f"{report.collection.title}: {len(report.failures)} of {report.questions} questions fail (Theorem 4)",
        columns=("question", "words", "why"),
        rows=tuple((failure.id, failure.text[:90], failure.reason) for failure in report.failures),
    )

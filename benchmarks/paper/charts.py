"""Reports as charts: for each set the systems' shares and the Delta plot, and one chart of all sets."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.paper import paper_figures, plots
from benchmarks.paper.budgets import Curve
from benchmarks.paper.lab import OURS, Report
from stream_car.pictures.scatter import ChartPoint, draw_scatter


def write_reports(reports: Sequence[Report], folder: Path) -> list[Path]:
    """Draw reports into a folder, which is created if necessary; return the files."""
    charts = {f"{report.collection.name}-systems.svg": draw_systems(report) for report in reports}
    charts |= {f"{report.collection.name}-delta.svg": draw_deltas(report) for report in reports if report.deltas}
    charts["all.svg"] = draw_all_sets(reports)
    return _write(charts, folder)


def write_curves(curves: Sequence[Curve], folder: Path) -> list[Path]:
    """Draw curves into a folder, which is created if necessary; return the files."""
    return _write({f"{curve.collection.name}-budget.svg": draw_curve(curve) for curve in curves}, folder)


def _write(charts: Mapping[str, str], folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, chart in charts.items():
        (folder / name).write_text(chart, encoding="utf-8")
    return [folder / name for name in charts]


def draw_systems(report: Report) -> str:
    """Draw every system's TCA by Theorem 4 on one set."""
    bars = [
        plots.ChartBar(
            name=line.system,
            value=line.scores.tca.value,
            low=line.scores.tca.low,
            high=line.scores.tca.high,
            paper=paper_figures.tca(report.collection.name, line.system),
            tint=2 if line.system.startswith(OURS) else 3 if line.gold else 0,
        )
        for line in report.lines
    ]
    return plots.draw_bars(
        f"{report.collection.title}: TCA@{report.k} by Theorem 4, {report.questions} questions",
        bars,
        note="95 % Wilson intervals. Diamonds: the paper's figure, by the set's own scorer. Red line: ceiling.",
        ceiling=report.collection.ceiling,
    )


def draw_all_sets(reports: Sequence[Report]) -> str:
    """Draw the engine's TCA by Theorem 4 on every set."""
    bars = []
    for report in reports:
        (ours,) = (line.scores.tca for line in report.lines if line.system == OURS)
        bars.append(
            plots.ChartBar(
                name=report.collection.title,
                value=ours.value,
                low=ours.low,
                high=ours.high,
                paper=paper_figures.best_tca(report.collection.name),
                tint=2,
            )
        )
    return plots.draw_bars(
        "Stream-CAR on every set: TCA@5 by Theorem 4",
        bars,
        note="Bars with 95 % Wilson intervals. Diamonds: the paper's best system, by the set's own scorer.",
    )


def draw_deltas(report: Report) -> str:
    """Draw Definition 4 for each question: the score of the anchor against that of what controls it."""
    points = [
        ChartPoint(
            x=delta.score,
            y=delta.controlling,
            name=f"{delta.anchor}: {delta.score:.1f}, controlled by {delta.controlling:.1f}; "
            f"{delta.above} outscore the gold",
            tint=0 if delta.delta > 0 else 2,
        )
        for delta in report.deltas
    ]
    return draw_scatter(
        f"{report.collection.title}: how far authority is from relevance",
        points,
        x_label="BM25 score of the most relevant document",
        y_label="best score of what controls it",
        note="Below the diagonal the most relevant document is void (Delta > 0); on it, it is in force.",
    )


def draw_curve(curve: Curve) -> str:
    """Draw coverage and risk of one set as the budget grows."""
    steps = curve.steps
    return plots.draw_lines(
        f"{curve.collection.title}: coverage and risk as the budget grows, {curve.questions} questions",
        ["none" if step.budget is None else str(step.budget) for step in steps],
        [
            plots.ChartLine(name="coverage, as certified", values=tuple(step.coverage for step in steps), tint=0),
            plots.ChartLine(name="of the whole answer", values=tuple(step.recall for step in steps), tint=2),
            plots.ChartLine(name="risk (Theorem 4)", values=tuple(step.risk.value for step in steps), tint=1),
        ],
        x_label="budget of look-ups",
        note="Risk is the share of questions answered wrongly.",
    )

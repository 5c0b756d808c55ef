"""Reports as charts: for each set the systems' shares and the Delta plot, and one chart of all sets."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.paper import paper
from benchmarks.paper.budgets import Curve
from benchmarks.paper.lab import OURS, Report
from stream_car.pictures import plots


def write(reports: Sequence[Report], folder: Path) -> list[Path]:
    """Draw reports into a folder, which is made if need be; the files."""
    drawn = {f"{one.collection.name}-systems.svg": systems(one) for one in reports}
    drawn |= {f"{one.collection.name}-delta.svg": delta(one) for one in reports if one.deltas}
    drawn["all.svg"] = together(reports)
    return _kept(drawn, folder)


def write_curves(curves: Sequence[Curve], folder: Path) -> list[Path]:
    """Draw curves into a folder, which is made if need be; the files."""
    return _kept({f"{one.collection.name}-budget.svg": budgets(one) for one in curves}, folder)


def _kept(drawn: Mapping[str, str], folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, picture in drawn.items():
        paths.append(folder / name)
        paths[-1].write_text(picture, encoding="utf-8")
    return paths


def systems(report: Report) -> str:
    """Every system's TCA by Theorem 4 on one set."""
    shares = [
        plots.ChartBar(
            name=line.system,
            value=line.scores.tca.value,
            low=line.scores.tca.low,
            high=line.scores.tca.high,
            paper=paper.tca(report.collection.name, line.system),
            tint=2 if line.system.startswith(OURS) else 3 if line.gold else 0,
        )
        for line in report.lines
    ]
    return plots.draw_bars(
        f"{report.collection.title}: TCA@{report.k} by Theorem 4, {report.questions} questions",
        shares,
        note="95 % Wilson intervals. Diamonds: the paper's figure, by the set's own scorer. Red line: ceiling.",
        ceiling=report.collection.ceiling,
    )


def together(reports: Sequence[Report]) -> str:
    """The engine on every set."""
    shares = []
    for report in reports:
        told = [value for name, value in paper.TCA.get(report.collection.name, {}).items() if name != "oracle"]
        (ours,) = (line.scores.tca for line in report.lines if line.system == OURS)
        best = max(told, default=None)
        shares.append(
            plots.ChartBar(
                name=report.collection.title, value=ours.value, low=ours.low, high=ours.high, paper=best, tint=2
            )
        )
    return plots.draw_bars(
        "Stream-CAR on every set: TCA@5 by Theorem 4",
        shares,
        note="Bars with 95 % Wilson intervals. Diamonds: the paper's best system, by the set's own scorer.",
    )


def delta(report: Report) -> str:
    """Definition 4, question by question: how relevance scores the anchor, and how what controls it."""
    points = [
        plots.ChartPoint(
            x=one.score,
            y=one.controlling,
            name=f"{one.anchor}: {one.score:.1f}, controlled by {one.controlling:.1f}; {one.above} outscore the gold",
            tint=0 if one.delta > 0 else 2,
        )
        for one in report.deltas
    ]
    return plots.draw_scatter(
        f"{report.collection.title}: how far authority is from relevance",
        points,
        x_label="BM25 score of the most relevant document",
        y_label="best score of what controls it",
        note="Beneath the diagonal the most relevant document is void (Delta > 0); on it, it is in force.",
    )


def budgets(found: Curve) -> str:
    """Coverage and risk of one set as the budget grows."""
    return plots.draw_lines(
        f"{found.collection.title}: coverage and risk as the budget grows, {found.questions} questions",
        ["none" if one.budget is None else str(one.budget) for one in found.steps],
        [
            plots.ChartLine(name="coverage, as certified", values=tuple(one.coverage for one in found.steps), tint=0),
            plots.ChartLine(name="of the whole answer", values=tuple(one.told for one in found.steps), tint=2),
            plots.ChartLine(name="risk (Theorem 4)", values=tuple(one.risk.value for one in found.steps), tint=1),
        ],
        x_label="budget of look-ups",
        note="Risk is the share of questions answered wrongly.",
    )

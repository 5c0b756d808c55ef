"""Reports as sheets of words: what is printed, and what a program reads.

Promise: pure. A figure is shown to three places, a share with its 95 % Wilson interval where there is room.
"""

from collections.abc import Sequence

from msgspec import Struct

from benchmarks.paper import paper
from benchmarks.paper.budgets import Curve, Spent
from benchmarks.paper.lab import OURS, Line, Report
from benchmarks.paper.measures import Share

ABSENT = "-"


class Sheet(Struct, frozen=True, kw_only=True):
    """A table: its rows are words. `notes` stand beneath it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def figure(value: float | None, places: int = 3) -> str:
    """A number, or a dash."""
    return ABSENT if value is None else f"{value:.{places}f}"


def bare(share: Share | None) -> str:
    """A share without its interval."""
    return figure(share.value if share is not None else None)


def spread(share: Share | None) -> str:
    """A share with its interval."""
    return ABSENT if share is None else f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]"


TCA = (
    "TCA: the share of questions for which all that controls is among the first five, and nothing superseded stands "
    "there without a superseder. RSSG: the paper's way to follow rules. See docs/how-to/benchmark-answers.md."
)


def side_by_side(reports: Sequence[Report]) -> Sheet:
    """Paper, best baseline, engine and ceiling of every set."""
    return Sheet(
        title="Paper, baselines, Stream-CAR, ceiling (TCA@5)",
        columns=("set", "n", "paper, best", "best baseline", OURS, "ceiling", "own scorer", "its ceiling"),
        rows=tuple(_beside(report) for report in reports),
        notes=(
            TCA,
            "TCA by Theorem 4 but for the paper's column and the own scorer's, which are as each set scores itself.",
            "A ceiling is that of all of a set's questions; of those asked here another share may be answerable.",
        ),
    )


def _beside(report: Report) -> tuple[str, ...]:
    collection = report.collection
    told = [value for name, value in paper.TCA.get(collection.name, {}).items() if name != "oracle"]
    rivals = [line for line in report.lines if not line.system.startswith(OURS) and not line.gold]
    best = max(rivals, key=lambda line: line.scores.tca.value)
    (ours,) = (line for line in report.lines if line.system == OURS)
    return (
        collection.title,
        str(report.questions),
        figure(max(told, default=None)),
        f"{best.scores.tca.value:.3f} {best.system}",
        spread(ours.scores.tca),
        figure(collection.ceiling),
        bare(ours.scores.own),
        figure(collection.own_ceiling if collection.own_ceiling is not None else collection.ceiling),
    )


def systems(report: Report) -> Sheet:
    """All systems on one set."""
    has_answers = any(line.scores.accurate is not None for line in report.lines)
    columns = ["system", "paper", "TCA, Theorem 4", "TCA, own scorer"]
    columns += ["Acc", "Recall@5", "ProvRec"] if has_answers else ["Recall@5"]
    counts = f"{report.questions} questions ({report.split}), {report.documents:,} documents"
    return Sheet(
        title=f"{report.collection.title}: {counts}",
        columns=tuple(columns),
        rows=tuple(_system(report, line, has_answers=has_answers) for line in report.lines),
        notes=(TCA, *_notes(report), *(f"{one.system}: not run: needs {one.needs}" for one in report.needs)),
    )


def _system(report: Report, line: Line, *, has_answers: bool) -> tuple[str, ...]:
    scores = line.scores
    cells = [
        _named(line),
        figure(paper.tca(report.collection.name, line.system)),
        spread(scores.tca),
        spread(scores.own),
    ]
    figures = [scores.accurate, scores.recall, scores.provenance] if has_answers else [scores.recall]
    return (*cells, *map(bare, figures))


def hops(report: Report) -> Sheet | None:
    """All systems hop by hop; nothing where the set has only one."""
    names = list(next((line.hops for line in report.lines if line.hops), {}))
    if not names:
        return None
    return Sheet(
        title=f"{report.collection.title}, by hop: TCA by Theorem 4",
        columns=("system", *names),
        rows=tuple((_named(line), *(spread(line.hops[name].tca) for name in names)) for line in report.lines),
    )


def _named(line: Line) -> str:
    return f"{line.system} (sees gold)" if line.gold and "gold" not in line.system else line.system


def _notes(report: Report) -> list[str]:
    collection = report.collection
    notes = []
    if collection.because:
        own = f", {collection.own_ceiling:.3f} by the own scorer" if collection.own_ceiling is not None else ""
        notes.append(f"Ceiling {collection.ceiling:.3f}{own}: {collection.because}.")
    if report.same_words < 1:
        notes.append(
            f"Of these questions at most {report.same_words:.3f} can be right: {report.k} places for the same words."
        )
    notes += [
        f"{line.system}: could be asked {line.applied} of {report.questions} questions."
        for line in report.lines
        if line.applied < report.questions
    ]
    return notes


def factorisation(reports: Sequence[Report]) -> Sheet:
    """Proposition 1 for the engine: where right answers are lost."""
    rows = []
    for report in reports:
        if (found := report.factors) is not None:
            product = found.anchor * found.identified * found.frontier
            values = (found.anchor, found.identified, found.frontier, product + found.otherwise, found.phi, found.kappa)
            rows.append((report.collection.title, *map(figure, values), figure(found.delta, 2), figure(found.apart)))
    return Sheet(
        title="Where answers are lost (Proposition 1), and how far authority is from relevance (Definitions 4, 5)",
        columns=("set", "R anchor", "identified", "R frontier", "product", "phi", "kappa", "Delta", "Delta > 0"),
        rows=tuple(rows),
        notes=(
            "R anchor: the gold anchor is among Stage 1's 50. identified: its chain is in the answer, given that. "
            "R frontier: the answer is right, given both. phi bounds the middle for systems that know no rules.",
            "Delta: mean BM25 score (nats) of the most relevant document less that of what controls it.",
        ),
    )


def lookups(reports: Sequence[Report]) -> Sheet:
    """What Stage 2 costs, beside Proposition 3."""
    rows = [
        (
            report.collection.title,
            figure(found.anchors, 1),
            figure(found.lookups, 1),
            figure(found.lookups / found.anchors if found.anchors else None, 1),
            figure(found.rounds, 1),
            figure(report.checks, 1),
        )
        for report in reports
        if (found := report.factors) is not None
    ]
    return Sheet(
        title="Authority look-ups a question (Proposition 3)",
        columns=("set", "anchors (the least)", "keys read", "keys an anchor", "rounds", "RSSG's rule checks"),
        rows=tuple(rows),
        notes=(
            "Proposition 3 (i): at least one look-up an anchor in the answer. A key is a document's or a scope's; each "
            "anchor costs one of its own and one for each of its scopes. Anchors are read ten at a time, so some keys "
            "belong to anchors that the answer does not need.",
        ),
    )


def budgets(found: Curve) -> Sheet:
    """Coverage and risk of one set as the budget grows."""
    return Sheet(
        title=f"{found.collection.title}: what a budget of look-ups buys, {found.questions} questions ({found.split})",
        columns=("budget", "keys read", "complete", "coverage", "of the whole answer", "risk", "risk where complete"),
        rows=tuple(_spent(one) for one in found.steps),
        notes=(
            "coverage: the mean of the certificates', how much of what a question may mean is covered; it is believed, "
            "not judged. risk: the share answered wrongly at "
            f"{found.k} by Theorem 4. complete: the share of answers that no budget stopped and nothing else limits.",
            "A budget is counted after every anchor, so a little more may be read; without one anchors are read ten at "
            "a time: more keys, in fewer rounds.",
        ),
    )


def _spent(one: Spent) -> tuple[str, ...]:
    figures = (figure(one.keys, 1), bare(one.complete), figure(one.coverage), figure(one.told), spread(one.risk))
    return ("none" if one.budget is None else str(one.budget), *figures, bare(one.trusted if one.trusted.n else None))


def failures(report: Report) -> Sheet:
    """The questions that the engine fails, and why."""
    return Sheet(
        title=f"{report.collection.title}: {len(report.failures)} of {report.questions} questions fail (Theorem 4)",
        columns=("question", "words", "why"),
        rows=tuple((one.id, one.text[:90], one.reason) for one in report.failures),
    )

"""The tables of the papers on agents' memory, as far as they need no language model, each figure beside the papers'.

    python -m benchmarks.memory.papers [FOLDER] [--charts FOLDER]

FOLDER has the sets `evolving` and `facts24`; by default it is `../shared/data/memory`.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.memory import blind_spot as b, locomo, staleness as s
from benchmarks.memory.__main__ import DEFAULT, lines
from benchmarks.memory.encoders import MISSING, Embedder, at_hand
from benchmarks.memory.marker_free import is_marker_free
from benchmarks.memory.stores import BUDGET_TOKENS, CosineStore, K
from benchmarks.paper import plots
from benchmarks.paper.measures import wilson
from benchmarks.paper.text_tables import ABSENT, TextTable, figure

Line = Mapping[str, object]
TAUS = (0.75, 0.80, 0.85, 0.90, 0.95)
PAPER_COMPRESSION = {"code_mutation": 48.0, "config_migration": 47.5, "dependency_bump": 50.0, "api_evolution": 47.5}
PAPER_STALE = {  # stale-fact error when forced to answer, 7B model
    "cosine, MiniLM": "0.15 - 0.40",
    s.OURS: "about 0",
    f"{s.OURS}, retain all": "0.05 - 0.25",
}
PAPER_FACTS24 = {"cosine, MiniLM": "0.417", s.KEYED: "0"}
NOT_MEASURED = (
    "answers of a language model: accuracy, conditional fabrication, HyDE, and the conditions that rank or verify with "
    "one (advanced_rag, v6, v6+infer)",
    "the static benchmarks: their questions are not published",
)


def count(value: float, n: int) -> str:
    """Format a share with what it counts."""
    return f"{value:.3f} ({round(value * n)}/{n})"


def pair_tables(pairs: Sequence[Line], sweeps: Sequence[Line], embedders: Sequence[Embedder]) -> list[TextTable]:
    """Return what cosine says about labelled pairs, and both sweeps of thresholds."""
    figures = [b.labelled_pairs(pairs, embedder) for embedder in embedders]
    rows = [
        ("AUROC, duplicate against the rest", *(figure(f.auroc_rest) for f in figures), figure(b.PAPER_AUROC)),
        ("AUROC, duplicate against contradict", *(figure(f.auroc_contradict) for f in figures), ABSENT),
        *(
            (f"mean cosine, {label}", *(figure(f.means.get(label)) for f in figures), figure(b.PAPER_MEANS.get(label)))
            for label in b.LABELS
        ),
        ("greatest precision of a threshold", *(figure(f.ceiling.precision) for f in figures), figure(b.PAPER_CEILING)),
        ("its recall", *(figure(f.ceiling.recall) for f in figures), "0.312"),
        ("its threshold", *(figure(f.ceiling.tau) for f in figures), "0.980"),
        ("pairs from there on", *(str(f.ceiling.predicted) for f in figures), "15"),
    ]
    names = tuple(embedder.name for embedder in embedders)
    best = figures[-1]
    theirs = {(row["sweep"], row["tau"]): row for row in sweeps}
    return [
        TextTable(
            title=f"Cosine's blind spot: {len(pairs)} labelled pairs",
            columns=("", *names, "paper, n = 98"),
            rows=tuple(rows),
        ),
        TextTable(
            title=f"Sweep of the duplicate threshold, {best.encoder}",
            columns=("tau", "predicted", "precision", "recall", "paper: predicted", "precision", "recall"),
            rows=tuple(
                (
                    *(f"{step.tau:.2f}", str(step.predicted), figure(step.precision), figure(step.recall)),
                    *_cells(theirs.get(("tau_dup", step.tau)), "n_predicted", "precision", "recall"),
                )
                for step in best.duplicates
            ),
        ),
        TextTable(
            title=f"Sweep of the novel threshold, {best.encoder}",
            columns=("tau", "below", "false novel", "to be judged", "paper: below", "false novel", "to be judged"),
            rows=tuple(
                (
                    *(f"{step.tau:.2f}", str(step.below), figure(step.false_novel), figure(step.near)),
                    *_cells(theirs.get(("tau_novel", step.tau)), "n_below", "false_novel_rate", "near_band_share"),
                )
                for step in best.novel
            ),
        ),
    ]


def _cells(row: Line | None, *names: str) -> list[str]:
    return [f"{row[name]:g}" if row is not None and isinstance(row[name], int | float) else ABSENT for name in names]


def fact_tables(facts: Sequence[Line], embedders: Sequence[Embedder], systems: s.Systems) -> list[TextTable]:
    """Return the probe of 24 facts: the blind spot, and the stale values that each system gives."""
    figures = [b.facts(facts, embedder, centred=centred) for embedder in embedders for centred in (False, True)]
    rows = [
        ("mean cosine with the contradiction", *(figure(f.contradiction) for f in figures), "0.768"),
        ("mean cosine with the rephrasing", *(figure(f.rephrase) for f in figures), "0.843"),
        ("contradiction at least as near", *(f"{f.at_least_as_near} / {f.n}" for f in figures), "10 / 24"),
        ("AUROC, low cosine means supersession", *(figure(f.auroc) for f in figures), "0.613"),
    ]
    outcomes = {name: s.facts24(facts, make) for name, make in systems.items()} | {s.KEYED: s.facts24_keyed(facts)}
    stale = [
        (
            name,
            *(count(outcome.share(what, forced=True), len(facts)) for what in s.SINGLE),
            PAPER_FACTS24.get(name, ABSENT),
        )
        for name, outcome in outcomes.items()
    ]
    names = tuple(f.encoder for f in figures)
    return [
        TextTable(title="24 facts: the blind spot", columns=("", *names, "article (nomic, centred)"), rows=tuple(rows)),
        TextTable(
            title="24 facts: the first answer after an update",
            columns=("system", "right", "stale", "neither", "article: stale"),
            rows=tuple(stale),
        ),
    ]


def evolving_tables(outcomes: Mapping[str, s.Outcome], kept: Mapping[str, tuple[int, int]]) -> list[TextTable]:
    """Return what each system gives after facts have changed."""
    rows = []
    for name, outcome in outcomes.items():
        n = len(outcome.first)
        left, total = kept[name]
        forced = [count(outcome.share(what, forced=True), n) for what in s.SINGLE]
        packed = [figure(outcome.share(what, forced=False)) for what in ("gold", "both", "stale", "neither")]
        numbers = [f"{outcome.tokens:.0f}", f"{outcome.compression:.1f} %", f"{left}/{total}"]
        rows.append((name, *forced, PAPER_STALE.get(name, ABSENT), *packed, *numbers))
    columns = (
        *("system", "first: right", "first: stale", "first: neither", "paper: stale, forced"),
        *("packed: right alone", "both", "stale alone", "neither", "tokens", "compression", "look-alikes kept"),
    )
    notes = (
        f"At most {K} sentences and {BUDGET_TOKENS} tokens are packed. A reader that may abstain can answer only from "
        "`right alone` and `stale alone`. Of sentences with equal scores the older one comes first.",
    )
    return [TextTable(title="Evolving: what is given after a change", columns=columns, rows=tuple(rows), notes=notes)]


def family_table(scenarios: Sequence[Line], systems: s.Systems) -> TextTable:
    """Return our compression and answers by family."""
    rows = []
    for family in s.FAMILIES:
        pairs = [pair for pair in scenarios if pair["family"] == family]
        outcome, other = s.evolving(pairs, systems[s.OURS]), s.evolving(pairs, systems[f"{s.OURS}, retain all"])
        shares = [count(o.share(what, forced=True), len(pairs)) for o in (outcome, other) for what in ("gold", "stale")]
        rows.append((family, *shares, f"{outcome.compression:.1f} %", f"{PAPER_COMPRESSION[family]} %"))
    columns = ("family", "right", "stale", "retain all: right", "retain all: stale", "compression", "paper")
    return TextTable(title=f"Evolving by family: {s.OURS}", columns=columns, rows=tuple(rows))


def similarity_table(scenarios: Sequence[Line], look_alikes: Sequence[Line], embedder: Embedder) -> TextTable:
    """Return what replacing by similarity costs at each threshold."""
    rows = []
    for tau in TAUS:
        make = partial(CosineStore, embedder, gate=tau, replaces=True)
        outcome, (kept, total) = s.evolving(scenarios, make), s.kept(look_alikes, make)
        right = count(outcome.share("gold", forced=False), len(scenarios))
        rows.append((f"{tau:.2f}", right, f"{total - kept}/{total}"))
    return TextTable(
        title=f"Supersession by similarity, {embedder.name}: no threshold does both",
        columns=("tau", "changes: right alone", "look-alikes destroyed"),
        rows=tuple(rows),
    )


def draw(outcomes: Mapping[str, s.Outcome], folder: Path) -> list[Path]:
    """Draw right and stale answers, and growth, into a folder, which is created if necessary."""
    n = max(len(outcome.first) for outcome in outcomes.values())
    growth = [
        plots.ChartLine(name=name, values=outcomes[name].growth, tint=tint)
        for name, tint in ((s.OURS, 2), (f"{s.OURS}, retain all", 0))
    ]
    intervals = "95 % Wilson intervals."
    charts = {
        "right.svg": plots.draw_bars(
            f"Right first answers after a change, {n} questions", _bars(outcomes, "gold"), note=intervals
        ),
        "stale.svg": plots.draw_bars(
            f"Stale first answers after a change, {n} questions",
            _bars(outcomes, "stale"),
            note=f"{intervals} What is neither stale nor right is about something else, or empty.",
        ),
        "growth.svg": plots.draw_lines(
            "Active facts as turns arrive, as a share of all turns",
            [f"{tick:.1f}" for tick in s.GROWTH],
            growth,
            x_label="share of turns that arrived",
            note="The second half of the turns changes what the first half said.",
        ),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, chart in charts.items():
        (folder / name).write_text(chart, encoding="utf-8")
    return [folder / name for name in charts]


def _bars(outcomes: Mapping[str, s.Outcome], what: s.Given) -> list[plots.ChartBar]:
    bars = []
    for name, outcome in outcomes.items():
        value = outcome.share(what, forced=True)
        low, high = wilson(value, len(outcome.first))
        tint = 2 if name.startswith(s.OURS) else 0
        bars.append(plots.ChartBar(name=name, value=value, low=low, high=high, tint=tint))
    return bars


def markdown(table: TextTable) -> str:
    """Return a table as Markdown."""
    rule = ("---",) * len(table.columns)
    rows = [f"| {' | '.join(row)} |" for row in (table.columns, rule, *table.rows)]
    return "\n".join([f"### {table.title}", "", *rows, *(f"\n{note}" for note in table.notes), ""])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, and what they leave out. Return 1 if there is no data."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory.papers", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--charts", type=Path, metavar="FOLDER")
    options = parser.parse_args(arguments)
    names = ("scenarios", "lookalikes", "pairs", "paper_sweeps")
    every, look_alikes, pairs, sweeps = (lines(options.folder / "evolving" / f"{name}.jsonl") for name in names)
    facts = lines(options.folder / "facts24" / "facts.jsonl")
    scenarios = [pair for pair in every if is_marker_free(pair)]
    if not scenarios or not pairs or not facts:
        print(f"The sets `evolving` and `facts24` are not in {options.folder}. Name the folder that has them.")
        return 1
    embedders = at_hand([str(pair[name]) for pair in scenarios for name in ("a", "b", "question")])
    systems = s.systems(embedders)
    outcomes = {name: s.evolving(scenarios, make) for name, make in systems.items()}
    kept = {name: s.kept(look_alikes, make) for name, make in systems.items()}
    tables = [
        *pair_tables(pairs, sweeps, embedders),
        *fact_tables(facts, embedders, systems),
        *evolving_tables(outcomes, kept),
        family_table(scenarios, systems),
        similarity_table(scenarios, look_alikes, embedders[-1]),
    ]
    print("\n".join(map(markdown, tables)))
    for line in locomo.report():
        print(line)
    if len(embedders) == 1:
        print(MISSING)
    if len(scenarios) < len(every):
        print(f"{len(every) - len(scenarios)} scenarios are left out: their words tell which sentence is newer.")
    print("Left out: " + "; ".join(NOT_MEASURED) + ".")
    if options.charts is not None:
        print("Charts: " + ", ".join(map(str, draw(outcomes, options.charts))))
    return 0


if __name__ == "__main__":
    sys.exit(main())

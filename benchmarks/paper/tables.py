"""The paper's tables by number, each in the paper's shape with the figures measured here.

Promise: figures under `paper` are the paper's; everything else was measured in this run. If something needs a model or
data that are not available, the table says so.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from benchmarks.paper import paper_figures, verdicts
from benchmarks.paper.judge import CUTS, Judgement, Scores, by_hop, scores
from benchmarks.paper.lab import OURS, Lab, OpenSet
from benchmarks.paper.measures import Share, jaccard, share
from benchmarks.paper.models import NEEDS_ENCODER, NEEDS_GENERATOR, OVER_DENSE
from benchmarks.paper.rewording import questions_with_hints, structured_questions
from benchmarks.paper.sets import FURTHER, Question, find_collections
from benchmarks.paper.text_tables import ABSENT, TextTable, bare, figure, spread
from stream_car.ranking.analysis import STOP_WORDS, words

ABOUT: Mapping[int, str] = {
    2: "FinSuperQA",
    3: "the same, contaminated",
    4: "vocabulary gap",
    5: "GHSA, structured questions",
    6: "GHSA, free-form",
    7: "encoders",
    8: "styles of question",
    9: "T1 in three sets",
    10: "SCOTUS",
    11: "FDA",
    12: "a language model's answers",
    13: "real collections",
}
NUMBERS = tuple(ABOUT)
SYNTHETIC = ("finsuperqa", "cvepatchqa", "legalprecedentqa")
OPINIONS = "the opinions' texts in the directory `scotus`, which were not published with the paper"


def paper_table(number: int, lab: Lab) -> TextTable:
    """Measure a table by its number in the paper."""
    return TABLES[number](lab)


def _open(lab: Lab, name: str) -> OpenSet:
    (collection,) = find_collections([name])
    return lab.open(collection)


def _judge(
    open_set: OpenSet, system: str, questions: Sequence[Question] | None = None, limit: int | None = 5
) -> list[Judgement]:
    questions = open_set.material.questions if questions is None else questions
    return open_set.run(open_set.systems[system], questions, limit)


def _table_2(lab: Lab) -> TextTable:
    open_set = _open(lab, "finsuperqa")
    rows = []
    for name in open_set.systems:
        judgements = _judge(open_set, name)
        overall, hops = scores(judgements), by_hop(judgements)
        cells = (
            bare(overall.recall),
            figure(paper_figures.tca("finsuperqa", name)),
            bare(overall.own),
            bare(overall.tca),
            bare(overall.accurate),
            bare(overall.provenance),
        )
        by_hops = (f"{figure(paper_figures.hop('finsuperqa', name, hop))} / {bare(hops[hop].own)}" for hop in hops)
        rows.append((name, *cells, *by_hops))
    return TextTable(
        title="Table 2. FinSuperQA",
        columns=("system", "R@5", "paper TCA", "TCA", "TCA, Thm. 4", "Acc", "ProvRec", "T0", "T1", "T2", "T3"),
        rows=tuple(rows),
        notes=("Hops: the paper / here, TCA by the set's own scorer.", *_not_run(open_set)),
    )


def _table_3(lab: Lab) -> TextTable:
    name = "finsuperqa_contaminated"
    open_set = _open(lab, name)
    rows = []
    for system in ("two-stage", "two-stage + RSSG", OURS):
        judgements = _judge(open_set, system)
        overall, hops = scores(judgements), by_hop(judgements)
        paper = (figure(paper_figures.tca(name, system)), figure(paper_figures.hop(name, system, "T3")))
        rows.append((system, *paper, bare(overall.own), bare(hops["T3"].own), bare(overall.tca), bare(hops["T3"].tca)))
    return TextTable(
        title="Table 3. FinSuperQA, contaminated",
        columns=("system", "paper TCA", "paper T3", "TCA", "T3", "TCA, Thm. 4", "T3, Thm. 4"),
        rows=tuple(rows),
        notes=("A system that follows the rules cannot exceed 0.940 overall and 0.760 on T3 by the own scorer.",),
    )


def _table_4(lab: Lab) -> TextTable:
    rows = []
    for name in ("ghsa", "fda", "cvepatchqa", "legalprecedentqa", "cvepatchqa_freeform", "legalprecedentqa_freeform"):
        open_set = _open(lab, name)
        questions = [question for question in open_set.material.questions if question.anchor != question.gold]
        for measure, to_anchor, to_gold in _similarities(open_set, questions):
            places = 2 if measure == "BM25" else 3
            nearer = share([float(anchor > gold) for anchor, gold in zip(to_anchor, to_gold, strict=True)])
            gaps = paper_figures.GAP[measure]
            paper = " / ".join(figure(value, places) for value in gaps) if name == "ghsa" else ABSENT
            cells = (paper, figure(fmean(to_anchor), places), figure(fmean(to_gold), places))
            rows.append((open_set.material.collection.title, str(len(questions)), measure, *cells, spread(nearer)))
    return TextTable(
        title="Table 4. The vocabulary gap: similarity of a question to its anchor and to what controls it",
        columns=(
            "set",
            "n",
            "measure",
            "paper: anchor / controlling",
            "anchor",
            "controlling",
            "anchor nearer",
        ),
        rows=tuple(rows),
        notes=("The paper used 120 advisories and structured questions; here the set's own questions are used.",),
    )


def _similarities(open_set: OpenSet, questions: Sequence[Question]) -> list[tuple[str, list[float], list[float]]]:
    """Return each measure with the similarities to the anchors and to the gold, question by question."""

    def by(measure: Callable[[Question, str], float]) -> tuple[list[float], list[float]]:
        to_anchor = [max(measure(question, name) for name in question.anchor) for question in questions]
        return to_anchor, [max(measure(question, name) for name in question.gold) for question in questions]

    bm25 = open_set.baselines.bm25
    texts = {name: set(words(document.text)) for name, document in open_set.material.documents.items()}
    bm25_scores = {question.id: bm25.scores(question.text) for question in questions}

    def without_stop_words(question: Question, name: str) -> float:
        return jaccard(set(words(question.text)) - STOP_WORDS, texts[name] - STOP_WORDS)

    return [
        ("Jaccard", *by(lambda question, name: jaccard(words(question.text), texts[name]))),
        ("Jaccard, no stop words", *by(without_stop_words)),
        ("BM25", *by(lambda question, name: bm25.best(bm25_scores[question.id], [name]))),
    ]


def _table_5(lab: Lab) -> TextTable:
    open_set = _open(lab, "ghsa")
    questions = structured_questions(open_set.material.questions, open_set.material.documents)
    rows = []
    for name in _of_families(open_set, ("BM25", "dense", "HyDE", "regex probe", "two-stage", OURS)):
        measured = scores(_judge(open_set, name, questions, limit=None))
        paper = paper_figures.STRUCTURED.get(paper_figures.family(name))
        shares = paper[:3] if paper else (None,) * 3
        rows.append((name, *map(figure, shares), *map(bare, measured.at), *_ranks(paper, measured)))
    cuts = [f"TCA@{cut}" for cut in CUTS]
    return TextTable(
        title="Table 5. GHSA, structured questions: Is {package} still affected by {CVE}?",
        columns=("system", *(f"paper {cut}" for cut in cuts), *cuts, "mean rank", "median rank"),
        rows=tuple(rows),
        notes=("TCA@k here is the paper's: the gold is among the first k. Ranks: paper / here.", *_not_run(open_set)),
    )


def _ranks(paper: tuple[float, ...] | None, measured: Scores) -> tuple[str, str]:
    mean, median = paper[3:] if paper else (None, None)
    return (
        f"{figure(mean, 1)} / {figure(measured.mean_rank, 1)}",
        f"{figure(median, 0)} / {figure(measured.median_rank, 1)}",
    )


def _table_6(lab: Lab) -> TextTable:
    open_set = _open(lab, "ghsa")
    rows = []
    for name in _of_families(open_set, ("BM25", "dense", "HyDE", "cross-encoder", "two-stage", OURS)):
        measured = scores(_judge(open_set, name, limit=None))
        without_row = (None, paper_figures.tca("ghsa", name), None, None)
        paper = paper_figures.FREE_FORM.get(paper_figures.family(name), without_row)
        anchors = _anchor_recall(open_set, name)
        ranks = f"{figure(paper[3], 1)} / {figure(measured.mean_rank, 1)}"
        rows.append((name, *map(figure, paper[:3]), bare(anchors), spread(measured.at[0]), bare(measured.at[1]), ranks))
    return TextTable(
        title="Table 6. GHSA, free-form questions",
        columns=("system", "paper Disc@5", "paper TCA@5", "paper TCA@10", "Disc@5", "TCA@5", "TCA@10", "mean rank"),
        rows=tuple(rows),
        notes=(
            "Disc@5: the disclosure is among the first five of Stage 1. TCA@k is the paper's inclusion. A mean rank "
            "requires that every list contains its gold; Stream-CAR lists controlling documents only.",
            *_not_run(open_set),
        ),
    )


def _anchor_recall(open_set: OpenSet, name: str) -> Share | None:
    """Measure how often the anchors are among the first five of a system's Stage 1."""
    if name.startswith("dense (") or name == OVER_DENSE:
        system = open_set.systems[name if name != OVER_DENSE else _of_families(open_set, ("dense",))[0]]
        return share([float(set(each.anchor) <= set(system.rank(each, 5))) for each in open_set.material.questions])
    stage_1: Mapping[str, Callable[[str], list[str]]] = {
        "BM25": lambda text: open_set.baselines.bm25.rank(text, 5),
        "two-stage": lambda text: open_set.baselines.bm25.rank(text, 5),
        OURS: lambda text: [hit.id for hit in open_set.engine.engine.search(text, 5)],
    }
    if name not in stage_1:
        return None
    return share([float(set(each.anchor) <= set(stage_1[name](each.text))) for each in open_set.material.questions])


def _table_7(lab: Lab) -> TextTable:
    open_set = _open(lab, "ghsa")
    rows = [
        (name, bare(_anchor_recall(open_set, name)), spread(scores(_judge(open_set, name)).included))
        for name in _of_families(open_set, ("dense", "two-stage", OURS))
    ]
    return TextTable(
        title="Table 7. GHSA, free-form questions, by encoder",
        columns=("model", "Disc@5", "TCA@5"),
        rows=tuple(rows),
        notes=(
            "The paper: MiniLM 0.283, E5 small to large 0.264, 0.239, 0.214, BGE 0.252, 0.283, 0.283, two-stage 0.975.",
            *(() if lab.models.encoders else (f"encoders: not run: needs {NEEDS_ENCODER}, one per model",)),
        ),
    )


def _table_8(lab: Lab) -> TextTable:
    rows = []
    for name in ("ghsa", "cvepatchqa_freeform", "legalprecedentqa_freeform"):
        open_set = _open(lab, name)
        collection, questions = open_set.material.collection, open_set.material.questions
        two_stage = paper_figures.tca(name, "two-stage")
        stage_1 = paper_figures.FREE_FORM["two-stage"][0] if name == "ghsa" else two_stage
        rows.append(_style_row(open_set, "free-form", questions, (stage_1, two_stage)))
        if collection.hints:
            hinted = questions_with_hints(questions, open_set.material.documents, collection.hints)
            rows.append(_style_row(open_set, f"+ {collection.hints} hint", hinted, paper_figures.HINTS[name]))
    return TextTable(
        title="Table 8. Two-stage retrieval by set and style of question (inclusion@5)",
        columns=("set", "style", "paper Stage 1", "paper two-stage", "Stage 1", "BM25", "two-stage", OURS),
        rows=tuple(rows),
        notes=("Hints are made here, as the paper's scripts contain none: the product, or the surname of one party.",),
    )


def _style_row(
    open_set: OpenSet, style: str, questions: Sequence[Question], paper: tuple[float | None, float | None]
) -> tuple[str, ...]:
    bm25 = open_set.baselines.bm25
    stage_1 = share([float(set(each.anchor) <= set(bm25.rank(each.text, 5))) for each in questions])
    measured = [scores(_judge(open_set, name, questions)).included for name in ("BM25", "two-stage", OURS)]
    return (open_set.material.collection.title, style, *map(figure, paper), bare(stage_1), *map(bare, measured))


def _table_9(lab: Lab) -> TextTable:
    cells: dict[str, list[str]] = {name: [] for name in ("BM25", "TF-IDF", "two-stage", "two-stage + RSSG", OURS)}
    for folder in SYNTHETIC:
        open_set = _open(lab, folder)
        questions = [question for question in open_set.material.questions if question.hop == "T1"]
        for name, row in cells.items():
            measured = scores(_judge(open_set, name, questions))
            paper = figure(paper_figures.hop(folder, name, "T1"))
            row.append(f"{paper} / {bare(measured.own)} / {bare(measured.tca)}")
    return TextTable(
        title="Table 9. T1 in the three synthetic sets",
        columns=("system", "finance", "CVE", "legal"),
        rows=tuple((name, *row) for name, row in cells.items()),
        notes=("The paper / here by the own scorer / here by Theorem 4.",),
    )


def _table_10(lab: Lab) -> TextTable:
    title = "Table 10. SCOTUS overrulings"
    if not _has_opinions(lab):
        return TextTable(title=title, columns=("",), rows=((f"not run: needs {OPINIONS}",),))
    open_set = _open(lab, "scotus")
    rows = []
    for name in _of_families(open_set, ("BM25", "dense", "two-stage", OVER_DENSE, OURS)):
        paper = figure(paper_figures.tca("scotus", name))
        included = scores(_judge(open_set, name)).included
        rows.append((name, paper, bare(_anchor_recall(open_set, name)), spread(included)))
    columns = ("system", "paper TCA@5", "anchor@5", "TCA@5")
    return TextTable(title=title, columns=columns, rows=tuple(rows), notes=_not_run(open_set))


def _has_opinions(lab: Lab) -> bool:
    return all((lab.data / collection.folder / "documents.jsonl").is_file() for collection in FURTHER)


def _table_11(lab: Lab) -> TextTable:
    open_set = _open(lab, "fda")
    rows = []
    for name in _of_families(open_set, ("BM25", "dense", "two-stage", OURS)):
        anchors = bare(_anchor_recall(open_set, name)) if name in ("two-stage", OURS) else "-"
        included = scores(_judge(open_set, name)).included
        rows.append((name, figure(paper_figures.tca("fda", name)), anchors, spread(included)))
    return TextTable(
        title="Table 11. FDA recalls",
        columns=("system", "paper TCA@5", "Stage-1 @5", "TCA@5"),
        rows=tuple(rows),
        notes=(
            "The ceiling of TCA@5 is 0.790 over all 500 questions: 169 have the same words as another.",
            *_not_run(open_set),
        ),
    )


def _table_12(lab: Lab) -> TextTable:
    title = "Table 12. What a language model concludes from the documents that it gets (GHSA)"
    if lab.models.writer is None:
        return TextTable(title=title, columns=("",), rows=((f"not run: needs {NEEDS_GENERATOR}",),))
    open_set = _open(lab, "ghsa")
    rows = []
    for name in _of_families(open_set, ("dense", "two-stage", OURS)):
        included, by_verdict = verdicts.measure_verdicts(open_set, name, lab.models.writer)
        paper = paper_figures.MODEL_ANSWERS.get(paper_figures.family(name), (None,) * 4)
        pairs = zip(paper, (included, *by_verdict.values()), strict=True)
        rows.append((name, *(f"{figure(published)} / {bare(measured)}" for published, measured in pairs)))
    return TextTable(
        title=title,
        columns=("documents from", "patch recall@5", "says patched", "says not patched (wrong)", "uncertain"),
        rows=tuple(rows),
        notes=(
            "The paper, with GPT-4o-mini / here, with the given generator. The right answer is always: patched.",
            *_not_run(open_set),
        ),
    )


def _table_13(lab: Lab) -> TextTable:
    rows = []
    notes: tuple[str, ...] = ()
    for name in ("ghsa", "fda", *(("scotus",) if _has_opinions(lab) else ())):
        open_set = _open(lab, name)
        notes = _not_run(open_set)
        families = ("BM25", "dense", "two-stage", *(OVER_DENSE,) * (name == "scotus"), OURS)
        for system in _of_families(open_set, families):
            included = scores(_judge(open_set, system)).included
            cells = (str(included.n), figure(paper_figures.tca(name, system)), spread(included))
            rows.append((open_set.material.collection.title, system, *cells))
    if not _has_opinions(lab):
        rows.append(("SCOTUS", "all", "122", "BM25 0.893, dense 0.172, two-stage 0.926", f"not run: needs {OPINIONS}"))
    return TextTable(
        title="Table 13. Real collections (inclusion@5)",
        columns=("set", "system", "n", "paper TCA@5", "TCA@5"),
        rows=tuple(rows),
        notes=notes,
    )


def _of_families(open_set: OpenSet, families: Sequence[str]) -> list[str]:
    """Return the available systems of a table's rows; every encoder belongs to the dense row."""
    return [name for family in families for name in open_set.systems if paper_figures.family(name) == family]


def _not_run(open_set: OpenSet) -> tuple[str, ...]:
    return tuple(f"{missing.system}: not run: needs {missing.needs}" for missing in open_set.needs)


TABLES: Mapping[int, Callable[[Lab], TextTable]] = {
    2: _table_2,
    3: _table_3,
    4: _table_4,
    5: _table_5,
    6: _table_6,
    7: _table_7,
    8: _table_8,
    9: _table_9,
    10: _table_10,
    11: _table_11,
    12: _table_12,
    13: _table_13,
}

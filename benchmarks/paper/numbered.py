"""The paper's tables by their numbers, each in the paper's shape with what is measured here beside it.

Promise: a figure of the paper stands under `paper`; everything else was measured in this run. What would need
something that is not at hand says so instead.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from benchmarks.paper import paper, written
from benchmarks.paper.judging import CUTS, Judged, Scores, by_hop, scores
from benchmarks.paper.lab import OURS, Lab, Stand
from benchmarks.paper.measures import Share, jaccard, share
from benchmarks.paper.models import ENCODER, OVER_DENSE, WRITER
from benchmarks.paper.sets import FURTHER, Question, known
from benchmarks.paper.sheets import ABSENT, Sheet, bare, figure, spread
from benchmarks.paper.worded import hinted, templated
from stream_car.ranking.analysis import STOP_WORDS, words
from stream_car.ranking.lexical import LexicalRanker

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


def numbered(number: int, lab: Lab) -> Sheet:
    """A table by its number in the paper."""
    return TABLES[number](lab)


def _stand(lab: Lab, name: str) -> Stand:
    (collection,) = known([name])
    return lab.on(collection)


def _judged(
    stand: Stand, system: str, questions: Sequence[Question] | None = None, limit: int | None = 5
) -> list[Judged]:
    return stand.run(stand.systems[system], stand.material.questions if questions is None else questions, limit)


def _table_2(lab: Lab) -> Sheet:
    stand = _stand(lab, "finsuperqa")
    rows = []
    for name in stand.systems:
        judged = _judged(stand, name)
        said, hops = scores(judged), by_hop(judged)
        told = paper.tca("finsuperqa", name)
        cells = (
            bare(said.recall),
            figure(told),
            bare(said.own),
            bare(said.tca),
            bare(said.accurate),
            bare(said.provenance),
        )
        rows.append(
            (name, *cells, *(f"{figure(paper.hop('finsuperqa', name, hop))} / {bare(hops[hop].own)}" for hop in hops))
        )
    return Sheet(
        title="Table 2. FinSuperQA",
        columns=("system", "R@5", "paper TCA", "TCA", "TCA, Thm. 4", "Acc", "ProvRec", "T0", "T1", "T2", "T3"),
        rows=tuple(rows),
        notes=("Hops: the paper / here, TCA by the set's own scorer.", *_needs(stand)),
    )


def _table_3(lab: Lab) -> Sheet:
    stand = _stand(lab, "finsuperqa_contaminated")
    rows = []
    for name in ("two-stage", "two-stage + RSSG", OURS):
        judged = _judged(stand, name)
        said, hops = scores(judged), by_hop(judged)
        told = (
            figure(paper.tca("finsuperqa_contaminated", name)),
            figure(paper.hop("finsuperqa_contaminated", name, "T3")),
        )
        rows.append((name, *told, bare(said.own), bare(hops["T3"].own), bare(said.tca), bare(hops["T3"].tca)))
    return Sheet(
        title="Table 3. FinSuperQA, contaminated",
        columns=("system", "paper TCA", "paper T3", "TCA", "T3", "TCA, Thm. 4", "T3, Thm. 4"),
        rows=tuple(rows),
        notes=("Whoever follows the rules cannot exceed 0.940 overall and 0.760 on T3 by the own scorer.",),
    )


def _table_4(lab: Lab) -> Sheet:
    rows = []
    for name in ("ghsa", "fda", "cvepatchqa", "legalprecedentqa", "cvepatchqa_freeform", "legalprecedentqa_freeform"):
        stand = _stand(lab, name)
        asked = [one for one in stand.material.questions if one.anchor != one.gold]
        for measure, near, far in _gaps(stand, asked):
            places = 2 if measure == "BM25" else 3
            positive = share([float(one > other) for one, other in zip(near, far, strict=True)])
            told = " / ".join(figure(value, places) for value in paper.GAP[measure]) if name == "ghsa" else ABSENT
            cells = (told, figure(fmean(near), places), figure(fmean(far), places))
            rows.append((stand.material.collection.title, str(len(asked)), measure, *cells, spread(positive)))
    return Sheet(
        title="Table 4. The vocabulary gap: a question's words against its anchor's and against what controls it",
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
        notes=(
            "The paper's row is of 120 advisories and structured questions; here the set's own questions are asked.",
        ),
    )


def _gaps(stand: Stand, asked: Sequence[Question]) -> list[tuple[str, list[float], list[float]]]:
    """Each measure with its figures to the anchors and to the gold, question by question."""

    def by(measure: Callable[[Question, str], float]) -> tuple[list[float], list[float]]:
        near = [max(measure(one, name) for name in one.anchor) for one in asked]
        return near, [max(measure(one, name) for name in one.gold) for one in asked]

    spoken = {name: set(words(document.text)) for name, document in stand.material.documents.items()}
    found = _scores_of(stand.bench.bm25, asked)
    return [
        ("Jaccard", *by(lambda one, name: jaccard(words(one.text), spoken[name]))),
        (
            "Jaccard, no stop words",
            *by(lambda one, name: jaccard(set(words(one.text)) - STOP_WORDS, spoken[name] - STOP_WORDS)),
        ),
        ("BM25", *by(lambda one, name: stand.bench.bm25.best(found[one.id], [name]))),
    ]


def _scores_of(lexical: LexicalRanker, asked: Sequence[Question]) -> dict[str, list[float]]:
    return {one.id: lexical.scores(one.text) for one in asked}


def _table_5(lab: Lab) -> Sheet:
    stand = _stand(lab, "ghsa")
    asked = templated(stand.material.questions, stand.material.documents)
    rows = []
    for name in _of_table(stand, ("BM25", "dense", "HyDE", "regex probe", "two-stage", OURS)):
        said = scores(_judged(stand, name, asked, limit=None))
        told = paper.STRUCTURED.get(paper.family(name))
        rows.append((name, *map(figure, told[:3] if told else (None,) * 3), *map(bare, said.at), *_ranks(told, said)))
    cuts = [f"TCA@{cut}" for cut in CUTS]
    return Sheet(
        title="Table 5. GHSA, structured questions: Is {package} still affected by {CVE}?",
        columns=("system", *(f"paper {cut}" for cut in cuts), *cuts, "mean rank", "median rank"),
        rows=tuple(rows),
        notes=("TCA@k here is the paper's: the gold is among the first k. Ranks: paper / here.", *_needs(stand)),
    )


def _ranks(told: tuple[float, ...] | None, said: Scores) -> tuple[str, str]:
    mean, median = told[3:] if told else (None, None)
    return f"{figure(mean, 1)} / {figure(said.mean_rank, 1)}", f"{figure(median, 0)} / {figure(said.median_rank, 1)}"


def _table_6(lab: Lab) -> Sheet:
    stand = _stand(lab, "ghsa")
    rows = []
    for name in _of_table(stand, ("BM25", "dense", "HyDE", "cross-encoder", "two-stage", OURS)):
        said = scores(_judged(stand, name, limit=None))
        told = paper.FREE_FORM.get(paper.family(name), (None, paper.tca("ghsa", name), None, None))
        anchors = _anchor_recall(stand, name)
        ranks = f"{figure(told[3], 1)} / {figure(said.mean_rank, 1)}"
        rows.append((name, *map(figure, told[:3]), bare(anchors), spread(said.at[0]), bare(said.at[1]), ranks))
    return Sheet(
        title="Table 6. GHSA, free-form questions",
        columns=("system", "paper Disc@5", "paper TCA@5", "paper TCA@10", "Disc@5", "TCA@5", "TCA@10", "mean rank"),
        rows=tuple(rows),
        notes=(
            "Disc@5: the disclosure is among the first five of Stage 1. TCA@k is the paper's inclusion. A mean rank is "
            "given where every list holds its gold; Stream-CAR lists controlling documents only.",
            *_needs(stand),
        ),
    )


def _anchor_recall(stand: Stand, name: str) -> Share | None:
    ranks: Mapping[str, Callable[[str], list[str]]] = {
        "BM25": lambda text: stand.bench.bm25.rank(text, 5),
        "two-stage": lambda text: stand.bench.bm25.rank(text, 5),
        OURS: lambda text: [one.id for one in stand.ours.engine.relevance(text, 5)],
    }
    if name.startswith("dense (") or name == OVER_DENSE:
        system = stand.systems[name if name != OVER_DENSE else _of_table(stand, ("dense",))[0]]
        return share([float(set(one.anchor) <= set(system.rank(one, 5))) for one in stand.material.questions])
    if name not in ranks:
        return None
    return share([float(set(one.anchor) <= set(ranks[name](one.text))) for one in stand.material.questions])


def _table_7(lab: Lab) -> Sheet:
    stand = _stand(lab, "ghsa")
    rows = [
        (name, bare(_anchor_recall(stand, name)), spread(scores(_judged(stand, name)).included))
        for name in _of_table(stand, ("dense", "two-stage", OURS))
    ]
    return Sheet(
        title="Table 7. GHSA, free-form questions, by encoder",
        columns=("model", "Disc@5", "TCA@5"),
        rows=tuple(rows),
        notes=(
            "The paper: MiniLM 0.283, E5 small to large 0.264, 0.239, 0.214, BGE 0.252, 0.283, 0.283, two-stage 0.975.",
            *(() if lab.models.encoders else (f"encoders: not run: needs {ENCODER}, one for each model",)),
        ),
    )


def _table_8(lab: Lab) -> Sheet:
    rows = []
    for name in ("ghsa", "cvepatchqa_freeform", "legalprecedentqa_freeform"):
        stand = _stand(lab, name)
        collection, questions = stand.material.collection, stand.material.questions
        told = (
            paper.FREE_FORM["two-stage"][0] if name == "ghsa" else paper.tca(name, "two-stage"),
            paper.tca(name, "two-stage"),
        )
        rows.append(_styled(stand, "free-form", questions, told))
        if collection.hints:
            asked = hinted(questions, stand.material.documents, collection.hints)
            rows.append(_styled(stand, f"+ {collection.hints} hint", asked, paper.HINTED[name]))
    return Sheet(
        title="Table 8. Two-stage retrieval by set and style of question (inclusion@5)",
        columns=("set", "style", "paper Stage 1", "paper two-stage", "Stage 1", "BM25", "two-stage", OURS),
        rows=tuple(rows),
        notes=("Hints are made here (the paper's scripts do not hold theirs): the product, or one party's surname.",),
    )


def _styled(
    stand: Stand, style: str, asked: Sequence[Question], told: tuple[float | None, float | None]
) -> tuple[str, ...]:
    stage_1 = share([float(set(one.anchor) <= set(stand.bench.bm25.rank(one.text, 5))) for one in asked])
    found = [scores(_judged(stand, name, asked)).included for name in ("BM25", "two-stage", OURS)]
    return (stand.material.collection.title, style, *map(figure, told), bare(stage_1), *map(bare, found))


def _table_9(lab: Lab) -> Sheet:
    cells: dict[str, list[str]] = {name: [] for name in ("BM25", "TF-IDF", "two-stage", "two-stage + RSSG", OURS)}
    for folder in SYNTHETIC:
        stand = _stand(lab, folder)
        asked = [one for one in stand.material.questions if one.hop == "T1"]
        for name, row in cells.items():
            said = scores(_judged(stand, name, asked))
            row.append(f"{figure(paper.hop(folder, name, 'T1'))} / {bare(said.own)} / {bare(said.tca)}")
    return Sheet(
        title="Table 9. T1 in the three synthetic sets",
        columns=("system", "finance", "CVE", "legal"),
        rows=tuple((name, *row) for name, row in cells.items()),
        notes=("The paper / here by the own scorer / here by Theorem 4.",),
    )


def _table_10(lab: Lab) -> Sheet:
    title, columns = "Table 10. SCOTUS overrulings", ("system", "paper TCA@5", "anchor@5", "TCA@5")
    if not _has_opinions(lab):
        return Sheet(title=title, columns=("",), rows=((f"not run: needs {OPINIONS}",),))
    stand = _stand(lab, "scotus")
    rows = []
    for name in _of_table(stand, ("BM25", "dense", "two-stage", OVER_DENSE, OURS)):
        told = figure(paper.tca("scotus", name))
        rows.append((name, told, bare(_anchor_recall(stand, name)), spread(scores(_judged(stand, name)).included)))
    return Sheet(title=title, columns=columns, rows=tuple(rows), notes=_needs(stand))


def _has_opinions(lab: Lab) -> bool:
    return all((lab.data / one.folder / "documents.jsonl").is_file() for one in FURTHER)


def _table_11(lab: Lab) -> Sheet:
    stand = _stand(lab, "fda")
    rows = []
    for name in _of_table(stand, ("BM25", "dense", "two-stage", OURS)):
        anchors = bare(_anchor_recall(stand, name)) if name in ("two-stage", OURS) else "-"
        rows.append((name, figure(paper.tca("fda", name)), anchors, spread(scores(_judged(stand, name)).included)))
    return Sheet(
        title="Table 11. FDA recalls",
        columns=("system", "paper TCA@5", "Stage-1 @5", "TCA@5"),
        rows=tuple(rows),
        notes=("The ceiling of TCA@5 is 0.790 over all 500 questions: 169 share their words.", *_needs(stand)),
    )


def _table_12(lab: Lab) -> Sheet:
    title = "Table 12. What a language model says of the documents that it is handed (GHSA)"
    if lab.models.writer is None:
        return Sheet(title=title, columns=("",), rows=((f"not run: needs {WRITER}",),))
    stand = _stand(lab, "ghsa")
    rows = []
    for name in _of_table(stand, ("dense", "two-stage", OURS)):
        handed, said = written.read(stand, name, lab.models.writer)
        told = paper.READ.get(paper.family(name), (None,) * 4)
        rows.append((name, *(f"{figure(a)} / {bare(b)}" for a, b in zip(told, (handed, *said.values()), strict=True))))
    return Sheet(
        title=title,
        columns=("handed over by", "patch recall@5", "says patched", "says not patched (wrong)", "uncertain"),
        rows=tuple(rows),
        notes=(
            "The paper, with GPT-4o-mini / here, with the generator at hand. Every gold answer is: patched.",
            *_needs(stand),
        ),
    )


def _table_13(lab: Lab) -> Sheet:
    rows = []
    needs: tuple[str, ...] = ()
    for name in ("ghsa", "fda", *(("scotus",) if _has_opinions(lab) else ())):
        stand = _stand(lab, name)
        needs = _needs(stand)
        for system in _of_table(stand, ("BM25", "dense", "two-stage", *(OVER_DENSE,) * (name == "scotus"), OURS)):
            said = scores(_judged(stand, system)).included
            rows.append(
                (stand.material.collection.title, system, str(said.n), figure(paper.tca(name, system)), spread(said))
            )
    if not _has_opinions(lab):
        rows.append(("SCOTUS", "all", "122", "BM25 0.893, dense 0.172, two-stage 0.926", f"not run: needs {OPINIONS}"))
    return Sheet(
        title="Table 13. Real collections (inclusion@5)",
        columns=("set", "system", "n", "paper TCA@5", "TCA@5"),
        rows=tuple(rows),
        notes=needs,
    )


OPINIONS = "the opinions' texts in the directory `scotus`, which were not published with the paper"


def _of_table(stand: Stand, wanted: Sequence[str]) -> list[str]:
    """The systems at hand that a table has, every encoder for its dense row."""
    return [name for family in wanted for name in stand.systems if paper.family(name) == family]


def _needs(stand: Stand) -> tuple[str, ...]:
    return tuple(f"{one.system}: not run: needs {one.needs}" for one in stand.needs)


TABLES: Mapping[int, Callable[[Lab], Sheet]] = {
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

"""A picture of one answer: how near each anchor is to the words of the question, and what controls it."""

from stream_car.pictures import plots
from stream_car.queries.answers import Answer
from stream_car.ranking.lexical import bm25


def of_answer(answer: Answer) -> str:
    """Definition 4 for one answer: each group's anchor against the best of what controls it.

    Scores are BM25 over the documents that the answer shows, so they compare with one another only.
    """
    shown = {
        one.id: f"{one.title} {one.text}"
        for group in answer.groups
        for one in (group.anchor, *(item.document for item in group.controlling), *group.passed)
    }
    lexical = bm25(shown)
    scores = lexical.scores(answer.question)
    points = [
        plots.Point(
            x=lexical.best(scores, [group.anchor.id]),
            y=lexical.best(scores, [item.document.id for item in group.controlling]),
            name=f"{group.anchor.id} -> {', '.join(item.document.id for item in group.controlling) or 'nothing'}",
            tint=2 if group.anchor.active else 0,
        )
        for group in answer.groups
    ]
    return plots.scatter(
        answer.question,
        points,
        across="BM25 score of the anchor",
        up="best score of what controls it",
        note="Beneath the diagonal the anchor is void, and what controls it says less of your words.",
        named=True,
    )

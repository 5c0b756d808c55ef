"""A picture of one answer: how relevant each anchor is to the question, and how relevant what controls it is."""

from stream_car.pictures.scatter import ChartPoint, draw_scatter
from stream_car.queries.answers import Answer
from stream_car.ranking.lexical import bm25


def draw_answer(answer: Answer) -> str:
    """Draw Definition 4 for one answer: the score of each anchor against the best score of what controls it.

    Scores are BM25 over the documents in the answer, so they compare only with one another.
    """
    texts = {
        evidence.id: f"{evidence.title} {evidence.text}"
        for group in answer.groups
        for evidence in (group.anchor, *(item.document for item in group.controlling), *group.superseded)
    }
    lexical = bm25(texts)
    scores = lexical.scores(answer.question)
    points = [
        ChartPoint(
            x=lexical.best(scores, [group.anchor.id]),
            y=lexical.best(scores, [item.document.id for item in group.controlling]),
            name=f"{group.anchor.id} -> {', '.join(item.document.id for item in group.controlling) or 'nothing'}",
            tint=2 if group.anchor.status == "in_force" else 0,
        )
        for group in answer.groups
    ]
    return draw_scatter(
        answer.question,
        points,
        x_label="BM25 score of the anchor",
        y_label="best score of what controls it",
        note="Below the diagonal the anchor is superseded, and what controls it has fewer of your words.",
        numbered=True,
    )

"""The TF-IDF baseline scores as its formula says, counted by hand."""

from math import log, sqrt

import pytest

from benchmarks.paper.tfidf import tfidf

TEXTS = {"a": "red fish", "b": "red red bird bird", "c": "cat"}


def test_tfidf_is_a_cosine_but_for_the_questions_length() -> None:
    red, other = 1 + log(4 / 3), 1 + log(4 / 2)

    scores = tfidf(TEXTS).scores("red")

    assert scores == pytest.approx(
        [red * red / sqrt(red**2 + other**2), red * 2 * red / sqrt((2 * red) ** 2 + (2 * other) ** 2), 0]
    )

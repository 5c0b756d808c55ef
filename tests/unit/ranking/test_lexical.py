"""The lexical baseline scores as its formula says, counted by hand."""

from math import log

import pytest

from stream_car.ranking.lexical import bm25

TEXTS = {"a": "red fish", "b": "red red bird bird", "c": "cat"}


def test_bm25_weighs_a_word_by_rarity_count_and_length() -> None:
    """Average length 7/3; `red` stands in two of three documents."""
    idf = log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    damp_a, damp_b = 1.5 * (0.25 + 0.75 * 2 / (7 / 3)), 1.5 * (0.25 + 0.75 * 4 / (7 / 3))

    scores = bm25(TEXTS).scores("red")

    assert scores == pytest.approx([idf * 2.5 / (1 + damp_a), idf * 2 * 2.5 / (2 + damp_b), 0.0])


def test_equal_scores_keep_the_order_of_the_documents_and_nothing_is_left_out() -> None:
    ranked = bm25({"z": "x", "y": "x", "w": "other"})

    assert ranked.rank("x") == ["z", "y", "w"]
    assert ranked.rank("x", 1) == ["z"]
    assert ranked.rank("nothing") == ["z", "y", "w"]

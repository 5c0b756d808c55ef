"""The score of one document."""

import pytest

from stream_car.ranking.bm25 import Analysed, Weighed, counted, idf, joined, score, weighed
from stream_car.ranking.settings import Settings

SETTINGS = Settings(k1=1.0, b=0.5, pairs=0.5, names=0.5)


def document(text: str, names: str = "") -> Analysed:
    return Analysed(joined(text.split()), joined(names.split()), len(text.split()))


def question(text: str, *names: str, settings: Settings = SETTINGS, average: float = 4.0) -> Weighed:
    return weighed(text.split(), names, lambda term: 1.0 + (term == "rare"), lambda name: 8.0, average, settings)


def test_rarer_terms_weigh_more() -> None:
    assert idf(100, 1) > idf(100, 50) > idf(100, 100) > 0


def test_a_score_is_the_sum_that_the_formula_says() -> None:
    """Of average length the damping is k1 = 1: a term of weight 1 said n times gives 2 n / (n + 1)."""
    assert score(question("x"), document("x a b c"), SETTINGS) == pytest.approx(1.0)
    assert score(question("x"), document("x x x c"), SETTINGS) == pytest.approx(1.5)
    assert score(question("x x"), document("x a b c"), SETTINGS) == pytest.approx(2.0)
    assert score(question("x"), document("x a b c d e f g"), SETTINGS) == pytest.approx(2 / 2.5)
    assert score(question("x"), document("xx ax xa c"), SETTINGS) == 0.0


def test_two_neighbouring_words_add_a_share_of_the_rarer_one() -> None:
    apart = score(question("x rare"), document("x a rare b"), SETTINGS)
    together = score(question("x rare"), document("a x rare b"), SETTINGS)

    assert apart == pytest.approx(1.0 + 2.0)
    assert together == pytest.approx(apart + 0.5 * 2.0)
    assert score(question("x rare", settings=Settings(k1=1.0, pairs=0.0)), document("a x rare b"), SETTINGS) == apart


def test_a_name_adds_a_share_of_its_rarity_however_long_the_document() -> None:
    assert score(question("y", "cve1"), document("x " * 50, "cve1 other"), SETTINGS) == pytest.approx(4.0)
    assert score(question("y", "cve1"), document("x", "cve11"), SETTINGS) == 0.0


def test_terms_beyond_the_limit_do_not_count() -> None:
    assert len(counted([f"t{n}" for n in range(1000)] + ["t1"])) == 256
    assert counted(["a", "b", "a"]) == {"a": 2, "b": 1}

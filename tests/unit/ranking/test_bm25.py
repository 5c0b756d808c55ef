"""The score of one document."""

from itertools import pairwise

import pytest

from stream_car.ranking.bm25 import (
    COMMON,
    DocumentTerms,
    QueryWeights,
    count_terms,
    idf,
    join_terms,
    query_weights,
    rarest_terms,
    score,
    terms_to_search,
)
from stream_car.ranking.settings import Settings

SETTINGS = Settings(k1=1.0, b=0.5, pairs=0.5, names=0.5)
DOCUMENTS = 1000
USUAL, RARE, NAMED = idf(DOCUMENTS, 300), idf(DOCUMENTS, 3), idf(DOCUMENTS, 1)


def document(text: str, names: str = "") -> DocumentTerms:
    return DocumentTerms(join_terms(text.split()), join_terms(names.split()), len(text.split()))


def question(text: str, *names: str, settings: Settings = SETTINGS, average: float = 4.0) -> QueryWeights:
    words = text.split()
    having = {term: 3 if term == "rare" else 300 for term in words}
    return query_weights(words, having, dict.fromkeys(names, 1), DOCUMENTS, average, settings)


def test_rarer_terms_weigh_more() -> None:
    assert idf(100, 1) > idf(100, 50) > idf(100, 100) > 0


def test_a_score_is_the_sum_that_the_formula_says() -> None:
    """Of average length the damping is k1 = 1: a term of weight 1 said n times gives 2 n / (n + 1)."""
    assert score(question("x"), document("x a b c"), SETTINGS) == pytest.approx(USUAL)
    assert score(question("x"), document("x x x c"), SETTINGS) == pytest.approx(1.5 * USUAL)
    assert score(question("x x"), document("x a b c"), SETTINGS) == pytest.approx(2.0 * USUAL)
    assert score(question("x"), document("x a b c d e f g"), SETTINGS) == pytest.approx(2 / 2.5 * USUAL)
    assert score(question("x"), document("xx ax xa c"), SETTINGS) == 0.0


def test_two_neighbouring_words_add_a_share_of_the_rarer_one() -> None:
    apart = score(question("x rare"), document("x a rare b"), SETTINGS)
    together = score(question("x rare"), document("a x rare b"), SETTINGS)

    assert apart == pytest.approx(USUAL + RARE)
    assert together == pytest.approx(apart + 0.5 * RARE)
    assert score(question("x rare", settings=Settings(k1=1.0, pairs=0.0)), document("a x rare b"), SETTINGS) == apart


def test_a_name_adds_a_share_of_its_rarity_however_long_the_document() -> None:
    assert score(question("y", "cve1"), document("x " * 50, "cve1 other"), SETTINGS) == pytest.approx(0.5 * NAMED)
    assert score(question("y", "cve1"), document("x", "cve11"), SETTINGS) == 0.0


@pytest.mark.parametrize("length", [1, 4, 8, 9, 12, 30])
def test_how_many_words_are_asked_for_does_not_change_what_each_is_worth(length: int) -> None:
    """Few words are looked for one by one, many in one pass."""
    text = document("w0 w1 a w1 w2 w20 w0 w0 w9 w9")
    words = [f"w{n}" for n in range(length)]
    alone = [score(question(word), text, SETTINGS) for word in words]
    together = [score(question(f"{a} {b}"), text, SETTINGS) for a, b in pairwise(words)]
    pairs = [both - a - b for both, a, b in zip(together, alone, alone[1:], strict=False)]

    assert score(question(" ".join(words)), text, SETTINGS) == pytest.approx(sum(alone) + sum(pairs))


def test_words_that_no_document_has_and_of_many_the_commonest_do_not_count() -> None:
    assert rarest_terms({"b": 3, "a": 0, "c": 1}, 2) == {"b": 3, "c": 1}
    assert rarest_terms({"d": 9, "b": 3, "a": 1, "c": 3}, 2) == {"b": 3, "a": 1}
    assert count_terms(["a", "x", "b", "a"], {"b": 3, "a": 1}) == {"b": 1, "a": 2}


def test_the_commonest_words_propose_nothing_where_they_tell_little() -> None:
    having = {"axios": 60, "memory": 20_000, "report": 900_000, "use": 950_000}
    counts = dict.fromkeys(having, 1)

    assert terms_to_search(counts, having, 1_000_000) == {"axios": 1, "memory": 1}
    alone = {"report": 900_000, "use": 950_000}
    assert "report" in terms_to_search(dict.fromkeys(alone, 1), alone, 1_000_000)  # most of what the question says
    few = {word: number // 100 for word, number in having.items()}
    assert few["use"] < COMMON and terms_to_search(counts, few, 10_000) == counts

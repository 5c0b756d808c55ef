"""Each figure by hand, on cases small enough to count on one's fingers."""

import pytest

from benchmarks.paper import measures

CHAIN = measures.superseders([("old", "mid"), ("mid", "new")])


def test_supersession_is_transitive() -> None:
    assert {old: set(above) for old, above in CHAIN.items()} == {"old": {"mid", "new"}, "mid": {"new"}}


def test_the_wilson_interval_of_the_papers_fda_figure_is_the_papers() -> None:
    """Table 11: 387 of 500, [0.735, 0.808]; 2 of 500, [0.001, 0.014]."""
    low, high = measures.wilson(387 / 500, 500)
    assert (round(low, 3), round(high, 3)) == (0.735, 0.808)

    low, high = measures.wilson(2 / 500, 500)
    assert (round(low, 3), round(high, 3)) == (0.001, 0.014)


def test_of_no_questions_nothing_is_known() -> None:
    assert measures.share([]) == measures.Share(0.0, 0.0, 1.0, 0)


@pytest.mark.parametrize(
    ("top", "holds"),
    [
        (["new"], True),
        (["old", "new"], True),  # the last of a chain answers for all of it
        (["old", "mid", "new"], True),
        (["old", "mid"], False),  # mid is superseded, and gold is not there
        (["old"], False),
        ([], False),
        (["new", "other-old"], False),  # another matter's superseded document stands alone
    ],
)
def test_theorem_4_asks_for_the_frontier_and_for_every_superseder(top: list[str], holds: bool) -> None:
    above = {**CHAIN, "other-old": frozenset({"other-new"})}

    assert measures.tca(["new"], top, above) is holds


def test_the_own_scorer_asks_for_the_direct_superseder_of_the_case_alone() -> None:
    case = {"old": "mid", "mid": "new"}

    assert not measures.keeps_case(["old", "new"], case)
    assert measures.keeps_case(["mid", "new", "other-old"], case)


def test_an_exception_answers_before_a_blackout_and_a_blackout_before_an_approval() -> None:
    assert measures.answer_of({"blackout_announced", "emergency_exception"}) == "compliant"
    assert measures.answer_of({"blackout_announced", "pre_clearance_approved"}) == "non_compliant"
    assert measures.answer_of({"pre_clearance_approved"}) == "active"
    assert measures.answer_of(set()) == "requires_review"


def test_recall_and_rank_count_gold_documents() -> None:
    assert measures.recall(["a", "b"], ["b", "c"]) == 0.5
    assert measures.rank(["a", "b"], ["c", "b", "a"]) == 2
    assert measures.rank(["a"], ["c"]) is None


def test_jaccard_shares_words() -> None:
    assert measures.jaccard(["a", "b", "b"], ["b", "c"]) == pytest.approx(1 / 3)
    assert measures.jaccard([], []) == 0.0


def test_of_the_same_words_only_as_many_answers_are_right_as_there_are_places() -> None:
    questions = [("same", [str(number)]) for number in range(7)] + [("other", ["x"])]

    assert measures.same_words_ceiling(questions, 5) == 6 / 8


def test_the_same_words_with_the_same_gold_are_right_together() -> None:
    assert measures.same_words_ceiling([("same", ["a"])] * 9, 1) == 1.0

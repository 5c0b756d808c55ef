"""The order of an answer's groups, and when looking further cannot change it."""

from itertools import permutations
from math import exp
from random import Random

import pytest

from stream_car.ranking.anchor_order import (
    STEP,
    AnchorPlan,
    AnchorSummary,
    Hit,
    add_shares,
    most_probable,
    plan_anchors,
)

MOVED = 3.0


def ask(scores: dict[str, float], moved: str = "", *, k: int = 2, depth: int = 100, gone: str = "") -> AnchorPlan:
    """Anchors a, b, ...; those in `moved` are controlled by another document, those in `gone` are not here."""
    steps = plan_anchors([Hit(*item) for item in scores.items()], k=k, depth=depth, superseded_bonus=MOVED)
    summaries: dict[str, AnchorSummary | None] | None = None
    try:
        while True:
            batch = steps.send(summaries)
            summaries = {name: None if name in gone else summary(name, is_moved=name in moved) for name in batch}
    except StopIteration as stop:
        done: AnchorPlan = stop.value
        return done


def summary(name: str, *, is_moved: bool) -> AnchorSummary:
    return AnchorSummary(name, is_moved, (f"{name}'" if is_moved else name,), (f"s={name}",))


def order(plan: AnchorPlan) -> str:
    return "".join(summary.anchor for _, summary in plan.examined)


def test_groups_stay_as_relevance_has_them_where_nothing_moved() -> None:
    assert order(ask({"a": 9.0, "b": 5.0, "c": 5.0})) == "abc"
    assert order(ask({"a": 9.0, "b": 5.0, "c": 5.0}, "abc")) == "abc"


def test_what_moved_goes_before_its_rivals_but_not_before_a_clear_lead() -> None:
    assert order(ask({"a": 9.0, "b": 9.0, "c": 7.0}, "c")) == "cab"
    assert order(ask({"a": 9.0, "b": 5.0, "c": 3.0}, "c")) == "acb"
    assert order(ask({"a": 9.0, "b": 6.0}, "b")) == "ab"


def test_anchors_that_are_not_here_do_not_count() -> None:
    assert order(ask({"a": 9.0, "b": 5.0, "c": 4.0}, gone="a")) == "bc"


def test_looking_ends_where_nothing_further_could_enter() -> None:
    clear = {f"{n}": 100.0 - n for n in range(STEP)} | {"x": 50.0}
    near = {f"{n}": 100.0 - n for n in range(STEP)} | {"x": 97.0}

    assert len(ask(clear).examined) == STEP
    assert ask(clear).is_settled and ask(clear).remaining == (Hit("x", 50.0),)
    assert len(ask(near).examined) == STEP + 1


def test_depth_bounds_what_is_looked_at() -> None:
    flat = {f"{n}": 1.0 for n in range(50)}

    assert len(ask(flat, depth=25, k=30).examined) == 25
    assert ask(flat, depth=25, k=30).remaining == ()


def test_whatever_is_left_could_not_have_changed_the_answer() -> None:
    """Against looking at everything: the same documents, in the same order."""
    random = Random(1)
    for _ in range(500):
        names = [chr(97 + n) for n in range(26)]
        scores = dict(
            zip(
                names,
                sorted((random.choice((1, 2, 5, 9)) * random.random() * 9 for _ in names), reverse=True),
                strict=True,
            )
        )
        moved = "".join(name for name in names if random.random() < 0.3)
        k = random.randint(1, 6)
        early = ask(scores, moved, k=k)
        merits = {name: scores[name] + MOVED * (name in moved) for name in names}
        best = sorted(names, key=lambda name: (-merits[name], names.index(name)))
        assert order(early)[:k] == "".join(best[:k])


def test_beliefs_are_the_posterior_of_odds_with_the_prior_of_what_moved() -> None:
    plan = ask({"a": 2.0, "b": 1.0}, "b")

    assert order(plan) == "ba"
    assert plan.probabilities == pytest.approx((exp(4) / (exp(4) + exp(2)), exp(2) / (exp(4) + exp(2))))
    assert ask({}).probabilities == ()
    assert ask({"a": 900.0}).probabilities == (1.0,)


def test_beliefs_leave_room_for_what_was_not_looked_at() -> None:
    plan = ask({f"{n}": 10.0 for n in range(STEP)} | {"x": 1.0})

    assert sum(plan.probabilities) == pytest.approx(STEP / (STEP + exp(-9)))


def test_anchors_of_one_scope_are_believed_together() -> None:
    first, second = (
        AnchorSummary(name, is_superseded=False, documents=(name,), scopes=("s=1", *more))
        for name, more in (("a", ()), ("b", ("t=1",)))
    )
    third = AnchorSummary("c", is_superseded=False, documents=())
    posterior: dict[str, float] = {}

    add_shares(posterior, [(first, 0.4), (second, 0.4), (third, 0.2)], "none")

    assert posterior == pytest.approx({"s=1": 0.6, "none": 0.2, "t=1": 0.2})
    assert [scope for scope, _ in most_probable(posterior, 2)] == ["s=1", "none"]


def test_equals_are_told_in_the_order_of_stage_1() -> None:
    for names in permutations("abc"):
        assert order(ask(dict.fromkeys(names, 1.0))) == "".join(names)

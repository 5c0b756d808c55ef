"""The order of an answer's groups, and when looking further cannot change it."""

from itertools import permutations
from math import exp
from random import Random

import pytest

from stream_car.ranking.anchor_order import STEP, Course, Gist, Hit, by_scope, course

MOVED = 3.0


def ask(scores: dict[str, float], moved: str = "", *, k: int = 2, depth: int = 100, gone: str = "") -> Course:
    """Anchors a, b, ...; those in `moved` are controlled by another document, those in `gone` are not here."""
    steps = course([Hit(*item) for item in scores.items()], k=k, depth=depth, moved=MOVED)
    gists: dict[str, Gist | None] | None = None
    try:
        while True:
            batch = steps.send(gists)
            gists = {
                one: None
                if one in gone
                else Gist(one, one in moved, (one + "'" if one in moved else one,), (f"s={one}",))
                for one in batch
            }
    except StopIteration as stop:
        done: Course = stop.value
        return done


def order(said: Course) -> str:
    return "".join(gist.anchor for _, gist in said.looked)


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

    assert len(ask(clear).looked) == STEP
    assert ask(clear).settled and ask(clear).left == (Hit("x", 50.0),)
    assert len(ask(near).looked) == STEP + 1


def test_depth_bounds_what_is_looked_at() -> None:
    flat = {f"{n}": 1.0 for n in range(50)}

    assert len(ask(flat, depth=25, k=30).looked) == 25
    assert ask(flat, depth=25, k=30).left == ()


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
    said = ask({"a": 2.0, "b": 1.0}, "b")

    assert order(said) == "ba"
    assert said.beliefs == pytest.approx((exp(4) / (exp(4) + exp(2)), exp(2) / (exp(4) + exp(2))))
    assert ask({}).beliefs == ()
    assert ask({"a": 900.0}).beliefs == (1.0,)


def test_beliefs_leave_room_for_what_was_not_looked_at() -> None:
    said = ask({f"{n}": 10.0 for n in range(STEP)} | {"x": 1.0})

    assert sum(said.beliefs) == pytest.approx(STEP / (STEP + exp(-9)))


def test_anchors_of_one_scope_are_believed_together() -> None:
    one, two = (
        Gist(name, moved=False, documents=(name,), scopes=("s=1", *more)) for name, more in (("a", ()), ("b", ("t=1",)))
    )
    said = Course(
        ((Hit("a", 1.0), one), (Hit("b", 1.0), two), (Hit("c", 1.0), Gist("c", moved=False, documents=()))),
        (),
        settled=True,
        beliefs=(0.4, 0.4, 0.2),
    )

    assert by_scope(said, "none") == pytest.approx({"s=1": 0.6, "none": 0.2, "t=1": 0.2})


def test_equals_are_told_in_the_order_of_stage_1() -> None:
    for names in permutations("abc"):
        assert order(ask(dict.fromkeys(names, 1.0))) == "".join(names)

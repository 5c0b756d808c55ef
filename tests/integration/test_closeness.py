"""Questions without an answer: what is nearest is shown, but not as an answer."""

from collections.abc import Iterator

import pytest

from benchmarks.paper.sets import find_collections
from benchmarks.speed.closeness import measure, share_below
from stream_car import Engine, NewDocument
from tests.support import engines
from tests.support.repository import DATA


@pytest.fixture
def car() -> Iterator[Engine]:
    with engines.engine() as engine:
        engine.publish(
            NewDocument(id=f"tea-{n}", type="claim", time="2020-01-01", scope={"topic": f"tea {n}"}, text=text)
            for n, text in enumerate(TEXTS)
        )
        yield engine


TEXTS = (
    "green tea is healthy if it is brewed with water below eighty degrees",
    "black tea contains more caffeine than green tea",
    "white tea is picked early in spring from young leaves",
    "mint tea should steep for seven minutes under a lid",
    *(f"a cup of tea of the kind number{n} costs {n} coins" for n in range(100)),
)


def test_a_question_about_something_else_gets_an_answer_that_is_not_close(car: Engine) -> None:
    foreign = car.query("who painted the young leaves on the chapel ceiling in the famous palace of the Medici?")
    likely = car.query("how many minutes should mint tea steep?")
    nothing = car.query("zebra")

    assert (foreign.is_close, likely.is_close, nothing.is_close) == (False, True, False)
    assert likely.closeness > foreign.closeness > nothing.closeness == 0.0


def test_a_name_in_the_question_is_close_whatever_else_it_says(car: Engine) -> None:
    assert car.query("what became of my beloved friend called tea 3 in foreign countries?").closeness == 1.0


@pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data are not beside the repository (shared/data)")
def test_right_answers_are_close_and_those_to_foreign_questions_are_not() -> None:
    collections = [each for each in find_collections(()) if each.name in ("ghsa", "legalprecedentqa_freeform")]
    measured = list(measure(DATA, collections))
    foreign = [value for each in measured for value in (*each.foreign, *each.made)]

    assert share_below([value for each in measured for value in each.right if each.title == "GHSA"]) <= 0.02
    assert share_below(foreign) >= 0.9

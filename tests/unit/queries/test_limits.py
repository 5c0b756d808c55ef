"""Errors of limits name the field of the request."""

from collections.abc import Callable

import pytest

from stream_car import Engine, InvalidRequest
from stream_car.queries.limits import DEPTH_MAX, K_MAX, NAMES_MAX, TEXT_MAX
from tests.support.engines import engine


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("text", lambda car: car.query(" ")),
        ("text", lambda car: car.search("x" * (TEXT_MAX + 1))),
        ("question", lambda car: car.check(["a"], question="")),
        ("k", lambda car: car.query("tea", k=K_MAX + 1)),
        ("depth", lambda car: car.query("tea", depth=DEPTH_MAX + 1)),
        ("budget", lambda car: car.query("tea", budget=0)),
        ("names", lambda car: car.resolve("tea")),
        ("names", lambda car: car.resolve(["a"] * (NAMES_MAX + 1))),
        ("ids", lambda car: car.check("tea")),
        ("ids", lambda car: car.check(["a"] * (NAMES_MAX + 1))),
    ],
)
def test_an_error_has_the_name_of_the_field_as_its_code(field: str, call: Callable[[Engine], object]) -> None:
    with engine() as car, pytest.raises(InvalidRequest) as caught:
        call(car)

    assert caught.value.code == field


def test_the_coverage_of_a_question_without_anchors_is_a_float() -> None:
    with engine() as car:
        coverage = car.query("nothing").certificate.coverage

    assert (coverage, type(coverage)) == (0.0, float)

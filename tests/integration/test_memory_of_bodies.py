"""One hostile body takes little memory and disk: the short form of `python -m tests.attack.memory`."""

import sys

import pytest

from tests.attack.memory import SHAPES, Shape, attempt

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
CHOSEN = {"lines of one digit": 0.1, "lines of an unknown type": 0.1, "a line without an end": 0.1}


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.name in CHOSEN], ids=lambda shape: shape.name)
def test_a_hostile_body_takes_little_memory_and_disk(shape: Shape) -> None:
    result = attempt(shape, scale=CHOSEN[shape.name])

    assert result.statuses == (200,)
    assert result.memory < result.memory_max
    assert result.disk_max is not None
    assert result.disk < result.disk_max


def test_many_hostile_bodies_at_once_take_little_memory() -> None:
    result = attempt(SHAPES[0], together=16, scale=0.01)

    assert set(result.statuses) == {200}
    assert result.memory < result.memory_max

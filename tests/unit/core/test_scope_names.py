"""Names of scopes and their parts."""

import pytest

from stream_car.core.scope_names import scope_name, scope_parts

VALUES = ["axios", "a b", " edge ", "a,b", "a, b=c", 'say "it"', "=", "", "é", "\\", "x" * 300, "2024-01-31"]


@pytest.mark.parametrize("first", VALUES)
@pytest.mark.parametrize("second", VALUES)
def test_the_parts_of_a_name_are_what_it_was_made_of(first: str, second: str) -> None:
    pairs = (("cve", first), ("package", second))

    assert scope_parts(scope_name(pairs)) == pairs


@pytest.mark.parametrize("text", ["a=1,b=2", "a=1, b=2", "a=1,   b=2", "a=1,b=2,", " a=1, b=2"])
def test_spaces_around_keys_say_nothing(text: str) -> None:
    assert scope_parts(text) == (("a", "1"), ("b", "2"))


@pytest.mark.parametrize("text", ["a", "a=1, b", "=1", "a=1, =2", 'a="1', 'a="1"b=2'])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expected|quoted|comma"):
        scope_parts(text)


def test_the_empty_name_has_no_parts() -> None:
    assert scope_parts("") == ()

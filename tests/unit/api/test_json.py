"""What programs see: every field, times as RFC 3339, bytes as text where they can be."""

from base64 import b64encode
from collections.abc import Mapping
from typing import get_type_hints

import msgspec
import pytest

from stream_car.api.json import PAIRS, TIMES, line, pieces, plain
from stream_car.codec import format_time
from stream_car.core import changes
from stream_car.queries import answers
from tests.support import answers as an


class Shape(msgspec.Struct):
    """What the tests look at of an answer."""

    certificate: dict[str, object]
    results: list[dict[str, object]]


def test_defaults_are_written_out() -> None:
    said = msgspec.json.decode(line(an.ANSWER), type=Shape)

    assert said.certificate["complete"] is True
    assert said.results[0]["active"] is True
    assert said.results[0]["revision"] == 1


def test_times_are_rfc_3339() -> None:
    said = msgspec.json.decode(line(an.ANSWER), type=Shape)

    assert said.results[0]["time"] == "2019-07-11T00:00:00Z"
    assert said.certificate["as_of"] is None


def test_the_ends_of_a_run_are_times_with_their_order() -> None:
    text = line(an.TOLD)

    assert '"start":{"time":"1970-01-01T00:00:00Z","order":0}' in text
    assert '"end":{"time":"2019-07-11T00:00:00Z","order":0}' in text


@pytest.mark.parametrize(("value", "said"), [(b"{", "{"), (b"\xff\x00", {"base64": "/wA="})])
def test_bytes_are_text_where_they_can_be(value: bytes, said: object) -> None:
    assert plain(value) == said


def test_one_value_is_one_line() -> None:
    for value in (an.ANSWER, an.AUDIT, an.FRONTIER, an.HISTORY, an.TOLD, an.EXPLANATION, an.REJECTED):
        assert "\n" not in line(value)


def test_every_field_that_holds_a_time_is_known_as_one() -> None:
    structs = [
        value
        for module in (answers, changes)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct)
    ]
    named = {
        name
        for struct in structs
        for name, hint in get_type_hints(struct).items()
        if hint in (int, int | None) and ("time" in name or name in {"due", "as_of"})
    }

    assert named == TIMES


def by_definition(value: object) -> object:
    """What is to be written, one value after the other."""
    if isinstance(value, msgspec.Struct):
        return {name: of_field(name, getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {str(key): by_definition(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [by_definition(item) for item in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": b64encode(value).decode()}
    return value


def of_field(name: str, value: object) -> object:
    if name in TIMES and isinstance(value, int):
        return format_time(value)
    if name in PAIRS and isinstance(value, tuple):
        return {"time": format_time(value[0]), "order": value[1]}
    return by_definition(value)


@pytest.mark.parametrize("value", [one for one in vars(an).values() if isinstance(one, msgspec.Struct)])
def test_what_is_known_of_a_type_changes_nothing(value: msgspec.Struct) -> None:
    assert msgspec.json.decode(line(value)) == msgspec.json.decode(msgspec.json.encode(by_definition(value)))


class Nested(msgspec.Struct):
    names: tuple[str, ...]
    inner: "Nested | None" = None
    start: tuple[int, int] = (0, 1)


@pytest.mark.parametrize(
    "value",
    [
        Nested(tuple(f"n{n}" for n in range(30)), Nested(())),
        [Nested(("a",)), Nested(tuple("abcdefghijk"))],
        (),
        {"a": (1, 2)},
        "text",
        None,
    ],
)
def test_pieces_together_are_the_whole(value: object) -> None:
    assert b"".join(pieces(value)).decode() == line(value)


def test_a_long_list_is_written_item_by_item() -> None:
    assert max(map(len, pieces(Nested(tuple(f"name{n}" for n in range(1000)))))) < 50

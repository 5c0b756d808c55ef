"""Answers as JSON: every field is written, times are RFC 3339, bytes are text if they can be."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import get_args, get_type_hints

import msgspec
import pytest

from stream_car.api.json import encode_in_pieces, to_json
from stream_car.codec import format_time
from stream_car.codec.times import to_micros
from stream_car.queries import answers
from stream_car.queries.answers import Base64, PendingDocument, Rejected, text_or_base64
from stream_car.subscriptions import events
from stream_car.subscriptions.events import Event, Heartbeat, Reset, ScopeChange, SnapshotEnd
from tests.support import answers as examples

ANSWERS = [value for value in vars(examples).values() if isinstance(value, msgspec.Struct)]
TIME = datetime(1969, 7, 20, 20, 17, 40, 123_456, tzinfo=UTC)
REJECTED = [
    Rejected(offset=1, code="syntax", reason="no", append_time=TIME, number=2, content=text_or_base64(value))
    for value in (b'{"time": "2024-01-01T00:00:00Z"}', b"\xff\x00", b"")
]


class Shape(msgspec.Struct):
    """The parts of an answer that these tests look at."""

    certificate: dict[str, object]
    results: list[dict[str, object]]


def test_defaults_are_written() -> None:
    answer = msgspec.json.decode(to_json(examples.ANSWER), type=Shape)

    assert answer.certificate["complete"] is True
    assert answer.results[0]["status"] == "in_force"
    assert answer.results[0]["revision"] == 1


def test_times_are_rfc_3339() -> None:
    answer = msgspec.json.decode(to_json(examples.ANSWER), type=Shape)

    assert answer.results[0]["time"] == "2019-07-11T00:00:00Z"
    assert answer.certificate["as_of"] is None


def test_the_ends_of_a_run_are_times_with_their_order() -> None:
    text = to_json(examples.CHANGE)

    assert '"start":"1970-01-01T00:00:00Z","start_order":0' in text
    assert '"end":"2019-07-11T00:00:00Z","end_order":0' in text


@pytest.mark.parametrize(("value", "json"), [(b"{", '"{"'), (b"\xff\x00", '{"base64":"/wA="}')])
def test_bytes_are_text_if_they_can_be(value: bytes, json: str) -> None:
    assert to_json(text_or_base64(value)) == json


@pytest.mark.parametrize("value", [*ANSWERS, *REJECTED])
def test_one_value_is_one_line(value: msgspec.Struct) -> None:
    assert "\n" not in to_json(value)


def structs(*modules: object) -> Iterator[type[msgspec.Struct]]:
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, msgspec.Struct):
                yield value


def test_every_time_is_a_datetime() -> None:
    times = {
        (kind.__name__, name): hint
        for kind in structs(answers, events)
        for name, hint in get_type_hints(kind).items()
        if name in ("time", "due", "as_of", "start", "end") or name.endswith("_time")
    }
    del times["RebuildStatus", "end"]  # a number of messages

    assert {hint for hint in times.values() if hint is not datetime and datetime not in get_args(hint)} == set()
    assert len(times) > 10


def by_definition(value: object) -> object:
    """Return what is to be written for a value, one field after the other."""
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        tag: dict[str, object] = {str(config.tag_field): config.tag} if config.tag else {}
        fields = msgspec.structs.fields(value)
        return tag | {field.encode_name: by_definition(getattr(value, field.name)) for field in fields}
    if isinstance(value, Mapping):
        return {str(key): by_definition(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [by_definition(item) for item in value]
    return format_time(to_micros(value)) if isinstance(value, datetime) else value


@pytest.mark.parametrize("value", [*ANSWERS, REJECTED[0]])
def test_the_json_is_that_of_the_definition(value: msgspec.Struct) -> None:
    assert msgspec.json.decode(to_json(value)) == by_definition(value)


EVENTS = [
    ScopeChange(cursor="g:1", change=examples.CHANGE),
    SnapshotEnd(cursor="g:1", generation="g"),
    Reset(reason="generation", generation="g"),
    Heartbeat(),
]


@pytest.mark.parametrize("value", [*ANSWERS, *REJECTED, PendingDocument(id="w", revision=1, time=TIME, position="p")])
def test_decoding_is_the_inverse_of_encoding(value: msgspec.Struct) -> None:
    assert msgspec.json.decode(to_json(value), type=type(value)) == value


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_is_known_by_its_json_alone(event: Event) -> None:
    assert msgspec.json.decode(to_json(event), type=Event) == event


def test_a_field_of_a_newer_service_is_ignored() -> None:
    newer = '{"id": "w", "revision": 1, "time": "1970-01-01T00:00:01Z", "mood": "good"}'

    assert msgspec.json.decode(newer, type=PendingDocument).id == "w"
    assert msgspec.json.decode('{"base64": "/wA="}', type=Base64) == Base64(b"\xff\x00")


class Nested(msgspec.Struct):
    names: tuple[str, ...]
    inner: "Nested | None" = None
    start: tuple[int, int] = (0, 1)


class Empty(msgspec.Struct):
    pass


@pytest.mark.parametrize(
    "value",
    [
        Nested(tuple(f"n{n}" for n in range(30)), Nested(())),
        [Nested(("a",)), Nested(tuple("abcdefghijk"))],
        Empty(),
        (),
        {"a": (1, 2)},
        "text",
        None,
        *ANSWERS,
        *REJECTED,
        tuple(REJECTED),
    ],
)
def test_pieces_together_are_the_whole(value: object) -> None:
    assert b"".join(encode_in_pieces(value)).decode() == to_json(value)


def test_a_long_list_is_written_item_by_item() -> None:
    assert max(map(len, encode_in_pieces(Nested(tuple(f"name{n}" for n in range(1000)))))) < 50

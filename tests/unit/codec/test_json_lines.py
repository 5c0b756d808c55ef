"""Files and pipes are cut into documents: all shapes of JSON, nothing lost, nothing held that is too long."""

import json
from collections.abc import Iterator
from io import BytesIO, RawIOBase
from typing import BinaryIO, cast

import pytest

from stream_car.codec import Limits, decode, split_documents
from stream_car.errors import InvalidDocument

OBJECTS = [
    {"id": "a", "scope": [{"package": ["x"]}, {"package": ["y"]}], "text": 'braces }{ ][ and "quotes" \\ here'},
    {"id": "b", "attributes": {"deep": [[], {}, [{}]]}},
    {"id": "c", "text": "two\nlines, ünïcödé"},
]
SMALL = Limits(document=100)


def cut(data: bytes, limits: Limits = SMALL) -> list[bytes]:
    return list(split_documents(BytesIO(data), limits=limits))


def code_of(value: bytes, limits: Limits = SMALL) -> str:
    with pytest.raises(InvalidDocument) as refusal:
        decode(value, limits=limits)
    return refusal.value.code


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\n\n", "\n \t\r\n"])
@pytest.mark.parametrize("indent", [None, 0, 1, 4, "\t"])
@pytest.mark.parametrize("last", ["", "\n", "\n\n  "])
def test_objects_come_out_whole_however_they_are_printed(ends: str, indent: int | str | None, last: str) -> None:
    data = ends.join(json.dumps(each, indent=indent) for each in OBJECTS) + last

    assert [json.loads(item) for item in cut(data.encode(), Limits())] == OBJECTS


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("before", [b"", b"\n \n", b"  "])
def test_the_members_of_an_array_come_out_one_by_one(indent: int | None, before: bytes) -> None:
    data = before + json.dumps(OBJECTS, indent=indent).encode() + b"\n"

    assert [json.loads(item) for item in cut(data, Limits())] == OBJECTS


def test_nothing_comes_out_of_an_empty_file_or_an_empty_array() -> None:
    assert cut(b"") == cut(b"\n\n") == cut(b"  ") == cut(b"[]") == cut(b" [\n] \n") == []


def test_a_line_up_to_the_limit_is_whole_and_a_longer_one_is_cut_one_byte_behind_it() -> None:
    for end in (b"\n", b"\r\n", b""):
        for size in (99, 100):
            assert cut(b"x" * size + end) == [b"x" * size]
        for size in (101, 102, 103, 300, 200_000):
            assert cut(b"x" * size + end + b"{}\n") == ([b"x" * 101] if end == b"" else [b"x" * 101, b"{}"])
    assert code_of(b"x" * 101) == "size"


def test_a_long_line_of_spaces_is_not_taken_for_a_blank_one() -> None:
    assert [code_of(item) for item in cut(b" " * 150 + b"{}\n")] == ["size"]


def test_an_object_that_is_too_long_over_many_lines_is_one_refusal() -> None:
    data = json.dumps({"id": "a", "many": list(range(100))}, indent=2).encode() + b'\n{"id": "b"}\n'

    items = cut(data)

    assert [code_of(items[0]), items[1:]] == ["size", [b'{"id": "b"}']]


def test_a_broken_line_costs_only_itself() -> None:
    data = b'{"id":"a"}\n{"id":"b","text":"never en\n{"id":"c"}\n}\nnonsense\n{"id":"d"}\n{"id":'

    assert cut(data) == [
        b'{"id":"a"}',
        b'{"id":"b","text":"never en',
        b'{"id":"c"}',
        b"}",
        b"nonsense",
        b'{"id":"d"}',
        b'{"id":',
    ]


@pytest.mark.parametrize("broken", [b'[{"id":"a"},{"id":"b"}', b'[{"id":"a"},{"id":"b"}}', b'[{"id":"a"},{"id":"b'])
def test_the_last_member_of_an_array_that_is_not_closed_is_refused(broken: bytes) -> None:
    first, last = cut(broken)

    assert first == b'{"id":"a"}'
    assert code_of(last) == "syntax"


def test_empty_places_in_an_array_are_refused_and_not_skipped() -> None:
    assert [code_of(item) for item in cut(b"[ ,]")] == ["empty", "empty"]


def test_members_that_are_no_objects_are_refused_one_by_one() -> None:
    assert [code_of(item) for item in cut(b'[1, "a,b", [2, 3]]\n[]\n')] == ["not_object"] * 4


def test_an_endless_nest_is_refused_for_its_depth() -> None:
    assert [code_of(item, Limits()) for item in cut(b"[" * 1_000_000, Limits())] == ["depth"]


class Endless(RawIOBase):
    """A pipe that never ends, and counts what was read from it."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        super().__init__()
        self.lines = lines
        self.given = 0

    def readable(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> bytes:
        self.given += 1
        return next(self.lines)

    def readinto(self, buffer: object, /) -> int:
        raise AssertionError("an endless pipe must not be read whole")


def test_lines_come_out_as_they_come_in() -> None:
    pipe = Endless(b'{"id":"%d"}\n' % n for n in iter(int, 1))
    items = split_documents(cast(BinaryIO, pipe), limits=SMALL)

    assert [next(items) for _ in range(3)] == [b'{"id":"0"}'] * 3
    assert pipe.given == 3

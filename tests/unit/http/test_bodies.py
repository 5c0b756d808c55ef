"""Bodies are cut into documents, however they arrive, and are limited."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest
from hypothesis import given, strategies as st
from starlette.requests import Request
from starlette.types import Message

from stream_car.codec import DEFAULT_LIMITS
from stream_car.http import bodies
from stream_car.http.bodies import array, lines, media_type, whole
from stream_car.http.body_room import BodyRoom
from stream_car.http.clients import LOCAL
from stream_car.http.problems import HttpError


def request_of(chunks: Sequence[bytes] = (), headers: Mapping[str, str] = {}) -> Request:
    """Return a request whose body arrives in these chunks."""
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    remaining = iter([*messages, {"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Message:
        return next(remaining)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": raw}, receive)


async def all_of(slices: AsyncIterator[list[bytes]]) -> list[bytes]:
    return [document async for batch in slices for document in batch]


async def lines_of(chunks: Sequence[bytes], limit: int) -> list[bytes]:
    with BodyRoom().body(request_of(chunks), LOCAL, limit) as body:
        return await all_of(lines(body))


async def items_of(content: bytes) -> list[bytes]:
    with BodyRoom().body(request_of(), LOCAL, 0) as body:
        return await all_of(array(body, content))


async def whole_of(request: Request, limit: int) -> bytes:
    with BodyRoom().body(request, LOCAL, limit) as body:
        return await whole(body)


def cut(body: bytes, places: Sequence[int]) -> list[bytes]:
    """Return the body in pieces, cut at these places."""
    ends = sorted({place % (len(body) + 1) for place in places})
    return [body[start:end] for start, end in zip([0, *ends], [*ends, len(body)], strict=True)]


LINES = st.lists(st.sampled_from([b'{"id": "a"}', b"nonsense", b"", b"  ", b'\t{"b": 1} \r', b"\xff", b"["]))
PLACES = st.lists(st.integers(0, 1000), max_size=8)


@given(LINES, PLACES)
def test_lines_are_the_same_however_they_arrive(texts: list[bytes], places: list[int]) -> None:
    chunks = cut(b"\n".join(texts), places)

    documents = asyncio.run(lines_of(chunks, 1000))

    assert documents == [text.strip() for text in texts if text.strip()]


def test_a_line_longer_than_a_document_is_cut_after_the_limit() -> None:
    chunks = [b"x" * DEFAULT_LIMITS.document, b"x" * 10, b"\nshort"]

    documents = asyncio.run(lines_of(chunks, 1 << 30))

    assert [len(document) for document in documents] == [DEFAULT_LIMITS.document + 1, 5]


@given(st.lists(st.sampled_from([b'{"id": "a"}', b"5", b'"text"', b"[1, 2]", b"null"]), max_size=700))
def test_an_array_is_cut_into_its_items(items: list[bytes]) -> None:
    assert asyncio.run(items_of(b"[" + b" , ".join(items) + b"]")) == items


def test_an_array_of_very_many_parts_is_rejected_before_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BRACKETS_MAX", 10)

    with pytest.raises(HttpError) as caught:
        asyncio.run(items_of(b"[" * 11))

    assert (caught.value.status, caught.value.code) == (413, "size")


@pytest.mark.parametrize(("chunks", "headers"), [([b"12345", b"6"], {}), ([], {"Content-Length": "6"})])
def test_a_body_beyond_the_limit_is_rejected(chunks: list[bytes], headers: dict[str, str]) -> None:
    with pytest.raises(HttpError) as caught:
        asyncio.run(whole_of(request_of(chunks, headers), 5))

    assert (caught.value.status, caught.value.code) == (413, "size")
    assert caught.value.headers["Connection"] == "close"


def test_a_body_up_to_the_limit_is_read() -> None:
    assert asyncio.run(whole_of(request_of([b"12", b"345"]), 5)) == b"12345"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("application/json", "application/json"),
        ("Application/JSON; charset=UTF-8", "application/json"),
        ('application/json; charset="utf-8"', "application/json"),
        ("", ""),
    ],
)
def test_the_media_type_is_read_without_parameters(value: str, kind: str) -> None:
    assert media_type(request_of(headers={"Content-Type": value})) == kind

"""What a bad request gets: a status, a code that names the reason, and never an internal error."""

import asyncio
import gzip
from contextlib import suppress

import pytest

from tests.support.http_service import CLAIM, JSON, code_of, serving


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "empty"),
        (b"5", "not_object"),
        (b'{"id": "a"', "syntax"),
        (b'{"id": "a", "id": "b"}', "duplicate_key"),
        (b"\xff\xfe{\x00", "encoding"),
        (b'{"a": ' + b"[" * 100_000, "depth"),
        (b'{"id": "a", "n": 1e400}', "number"),
        (b'{"id": "' + b"a" * 300_000 + b'"}', "size"),
    ],
)
async def test_a_document_that_cannot_be_read_is_rejected_with_the_code_of_the_decoder(body: bytes, code: str) -> None:
    async with serving() as running:
        response = await running.client.post("/v1/documents", content=body, headers=JSON)

    assert (response.status_code, code_of(response)) == (422, code)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "empty"),
        (b"[]", "not_object"),
        (b"{", "syntax"),
        (b'{"text": "a", "text": "b"}', "duplicate_key"),
        (b'{"text": "\\ud800"}', "encoding"),
        (b'{"text": "a", "x": ' + b"[" * 100_000, "depth"),
        (b'{"text": "   "}', "text"),
        (b'{"text": ""}', "text"),
        (b'{"k": 3}', "text"),
        (b'{"text": 5}', "text"),
        (b'{"text": "' + b"a" * 10_001 + b'"}', "text"),
        (b'{"text": "a", "k": 0}', "k"),
        (b'{"text": "a", "k": -1}', "k"),
        (b'{"text": "a", "k": 1000000000}', "k"),
        (b'{"text": "a", "k": true}', "k"),
        (b'{"text": "a", "k": "5"}', "k"),
        (b'{"text": "a", "depth": 201}', "depth"),
        (b'{"text": "a", "k": NaN}', "number"),
        (b'{"text": "a", "as_of": "2024-02-30T00:00:00Z"}', "as_of"),
        (b'{"text": "a", "as_of": "yesterday"}', "as_of"),
        (b'{"text": "a", "offset": 3}', "field"),
        (b'{"text": "a", "min_revisions": [{"id": "", "revision": 1}]}', "min_revisions"),
        (b'{"text": "a", "min_revisions": [{"id": "x", "revision": -1}]}', "min_revisions"),
        (b'{"text": "a", "min_revisions": [{"id": "x", "revision": 9007199254740993}]}', "range"),
        (b'{"text": "a", "min_revisions": "all"}', "min_revisions"),
        (b'{"text": "a", "timeout_ms": 10000000}', "timeout_ms"),
    ],
)
async def test_an_invalid_request_is_400_and_names_the_field(body: bytes, code: str) -> None:
    async with serving() as running:
        response = await running.client.post("/v1/query", content=body, headers=JSON)

    assert (response.status_code, code_of(response)) == (400, code)


async def test_a_wait_for_more_than_a_hundred_revisions_is_rejected() -> None:
    revisions = [{"id": f"a{n}", "revision": 1} for n in range(101)]
    async with serving() as running:
        response = await running.post("/v1/query", {"text": "a", "min_revisions": revisions})

    assert (response.status_code, code_of(response)) == (400, "min_revisions")


@pytest.mark.parametrize("text", ["*", "a* " * 100, '"unbalanced', "(((", "AND OR NOT", "x" * 9_000, "w \x00 \x1b["])
async def test_any_text_is_a_question(text: str) -> None:
    async with serving() as running:
        await running.post_documents(CLAIM)
        response = await running.post("/v1/query", {"text": text})

    assert response.status_code == 200


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v1/frontier", "scope"),
        ("/v1/frontier?scope=", "scope"),
        ("/v1/frontier?scope=topic", "scope"),
        ("/v1/frontier?scope=%3Dtea", "scope"),
        ("/v1/frontier?scope=topic%3Dtea&as_of=2024", "as_of"),
        ("/v1/frontier?scope=topic%3Dtea&color=red", "field"),
        ("/v1/changes?after=-1", "after"),
        ("/v1/changes?after=g/0", "after"),
        ("/v1/changes?after=g/0/1_0", "after"),
        ("/v1/changes?after=g/0/99999999999999999999", "after"),
        ("/v1/rejected?after=-1", "after"),
        ("/v1/rejected?after=1_0", "after"),
        ("/v1/rejected?after=99999999999999999999", "after"),
        ("/v1/changes?limit=0", "limit"),
        ("/v1/changes?limit=1001", "limit"),
        ("/v1/changes?limit=5&limit=6", "limit"),
        ("/v1/rejected?limit=x", "limit"),
        ("/v1/status?x=1", "field"),
    ],
)
async def test_an_invalid_parameter_is_400_and_named(path: str, code: str) -> None:
    async with serving() as running:
        response = await running.client.get(path)

    assert (response.status_code, code_of(response)) == (400, code)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/v1/frontier?scope=package=lodash&as_of=soon", "`as_of` is not a time."),
        ("/v1/frontier?scope=package", "`scope` must look like package=lodash"),
        ("/v1/frontier?package=lodash", "Give a scope as scope=KEY=VALUE"),
        ("/v1/frontier", "`scope` is missing"),
        ("/v1/status?x=1", "There is no `x` here"),
    ],
)
async def test_the_reason_is_in_words_and_not_in_patterns(path: str, reason: str) -> None:
    async with serving() as running:
        detail = (await running.client.get(path)).json()["detail"]

    assert reason in detail
    assert "regex" not in detail


async def test_an_unknown_page_and_a_wrong_method_are_reported() -> None:
    async with serving() as running:
        missing = await running.client.get("/v2/query")
        method = await running.client.delete("/v1/query")

    assert (missing.status_code, code_of(missing)) == (404, "not_found")
    assert (method.status_code, code_of(method)) == (405, "method")
    assert method.headers["allow"] == "POST"


@pytest.mark.parametrize("path", ["/v1/documents", "/v1/query"])
@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ({"Content-Type": "text/plain"}, b"{}", "content_type"),
        ({"Content-Type": "application/json; charset=latin-1"}, b"{}", "content_type"),
        ({}, b"{}", "content_type"),
        ({**JSON, "Content-Encoding": "gzip"}, gzip.compress(b" " * 10_000_000, mtime=0), "content_encoding"),
        ({**JSON, "Content-Encoding": "zstd"}, b"x", "content_encoding"),
    ],
)
async def test_bodies_of_other_types_are_415(path: str, headers: dict[str, str], body: bytes, code: str) -> None:
    async with serving() as running:
        response = await running.client.post(path, content=body, headers=headers)

    assert (response.status_code, code_of(response)) == (415, code)


async def test_a_body_whose_declared_length_is_too_large_is_rejected_before_it_is_read() -> None:
    async with serving() as running:
        reader, writer = await running.connect()
        writer.write(b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        writer.write(b"Content-Length: 104857600\r\n\r\n")
        head = await reader.readuntil(b"\r\n")
        writer.close()

    assert head.startswith(b"HTTP/1.1 413 ")


async def test_a_body_without_a_length_is_rejected_as_soon_as_it_is_too_large() -> None:
    async with serving() as running:
        reader, writer = await running.connect()
        writer.write(b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
        head = asyncio.create_task(reader.readuntil(b"\r\n"))
        with suppress(ConnectionError):
            while not head.done():
                writer.write(b"10000\r\n" + b" " * 65_536 + b"\r\n")
                await writer.drain()
                await asyncio.sleep(0)
        status_line = await head
        writer.close()

    assert status_line.startswith(b"HTTP/1.1 413 ")

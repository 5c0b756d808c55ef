"""The service over a real socket: every call, and what a bad request gets."""

import asyncio
import re
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest

from stream_car.codec import encode, format_time
from stream_car.errors import InvalidRequest
from stream_car.http import server
from stream_car.settings import ServerSettings
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.engines import DAY, NOW, StoppedClock, document
from tests.support.http_service import Running, serving
from tests.support.repository import ROOT

JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/x-ndjson"}


def sent(name: str, kind: str = "claim", at: int = 0, *, topic: str) -> dict[str, object]:
    """A document as JSON has it."""
    return msgspec.json.decode(encode(document(name, kind, at, topic=topic)), type=dict[str, object])


async def published(running: Running, *documents: dict[str, object]) -> None:
    response = await running.post("/v1/documents", list(documents))
    assert response.status_code == 200, response.text
    assert {receipt["outcome"] for receipt in response.json()["receipts"]} <= {"accepted", "pending", "duplicate"}
    await running.rest()


def code_of(response: httpx.Response) -> str:
    """The code of a problem; every one is told in the same way."""
    assert response.headers["content-type"] == "application/problem+json"
    said = response.json()
    assert said["status"] == response.status_code
    assert said["detail"]
    assert said["title"]
    return str(said["code"])


pytestmark = on_both
CLAIM, DENIAL = sent("claim-1", topic="tea"), sent("denial-1", "denial", 1, topic="tea")


@in_the_gate
async def test_what_was_published_is_in_the_next_answer() -> None:
    async with serving() as running:
        await published(running, CLAIM, DENIAL)
        said = (await running.post("/v1/query", {"text": "claim tea"})).json()

    assert [result["id"] for result in said["results"]] == ["denial-1"]
    assert said["results"][0]["time"] == format_time(document("denial-1", "denial", 1).time)


@in_the_gate
async def test_every_question_of_the_library_can_be_asked() -> None:
    async with serving() as running:
        await published(running, CLAIM, DENIAL)
        relevance = (await running.post("/v1/relevance", {"text": "claim tea", "k": 1})).json()
        resolved = (await running.post("/v1/resolve", {"names": ["claim-1", "nobody"]})).json()
        audit = (await running.post("/v1/check", {"ids": ["claim-1"]})).json()
        frontier = (await running.get("/v1/frontier", scope="topic=tea")).json()
        history = (await running.get("/v1/history", scope="topic=tea")).json()
        changes = (await running.get("/v1/changes", scope="topic=tea")).json()
        explained = (await running.get("/v1/explain/claim-1")).json()
        rules = (await running.get("/v1/rules")).json()
        status = (await running.get("/v1/status")).json()

    assert [(one["id"], one["active"]) for one in relevance] == [("claim-1", False)]
    assert [one["status"] for one in resolved] == ["void", "unknown"]
    assert audit["repaired"] == ["denial-1"]
    assert [one["id"] for one in frontier[0]["active"]] == ["denial-1"]
    assert [one["id"] for one in history[0]["members"]] == ["claim-1", "denial-1"]
    assert [one["oseq"] for one in changes] == [1, 2]
    assert explained["status"] == "void"
    assert rules["domains"][0]["name"] == "talk"
    assert (status["documents"], status["cursor"].rpartition(":")[0]) == (2, status["generation"])


async def test_an_id_with_slashes_can_be_explained() -> None:
    async with serving() as running:
        await published(running, sent("a/b?c", topic="tea"))
        said = (await running.client.get("/v1/explain/a%2Fb%3Fc")).json()
        plainly = (await running.client.get("/v1/explain/a/b%3Fc")).json()

    assert said["status"] == plainly["status"] == "active"


async def test_the_valid_time_of_an_answer_can_be_chosen() -> None:
    async with serving() as running:
        await published(running, CLAIM, DENIAL)
        before = {"as_of": format_time(document("", at=0).time)}
        said = (await running.post("/v1/resolve", {"names": ["claim-1"], **before})).json()
        frontier = (await running.get("/v1/frontier", scope="topic=tea", **before)).json()

    assert said[0]["status"] == "active"
    assert [one["id"] for one in frontier[0]["active"]] == ["claim-1"]


@only_embedded("offsets are those of one log")
async def test_lines_are_taken_one_by_one_and_each_has_its_receipt() -> None:
    async def body() -> AsyncIterator[bytes]:
        for n in range(700):
            line = b"nonsense" if n == 5 else msgspec.json.encode(sent(f"n{n}", topic=str(n)))
            yield line[:20]
            yield line[20:] + b"\r\n\n"
        yield b'{"id": "last", "retracted": true}'

    async with serving() as running:
        said = (await running.client.post("/v1/documents", content=body(), headers=LINES)).json()
        refused = (await running.get("/v1/rejected")).json()

    assert said["outcomes"] == {"accepted": 699, "rejected": 1, "nothing": 1}
    assert [receipt["offset"] for receipt in said["receipts"]] == list(range(701))
    assert [(one["offset"], one["code"], one["value"]) for one in refused] == [(5, "syntax", "nonsense")]


@in_the_gate
async def test_one_refused_document_is_422_with_its_code_and_is_kept() -> None:
    async with serving() as running:
        response = await running.post("/v1/documents", {**CLAIM, "type": "song"})
        refused = (await running.get("/v1/rejected")).json()

    assert (response.status_code, code_of(response)) == (422, "type_unknown")
    assert response.json()["receipt"]["offset"] == refused[0]["offset"] == 0


async def connected(running: Running) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    url = httpx.URL(running.url)
    return await asyncio.open_connection(url.host, url.port)


async def test_a_length_that_is_told_twice_is_refused() -> None:
    async with serving() as running:
        reader, writer = await connected(running)
        writer.write(b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        writer.write(b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/status HTTP/1.1\r\n\r\n")
        writer.write_eof()
        answers = await reader.read()
        writer.close()

    assert answers.count(b"HTTP/1.1 ") == 1
    assert answers.startswith(b"HTTP/1.1 4")


async def test_only_named_hosts_are_served_on_this_machine() -> None:
    async with serving() as running:
        evil = await running.client.get("/v1/status", headers={"Host": "evil.example"})
        named = await running.client.get("/v1/status", headers={"Host": "localhost:1"})

    assert (evil.status_code, code_of(evil)) == (421, "host")
    assert named.status_code == 200


TOKEN = "0123456789abcdef0123"


async def test_with_a_token_nothing_is_told_or_taken_without_it() -> None:
    async with serving(token=TOKEN) as running:
        answers = [
            await running.client.request(method, path, headers=[(b"Authorization", given)], content=b"{}")
            for method, path in (("POST", "/v1/documents"), ("GET", "/v1/status"), ("GET", "/metrics"))
            for given in (b"", b"Bearer", f"Bearer {TOKEN}0".encode(), f"Basic {TOKEN}".encode(), "Bearer ünï".encode())
        ]
        right = await running.client.get("/v1/status")
        alive = await running.client.get("/livez", headers={"Authorization": ""})

    assert {answer.status_code for answer in answers} == {401}
    assert {answer.headers["www-authenticate"] for answer in answers} == {"Bearer"}
    assert (right.status_code, right.json()["next_offset"]) == (200, 0)
    assert alive.status_code == 200


@only_embedded("nothing is asked")
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104  nothing is bound
def test_other_machines_are_not_served_without_a_token(host: str) -> None:
    with pytest.raises(InvalidRequest, match="token"):
        server.bound(ServerSettings(host=host, port=0), None)


@in_the_gate
async def test_an_answer_can_wait_for_a_revision() -> None:
    async with serving() as running:
        asked = asyncio.create_task(
            running.post("/v1/query", {"text": "tea", "after": [{"id": "denial-1", "revision": 1}]})
        )
        await published(running, CLAIM)
        assert not asked.done()
        await published(running, DENIAL)
        said = (await asked).json()

    assert [result["id"] for result in said["results"]] == ["denial-1"]


@in_the_gate
async def test_a_revision_that_does_not_come_is_told_at_the_deadline() -> None:
    async with serving() as running:
        await published(running, CLAIM)
        late = await running.post(
            "/v1/resolve", {"names": ["claim-1"], "after": [{"id": "claim-1", "revision": 2}], "timeout_ms": 50}
        )

    assert (late.status_code, code_of(late)) == (504, "not_visible")
    assert "revision 2 of claim-1" in late.json()["detail"]


@only_embedded("nobody can stop the clock of Kafka")
async def test_a_document_from_the_future_waits_is_listed_and_is_released_by_time_alone() -> None:
    clock = StoppedClock()
    future = sent("later", topic="tea") | {"time": format_time(NOW + DAY)}
    async with serving(clock=clock) as running:
        response = await running.post("/v1/documents", future)
        waiting = (await running.get("/v1/pending")).json()
        early = await running.post("/v1/query", {"text": "later", "after": [{"id": "later"}]})
        clock.time = NOW + DAY
        said = (await running.post("/v1/query", {"text": "later"})).json()
        none = (await running.get("/v1/pending")).json()

    assert response.json()["outcomes"] == {"pending": 1}
    assert waiting == [{"id": "later", "revision": 1, "time": format_time(NOW + DAY)}]
    assert (early.status_code, code_of(early)) == (409, "pending")
    assert [result["id"] for result in said["results"]] == ["later"]
    assert none == []


@only_embedded("nobody can stop the clock of Kafka")
async def test_the_service_releases_a_waiting_document_though_nobody_asks() -> None:
    clock = StoppedClock()
    future = sent("later", topic="tea") | {"time": format_time(NOW + DAY)}
    async with serving(clock=clock) as running:
        await published(running, future)
        clock.time = NOW + DAY
        async with asyncio.timeout(10):
            while running.engine.next_offset < 2:
                await asyncio.sleep(0.01)
        said = (await running.get("/v1/changes")).json()

    assert [(one["change"]["cause"]["id"], one["change"]["cause"]["kind"]) for one in said] == [("later", "released")]


@in_the_gate
async def test_publications_of_many_share_flushes_and_each_gets_its_own_receipts() -> None:
    async with serving() as running:
        answers = await asyncio.gather(
            *(running.post("/v1/documents", [sent(f"d{n}-{m}", topic=str(n)) for m in range(n)]) for n in range(1, 40))
        )

    for n, answer in enumerate(answers, 1):
        assert answer.status_code == 200, answer.text
        assert [receipt["id"] for receipt in answer.json()["receipts"]] == [f"d{n}-{m}" for m in range(n)]


async def test_measures_count_what_happened() -> None:
    async with serving() as running:
        await published(running, CLAIM, DENIAL)
        await running.post("/v1/documents", {"id": 5})
        await running.post("/v1/query", {"text": "tea"})
        told = (await running.client.get("/metrics")).text.splitlines()

    assert 'stream_car_messages_total{outcome="accepted"} 2' in told
    assert 'stream_car_messages_total{outcome="rejected"} 1' in told
    assert "stream_car_documents 2" in told
    assert 'stream_car_request_seconds_count{operation="query"} 1' in told


@only_embedded("a query worker measures less of itself")
async def test_stages_cache_index_and_files_are_measured() -> None:
    def numbers(text: str) -> dict[str, float]:
        lines = (line.rpartition(" ") for line in text.splitlines() if line[0] != "#")
        return {name: float(value) for name, _, value in lines}

    async with serving() as running:
        fresh = numbers((await running.client.get("/metrics")).text)
        await published(running, CLAIM, DENIAL)
        for _ in range(3):
            await running.post("/v1/query", {"text": "tea"})
        told = numbers((await running.client.get("/metrics")).text)

    for stage in ("append", "apply", "search", "walk", "documents"):
        assert told[f'stream_car_stage_seconds_count{{stage="{stage}"}}'] == 1, stage
        assert told[f'stream_car_stage_seconds_sum{{stage="{stage}"}}'] > 0, stage
    assert (told["stream_car_cache_hits_total"], told["stream_car_cache_misses_total"]) == (2, 1)
    assert (told["stream_car_cache_answers"], fresh["stream_car_cache_answers"]) == (1, 0)
    assert told["stream_car_cache_bytes"] > 0
    assert (told["stream_car_index_lag"], fresh["stream_car_index_lag"]) == (2, 0)
    assert told["stream_car_log_lag"] == told["stream_car_publish_bytes"] == told["stream_car_long_questions"] == 0
    assert all(told[f"stream_car_{part}_bytes"] > 0 for part in ("index", "state", "log"))


@only_embedded("a query worker measures less of itself")
async def test_every_metric_is_in_the_reference_and_the_other_way_round() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    async with serving() as running:
        await published(running, CLAIM)
        told = (await running.client.get("/metrics")).text

    measured = {line.split()[2] for line in told.splitlines() if line.startswith("# TYPE")}
    assert measured == set(re.findall(r"`(stream_car_\w+)", page))

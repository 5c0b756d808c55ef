"""The service over a real socket: every request, and what a bad one gets."""

import asyncio
import re
from collections.abc import AsyncIterator

import msgspec
import pytest

from stream_car.codec import format_time
from stream_car.errors import InvalidRequest
from stream_car.http import server
from stream_car.queries.changes import Position
from stream_car.settings import ServerSettings
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.engines import DAY, NOW, StoppedClock, day
from tests.support.http_service import CLAIM, DENIAL, LINES, TOKEN, as_fields, code_of, serving
from tests.support.repository import ROOT

pytestmark = on_both


@in_the_gate
async def test_what_was_published_is_in_the_next_answer() -> None:
    async with serving() as running:
        await running.post_documents(CLAIM, DENIAL)
        answer = (await running.post("/v1/query", {"text": "claim tea"})).json()

    assert [result["id"] for result in answer["results"]] == ["denial-1"]
    assert answer["results"][0]["time"] == format_time(day(1))


@in_the_gate
async def test_every_request_of_the_library_can_be_sent() -> None:
    async with serving() as running:
        await running.post_documents(CLAIM, DENIAL)
        matches = (await running.post("/v1/search", {"text": "claim tea", "k": 1})).json()
        resolved = (await running.post("/v1/resolve", {"names": ["claim-1", "nobody"]})).json()
        audit = (await running.post("/v1/check", {"ids": ["claim-1"]})).json()
        frontier = (await running.get("/v1/frontier", scope="topic=tea")).json()
        history = (await running.get("/v1/history", scope="topic=tea")).json()
        changes = (await running.get("/v1/changes", scope="topic=tea")).json()
        explained = (await running.get("/v1/explain/claim-1")).json()
        rules = (await running.get("/v1/rules")).json()
        status = (await running.get("/v1/status")).json()

    assert [(match["id"], match["status"]) for match in matches] == [("claim-1", "superseded")]
    assert [resolution["status"] for resolution in resolved] == ["superseded", "unknown"]
    assert audit["repaired"] == ["denial-1"]
    assert [member["id"] for member in frontier[0]["in_force"]] == ["denial-1"]
    assert [member["id"] for member in history[0]["members"]] == ["claim-1", "denial-1"]
    assert [Position.parse(change["position"]).number for change in changes] == [1, 2]
    assert explained["status"] == "superseded"
    assert rules["packs"][0]["name"] == "talk"
    assert (status["documents"], status["cursor"].rpartition(":")[0]) == (2, status["generation"])


async def test_an_id_with_slashes_can_be_explained() -> None:
    async with serving() as running:
        await running.post_documents(as_fields("a/b?c", topic="tea"))
        quoted = (await running.client.get("/v1/explain/a%2Fb%3Fc")).json()
        with_slash = (await running.client.get("/v1/explain/a/b%3Fc")).json()

    assert quoted["status"] == with_slash["status"] == "in_force"


async def test_the_valid_time_of_an_answer_can_be_chosen() -> None:
    async with serving() as running:
        await running.post_documents(CLAIM, DENIAL)
        before = {"as_of": format_time(day(0))}
        resolved = (await running.post("/v1/resolve", {"names": ["claim-1"], **before})).json()
        frontier = (await running.get("/v1/frontier", scope="topic=tea", **before)).json()

    assert resolved[0]["status"] == "in_force"
    assert [member["id"] for member in frontier[0]["in_force"]] == ["claim-1"]


@only_embedded("offsets are those of one log")
async def test_lines_are_taken_one_by_one_and_each_has_its_receipt() -> None:
    async def body() -> AsyncIterator[bytes]:
        for n in range(700):
            line = b"nonsense" if n == 5 else msgspec.json.encode(as_fields(f"n{n}", topic=str(n)))
            yield line[:20]
            yield line[20:] + b"\r\n\n"
        yield b'{"id": "last", "retracted": true}'

    async with serving() as running:
        published = (await running.client.post("/v1/documents", content=body(), headers=LINES)).json()
        listed = (await running.get("/v1/rejected")).json()

    assert published["outcomes"] == {"accepted": 699, "rejected": 1, "nothing": 1}
    assert [receipt["offset"] for receipt in published["receipts"]] == list(range(701))
    assert [(rejected["offset"], rejected["code"], rejected["value"]) for rejected in listed] == [
        (5, "syntax", "nonsense")
    ]


@in_the_gate
async def test_one_rejected_document_is_422_with_its_code_and_is_kept() -> None:
    async with serving() as running:
        response = await running.post("/v1/documents", {**CLAIM, "type": "song"})
        listed = (await running.get("/v1/rejected")).json()

    assert (response.status_code, code_of(response)) == (422, "type_unknown")
    assert response.json()["receipt"]["offset"] == listed[0]["offset"] == 0


async def test_a_rejected_document_in_the_format_of_a_publisher_says_which_and_what_to_do() -> None:
    advisory = {"id": "GHSA-1", "modified": "2024-01-01T00:00:00Z", "affected": []}
    async with serving() as running:
        single = (await running.post("/v1/documents", advisory)).json()
        several = (await running.client.post("/v1/documents", json=[CLAIM, advisory, {"id": "x"}])).json()

    assert single["code"] == "time"
    assert "The document may be in the format osv: " in single["detail"]
    assert "stream-car publish --format osv" in single["detail"]
    accepted, rejected, other = several["receipts"]
    assert (accepted["reason"], rejected["reason"]) == (None, single["detail"])
    assert "may be in the format" not in other["reason"]


async def test_a_body_with_two_lengths_is_rejected() -> None:
    async with serving() as running:
        reader, writer = await running.connect()
        writer.write(b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        writer.write(b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/status HTTP/1.1\r\n\r\n")
        writer.write_eof()
        responses = await reader.read()
        writer.close()

    assert responses.count(b"HTTP/1.1 ") == 1
    assert responses.startswith(b"HTTP/1.1 4")


async def test_only_known_hosts_are_served_on_this_machine() -> None:
    async with serving() as running:
        evil = await running.client.get("/v1/status", headers={"Host": "evil.example"})
        known = await running.client.get("/v1/status", headers={"Host": "localhost:1"})

    assert (evil.status_code, code_of(evil)) == (421, "host")
    assert known.status_code == 200


async def test_with_a_token_nothing_is_answered_or_published_without_it() -> None:
    async with serving(token=TOKEN) as running:
        responses = [
            await running.client.request(method, path, headers=[(b"Authorization", given)], content=b"{}")
            for method, path in (("POST", "/v1/documents"), ("GET", "/v1/status"), ("GET", "/metrics"))
            for given in (b"", b"Bearer", f"Bearer {TOKEN}0".encode(), f"Basic {TOKEN}".encode(), "Bearer ünï".encode())
        ]
        right = await running.client.get("/v1/status")
        alive = await running.client.get("/livez", headers={"Authorization": ""})

    assert {response.status_code for response in responses} == {401}
    assert {code_of(response) for response in responses} == {"token"}
    assert {response.headers["www-authenticate"] for response in responses} == {"Bearer"}
    assert (right.status_code, right.json()["next_offset"]) == (200, 0)
    assert alive.status_code == 200


@only_embedded("nothing is sent")
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104  nothing is bound
def test_other_machines_are_not_served_without_a_token(host: str) -> None:
    with pytest.raises(InvalidRequest, match="token"):
        server.listen(ServerSettings(host=host, port=0), None)


@in_the_gate
async def test_an_answer_can_wait_for_a_revision() -> None:
    async with serving() as running:
        request = {"text": "tea", "min_revisions": [{"id": "denial-1", "revision": 1}]}
        waiting = asyncio.create_task(running.post("/v1/query", request))
        await running.post_documents(CLAIM)
        assert not waiting.done()
        await running.post_documents(DENIAL)
        answer = (await waiting).json()

    assert [result["id"] for result in answer["results"]] == ["denial-1"]


@in_the_gate
async def test_a_revision_that_does_not_become_visible_is_reported_at_the_deadline() -> None:
    request = {"names": ["claim-1"], "min_revisions": [{"id": "claim-1", "revision": 2}], "timeout_ms": 50}
    async with serving() as running:
        await running.post_documents(CLAIM)
        late = await running.post("/v1/resolve", request)

    assert (late.status_code, code_of(late)) == (504, "not_visible")
    assert "Revision 2 of claim-1" in late.json()["detail"]


@only_embedded("the clock of Kafka cannot be stopped")
async def test_a_document_from_the_future_waits_is_listed_and_is_released_by_time_alone() -> None:
    clock = StoppedClock()
    future = as_fields("later", topic="tea") | {"time": format_time(NOW + DAY)}
    async with serving(clock=clock) as running:
        response = await running.post("/v1/documents", future)
        pending = (await running.get("/v1/pending")).json()
        early = await running.post("/v1/query", {"text": "later", "min_revisions": [{"id": "later"}]})
        clock.time = NOW + DAY
        answer = (await running.post("/v1/query", {"text": "later"})).json()
        pending_later = (await running.get("/v1/pending")).json()

    assert response.json()["outcomes"] == {"pending": 1}
    assert [waiting.pop("position") != "" for waiting in pending] == [True]
    assert pending == [{"id": "later", "revision": 1, "time": format_time(NOW + DAY)}]
    assert (early.status_code, code_of(early)) == (409, "pending")
    assert [result["id"] for result in answer["results"]] == ["later"]
    assert pending_later == []


@only_embedded("the clock of Kafka cannot be stopped")
async def test_the_service_releases_a_pending_document_without_any_request() -> None:
    clock = StoppedClock()
    future = as_fields("later", topic="tea") | {"time": format_time(NOW + DAY)}
    async with serving(clock=clock) as running:
        await running.post_documents(future)
        clock.time = NOW + DAY
        async with asyncio.timeout(10):
            while running.engine.directory.next_offset < 2:
                await asyncio.sleep(0.01)
        changes = (await running.get("/v1/changes")).json()

    assert [(change["cause"]["id"], change["cause"]["kind"]) for change in changes] == [("later", "released")]


@in_the_gate
async def test_publishers_share_flushes_and_each_gets_its_own_receipts() -> None:
    async with serving() as running:
        bodies = [[as_fields(f"d{n}-{m}", topic=str(n)) for m in range(n)] for n in range(1, 40)]
        responses = await asyncio.gather(*(running.post("/v1/documents", body) for body in bodies))

    for n, response in enumerate(responses, 1):
        assert response.status_code == 200, response.text
        assert [receipt["id"] for receipt in response.json()["receipts"]] == [f"d{n}-{m}" for m in range(n)]


async def test_metrics_count_what_happened() -> None:
    async with serving() as running:
        await running.post_documents(CLAIM, DENIAL)
        await running.post("/v1/documents", {"id": 5})
        await running.post("/v1/query", {"text": "tea"})
        lines = (await running.client.get("/metrics")).text.splitlines()

    assert 'stream_car_messages_total{outcome="accepted"} 2.0' in lines
    assert 'stream_car_messages_total{outcome="rejected"} 1.0' in lines
    assert "stream_car_documents 2.0" in lines
    assert 'stream_car_request_seconds_count{operation="query"} 1.0' in lines


@only_embedded("a query worker measures less of itself")
async def test_stages_cache_index_and_files_are_measured() -> None:
    def values_of(text: str) -> dict[str, float]:
        lines = (line.rpartition(" ") for line in text.splitlines() if line[0] != "#")
        return {name: float(value) for name, _, value in lines}

    async with serving() as running:
        fresh = values_of((await running.client.get("/metrics")).text)
        await running.post_documents(CLAIM, DENIAL)
        for _ in range(3):
            await running.post("/v1/query", {"text": "tea"})
        values = values_of((await running.client.get("/metrics")).text)

    for stage in ("append", "apply", "search", "walk", "documents"):
        assert values[f'stream_car_stage_seconds_count{{stage="{stage}"}}'] == 1, stage
        assert values[f'stream_car_stage_seconds_sum{{stage="{stage}"}}'] > 0, stage
    assert (values["stream_car_cache_hits_total"], values["stream_car_cache_misses_total"]) == (2, 1)
    assert (values["stream_car_cache_answers"], fresh["stream_car_cache_answers"]) == (1, 0)
    assert values["stream_car_cache_bytes"] > 0
    assert (values["stream_car_index_lag"], fresh["stream_car_index_lag"]) == (2, 0)
    assert values["stream_car_log_lag"] == values["stream_car_publish_bytes"] == 0
    assert values["stream_car_long_questions"] == 0
    assert all(values[f"stream_car_{part}_bytes"] > 0 for part in ("index", "state", "log"))


@only_embedded("a query worker measures less of itself")
async def test_the_reference_lists_exactly_the_metrics_that_there_are() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text().partition("\n## Query workers")[0]
    async with serving() as running:
        await running.post_documents(CLAIM)
        exposition = (await running.client.get("/metrics")).text

    measured = {line.split()[2] for line in exposition.splitlines() if line.startswith("# TYPE")}
    listed = {name for name in re.findall(r"`(stream_car_\w+)", page) if not name.startswith("stream_car_webhook_")}
    assert measured == listed  # those of webhooks are there with the first webhook


@pytest.mark.parametrize("path", ["/v1/frontier", "/v1/history"])
async def test_pairs_that_no_scope_can_have_find_nothing(path: str) -> None:
    async with serving() as running:
        await running.post_documents(CLAIM)
        response = await running.client.get(path, params={"scope": "\x1f=x"})

    assert (response.status_code, response.json()) == (200, [])

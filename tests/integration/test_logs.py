"""What the service logs of requests: who changed what, and nothing that is secret."""

import logging
from collections.abc import Sequence

import msgspec
import pytest

from stream_car.cli.logs import LogFormat
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.http_service import CLAIM, LINES, TOKEN, as_fields, serving

pytestmark = on_both
CANARY = "a-canary-that-must-not-be-logged"
Line = dict[str, object]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "stream_car")
    return caplog


def lines(log: pytest.LogCaptureFixture, logger: str) -> list[Line]:
    """Return what `--json` writes of the records of a logger."""
    form = LogFormat(as_json=True)
    records = [record for record in log.records if record.name == f"stream_car.{logger}"]
    return [msgspec.json.decode(form.format(record), type=Line) for record in records]


def parts(values: Sequence[Line], *names: str) -> list[tuple[object, ...]]:
    return [tuple(value.get(name) for name in names) for value in values]


@in_the_gate
async def test_every_change_is_audited_with_who_sent_it_and_what_became_of_it(log: pytest.LogCaptureFixture) -> None:
    async with serving(token=TOKEN) as running:
        await running.post_documents(CLAIM)
        await running.post("/v1/documents", {"id": "claim-1", "retracted": True})
        await running.post("/v1/documents", {"id": "claim-2", "type": "claim"})
        await running.rest()
        await running.post("/v1/query", {"text": "tea"})
    audited = lines(log, "audit")
    receipts = [msgspec.convert(line["receipts"], list[Line]) for line in audited]

    assert parts(audited, "operation", "token", "address", "error") == [("publish", "token", "127.0.0.1", None)] * 3
    assert [parts(few, "outcome", "id", "code") for few in receipts] == [
        [("accepted", "claim-1", None)],
        [("retracted", "claim-1", None)],
        [("rejected", "claim-2", "time")],
    ]
    assert all(isinstance(few[0]["offset"], int) for few in receipts)


async def test_replays_are_audited_with_the_input_that_was_sent_again(log: pytest.LogCaptureFixture) -> None:
    async with serving(token=TOKEN) as running:
        await running.post("/v1/documents", {"id": 5})
        await running.rest()
        [rejected] = (await running.get("/v1/rejected")).json()
        correction = {"offset": rejected["offset"], "value": msgspec.json.encode(CLAIM).decode()}
        response = await running.post("/v1/replay", {"corrected": [correction]})
        assert response.status_code == 200, response.text
    [replay] = [line for line in lines(log, "audit") if line["operation"] == "replay"]

    assert parts(msgspec.convert(replay["receipts"], list[Line]), "outcome", "id", "replayed") == [
        ("accepted", "claim-1", rejected["offset"])
    ]


@only_embedded("a cluster does not rebuild over HTTP")
async def test_rebuilds_are_audited_with_the_names_of_the_rules_and_not_their_text(
    log: pytest.LogCaptureFixture,
) -> None:
    async with serving(token=TOKEN) as running:
        pack = {"name": "mine.toml", "text": f"# {CANARY}"}
        await running.post("/v1/rebuild", {"rules": ["facts", pack], "dry_run": True})
        await running.post("/v1/rebuild", {"rules": ["facts"], "dry_run": True})
    failed, begun = [line for line in lines(log, "audit") if line["operation"] == "rebuild"]

    assert parts([failed], "rules", "dry_run", "error") == [(["facts", "mine.toml"], True, "rules")]
    assert parts([begun], "rules", "dry_run", "error") == [(["facts"], True, None)]
    assert begun["state"] in ("building", "comparing", "compared")


async def test_the_access_log_has_the_operation_the_status_and_the_token_of_every_request(
    log: pytest.LogCaptureFixture,
) -> None:
    async with serving(token=TOKEN) as running:
        await running.post("/v1/query", {"text": "tea"})
        await running.get("/v1/explain/claim-1")
        await running.get("/livez")
        await running.get("/v1/none")
        await running.client.get("/v1/status", headers={"Authorization": "Bearer wrong"})
        await running.client.get("/v1/status", headers={"Host": "evil.example"})
    entries = lines(log, "access")

    assert parts(entries, "operation", "method", "status", "token", "level") == [
        ("query", "POST", 200, "token", "info"),
        ("explain", "GET", 200, "token", "info"),
        ("livez", "GET", 200, None, "debug"),
        (None, "GET", 404, "token", "info"),
        (None, "GET", 401, None, "warning"),
        (None, "GET", 421, None, "warning"),
    ]
    assert {entry["address"] for entry in entries} == {"127.0.0.1"}
    assert all(isinstance(entry["duration_ms"], float) and entry["bytes"] for entry in entries)


@in_the_gate
async def test_no_text_no_question_and_no_token_is_logged(log: pytest.LogCaptureFixture) -> None:
    document = as_fields("claim-3", topic="tea") | {"title": CANARY, "text": CANARY, "value": CANARY}
    async with serving(token=TOKEN) as running:
        await running.post_documents(document)
        await running.client.post("/v1/documents", content=f'{{"a": "{CANARY}"}}\n"{CANARY}"\n', headers=LINES)
        await running.post("/v1/documents", {"id": "claim-4", "type": CANARY, "time": CANARY})
        await running.post("/v1/query", {"text": CANARY, "k": CANARY})
        await running.post("/v1/search", {"text": CANARY})
        await running.get(f"/v1/explain/{CANARY}")
        await running.get("/v1/frontier", scope=f"topic={CANARY}")
        await running.get(f"/v1/{CANARY}", token=CANARY)
        await running.client.get("/v1/status", headers={"Authorization": f"Bearer {CANARY}", "User-Agent": CANARY})
        await running.client.get(f"/v1/status?{CANARY}", headers={"Host": CANARY, "Referer": CANARY})
    written = [LogFormat(as_json=as_json).format(record) for record in log.records for as_json in (False, True)]

    assert len(written) >= 20
    assert [line for line in written if CANARY in line or TOKEN in line] == []

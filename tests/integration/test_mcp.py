"""The Model Context Protocol: what the tools answer, to whom, and within which budget, by the SDK's own client."""

import logging
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import jsonschema
import msgspec
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

import stream_car
from stream_car.api.operations import ROLES
from stream_car.http import app
from stream_car.http.audit_log import AuditRecord
from stream_car.http.body_room import Body, BodyRoom
from stream_car.http.tokens import TokenFile, make_token
from stream_car.integrations.mcp.mcp_calls import EngineCalls
from stream_car.integrations.mcp.mcp_endpoint import McpEndpoint
from stream_car.integrations.mcp.mcp_server import make_server
from stream_car.integrations.mcp.mcp_tools import BUDGET_TOKENS_MIN
from tests.support.http_service import serving
from tests.support.mcp_over_http import HEADERS, call_tool
from tests.support.passwords import CURRENT, QUESTION, SCOPE, SUPERSEDED, engine_with_policies, policy
from tests.support.repository import ROOT
from tests.support.server_process import Server

PAIRS = [f"{key}={value}" for key, value in SCOPE.items()]
CALLS: Mapping[str, Mapping[str, object]] = {
    "ask": {"text": QUESTION},
    "resolve": {"names": [f"{SUPERSEDED}#3", "elsewhere"]},
    "check": {"ids": [SUPERSEDED], "question": QUESTION},
    "explain": {"name": SUPERSEDED},
    "history": {"scope": PAIRS},
    "changes": {"scope": PAIRS},
    "remember": {"text": "The staging database is db-7", "key": "staging::database", "object": "db-7"},
    "recall": {"query": "staging database", "include_superseded": True},
    "forget": {"key": "staging::database"},
}
WRITING = {"remember": False, "forget": True}  # and whether it destroys
NEEDS_PUBLISH = "role: The token does not have the role `publish`, which this needs."


class Remembered(msgspec.Struct):
    object: str
    superseded: list["Remembered"] = []


@asynccontextmanager
async def client_of(engine: stream_car.Engine) -> AsyncIterator[Client]:
    calls = EngineCalls(engine)
    async with Client(make_server(lambda _: calls, lambda _: ROLES)) as client:
        yield client


async def answer_of(client: Client, tool: str, **arguments: object) -> dict[str, object]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return msgspec.convert(result.structured_content, dict[str, object])


async def error_of(client: Client, tool: str, **arguments: object) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    [content] = result.content
    return str(getattr(content, "text", ""))


async def test_every_tool_answers_as_its_schema_says() -> None:
    with engine_with_policies() as engine:
        async with client_of(engine) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            for name, arguments in CALLS.items():
                jsonschema.validate(arguments, tools[name].input_schema)
                answer = await answer_of(client, name, **arguments)
                jsonschema.validate(answer, tools[name].output_schema or {})
                hints = tools[name].annotations
                assert hints is not None
                assert (hints.read_only_hint, hints.open_world_hint) == (name not in WRITING, False)
                assert hints.destructive_hint == WRITING.get(name, False)

    assert tools.keys() == CALLS.keys()


async def test_the_tools_answer_what_the_library_answers() -> None:
    with engine_with_policies() as engine:
        async with client_of(engine) as client:
            now = await answer_of(client, "ask", text=QUESTION, scope=PAIRS)
            before = await answer_of(client, "ask", text=QUESTION, scope=PAIRS, as_of="2023-01-01")
            resolved = await answer_of(client, "resolve", names=[f"{SUPERSEDED}#3"])
            checked = await answer_of(client, "check", ids=[SUPERSEDED])

    assert controlling(now["answer"]["groups"]) == {CURRENT}  # type: ignore[index]
    assert controlling(before["answer"]["groups"]) == {SUPERSEDED}  # type: ignore[index]
    assert resolved["answer"][0]["status"] == "superseded"  # type: ignore[index]
    assert controlling(resolved["answer"][0]["groups"]) == {CURRENT}  # type: ignore[index]
    assert checked["answer"]["repaired"] == [CURRENT]  # type: ignore[index]


def controlling(groups: Sequence[Mapping[str, Sequence[Mapping[str, Mapping[str, str]]]]]) -> set[str]:
    return {control["document"]["id"] for group in groups for control in group["controlling"]}


async def test_changes_continue_after_the_last_position() -> None:
    with engine_with_policies() as engine:
        async with client_of(engine) as client:
            first = await answer_of(client, "changes")
            position = first["answer"][-1]["position"]  # type: ignore[index]
            nothing = await answer_of(client, "changes", after=position)
            engine.publish([policy(2026, "30 days")])
            more = await answer_of(client, "changes", after=position)

    assert nothing == {"answer": []}
    assert [change["cause"]["id"] for change in more["answer"]] == ["policy-2026"]  # type: ignore[attr-defined]


async def test_an_agent_remembers_recalls_and_forgets_and_owners_never_mix() -> None:
    staging = {"key": "staging::database", "user_id": "ada"}
    with stream_car.open() as engine:
        async with client_of(engine) as client:
            await answer_of(client, "remember", text="The staging database is db-3", object="db-3", **staging)
            later = await answer_of(client, "remember", text="It is db-7 now", object="db-7", **staging)
            held = await answer_of(client, "recall", query="staging database", user_id="ada", include_superseded=True)
            other = await answer_of(client, "recall", query="staging database", user_id="bob")
            forgotten = await answer_of(client, "forget", **staging)
            nothing = await answer_of(client, "recall", query="staging database", user_id="ada")

    assert later["answer"]["event"] == "SUPERSEDE"  # type: ignore[index]
    [item] = msgspec.convert(held["answer"], list[Remembered])
    assert (item.object, [former.object for former in item.superseded]) == ("db-7", ["db-3"])
    assert (other, nothing) == ({"answer": []}, {"answer": []})
    assert forgotten["answer"]["count"] == 2  # type: ignore[index]
    assert "stay in the log" in forgotten["answer"]["message"]  # type: ignore[index]


async def test_a_result_fits_into_its_budget_and_says_what_is_left_out() -> None:
    with stream_car.open() as engine:
        engine.publish([{**policy_text(year), "text": "never ever " * 300} for year in range(1900, 2000)])
        async with client_of(engine) as client:
            for budget in (BUDGET_TOKENS_MIN * 3, 2_000, 4_000):
                answer = await answer_of(client, "changes", budget_tokens=budget)
                texts = await answer_of(client, "ask", text="never", k=50, budget_tokens=budget)

                assert len(msgspec.json.encode(answer)) <= budget * 4
                assert len(msgspec.json.encode(texts)) <= budget * 4
                assert "Texts are cut" in str(texts["note"])
                assert "Texts are cut" not in str(answer["note"])
                changes = answer["answer"]
                assert isinstance(changes, list)
                assert len(changes) + msgspec.convert(answer["omitted"], int) == 100
            error = await error_of(client, "explain", name="policy-1950", budget_tokens=BUDGET_TOKENS_MIN)

    assert error.startswith("budget_tokens: `budget_tokens` is too small. The smallest result has about ")


def policy_text(year: int) -> dict[str, object]:
    """Return a policy whose scope no other has."""
    scope = {"subject": f"passwords {year}", "relation": "expiry"}
    return {"id": f"policy-{year}", "type": "fact", "time": f"{year}-01-01", "scope": scope, "value": str(year)}


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("ask", {"text": " "}, "text"),
        ("ask", {}, "text"),
        ("ask", {"text": "x", "k": 101}, "k"),
        ("ask", {"text": "x", "budget_tokens": 0}, "budget_tokens"),
        ("ask", {"text": "x", "colour": "red"}, "field"),
        ("ask", {"text": "x", "as_of": "yesterday"}, "as_of"),
        ("resolve", {"names": ["x"] * 1001}, "names"),
        ("history", {"scope": []}, "scope"),
        ("history", {"scope": ["no pair"]}, "scope"),
        ("remember", {"text": " "}, "messages"),
        ("remember", {"text": "x" * 100_001}, "text"),
        ("remember", {"text": "x", "key": "a\x00b"}, "key"),
        ("forget", {}, "key"),
        ("changes", {"after": "nowhere"}, "after"),
    ],
)
async def test_a_wrong_argument_is_an_error_that_an_agent_can_act_on(
    tool: str, arguments: Mapping[str, object], code: str
) -> None:
    with engine_with_policies() as engine:
        async with client_of(engine) as client:
            error = await error_of(client, tool, **arguments)

    assert error.startswith(f"{code}: ")
    assert error.endswith(".")


@pytest.mark.parametrize("tool", ["remember", "recall", "forget"])
async def test_without_the_pack_of_memories_each_of_their_tools_says_how_to_add_it(tool: str) -> None:
    with stream_car.open(rules=["facts"]) as engine:
        async with client_of(engine) as client:
            error = await error_of(client, tool, **CALLS[tool])

    assert error.startswith("rules: The rules of this data do not include the pack 'memory'.")
    assert error.endswith("stream-car rebuild --rules facts --rules memory.")


async def test_documents_scopes_and_rules_are_resources() -> None:
    with engine_with_policies() as engine:
        async with client_of(engine) as client:
            [rules] = (await client.list_resources()).resources
            templates = (await client.list_resource_templates()).resource_templates
            texts = [
                await text_of(client, rules.uri),
                await text_of(client, f"stream-car://documents/{SUPERSEDED}"),
                await text_of(client, "stream-car://scopes/subject%3Dpassword%20policy%2Crelation%3Dexpiry"),
            ]
            for wrong in ("stream-car://documents/elsewhere", "stream-car://nowhere/x", "http://example.com/"):
                with pytest.raises(MCPError, match="There is nothing at"):
                    await client.read_resource(wrong)

    assert [template.uri_template for template in templates] == [
        "stream-car://documents/{name}",
        "stream-car://scopes/{scope}",
    ]
    assert '"facts"' in texts[0]
    assert '"status":"superseded"' in texts[1]
    assert CURRENT in texts[2]


async def text_of(client: Client, uri: str) -> str:
    [content] = (await client.read_resource(uri)).contents
    return str(getattr(content, "text", ""))


def started(*options: str) -> StdioServerParameters:
    """Return how a program starts `stream-car mcp`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAM_CAR_")}
    return StdioServerParameters(
        command=sys.executable,
        args=["-c", "from stream_car.cli import main; main()", "mcp", *options],
        env={**environment, "PYTHONPATH": str(ROOT)},
    )


async def test_an_agent_uses_a_data_directory_over_standard_input_and_output(tmp_path: Path) -> None:
    with stream_car.open(tmp_path / "data") as engine:
        engine.publish([policy(2022, "90 days"), policy(2024, "never")])
    async with Client(started("--data", str(tmp_path / "data"))) as client:
        now = await answer_of(client, "ask", text=QUESTION)

    assert controlling(now["answer"]["groups"]) == {CURRENT}  # type: ignore[index]


async def test_an_agent_uses_a_service_over_standard_input_and_output_and_over_http(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        with stream_car.connect(server.url) as publisher:
            publisher.publish([policy(2022, "90 days"), policy(2024, "never")])
        async with Client(started("--url", server.url)) as client:
            over_pipes = await answer_of(client, "ask", text=QUESTION)
        async with Client(f"{server.url}/mcp") as client:
            over_http = await answer_of(client, "ask", text=QUESTION)

    assert controlling(over_pipes["answer"]["groups"]) == {CURRENT}  # type: ignore[index]
    assert over_http == over_pipes


async def test_over_http_the_tokens_and_roles_of_the_service_hold(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reader, reader_line = make_token("the-reader", ["read"])
    publisher, publisher_line = make_token("the-publisher", ["publish"])
    file = tmp_path / "tokens"
    writer, writer_line = make_token("the-writer", ["read", "publish"])
    file.write_text(f"{reader_line}\n{publisher_line}\n{writer_line}\n")
    caplog.set_level(logging.INFO, logger="stream_car.audit")
    with engine_with_policies() as engine:
        async with serving(engine=engine, tokens=TokenFile(file), endpoints={"/mcp": McpEndpoint}) as running:
            allowed = await call_tool(running.client, reader, "explain", {"name": SUPERSEDED})
            denied = await call_tool(running.client, publisher, "explain", {"name": SUPERSEDED})
            reading = await call_tool(running.client, reader, "remember", {"text": "x"})
            writing = await call_tool(running.client, writer, "remember", {"text": "x"})
            stranger = await running.client.post("/mcp", json={}, headers=HEADERS)
            page = await running.client.get("/mcp", headers={"Authorization": f"Bearer {reader}"})

    published = [record.msg for record in caplog.records if isinstance(record.msg, AuditRecord)]
    assert not allowed.isError
    assert (reading.isError, reading.text) == (True, NEEDS_PUBLISH)
    assert not writing.isError
    assert [record.token for record in published] == ["the-writer"]
    assert (denied.isError, denied.text[:5]) == (True, "role:")
    assert (stranger.status_code, page.status_code) == (401, 405)


async def test_without_the_extra_the_endpoint_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.lowlevel", None)
    monkeypatch.delitem(sys.modules, "stream_car.integrations.mcp.mcp_server")
    async with serving(endpoints={"/mcp": McpEndpoint}) as running:
        response = await running.client.post("/mcp", json={}, headers=HEADERS)

    assert response.status_code == 501
    assert "pip install 'stream-car[mcp]'" in response.json()["detail"]


async def test_bodies_of_mcp_are_bounded_as_all_bodies_and_count_as_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []

    class Counted(BodyRoom):
        async def reserve(self, body: Body, size: int) -> None:
            await super().reserve(body, size)
            held.append(self.held)

    monkeypatch.setattr(app, "BodyRoom", Counted)
    async with serving(endpoints={"/mcp": McpEndpoint}) as running:
        answer = await running.client.post(
            "/mcp", json={"jsonrpc": "2.0", "id": 1, "filler": "x" * 50_000}, headers=HEADERS
        )
        monkeypatch.setattr(app, "REQUEST_MAX", 1_000)
        too_large = await running.client.post("/mcp", content=b"x" * 1_001, headers=HEADERS)

    assert answer.status_code < 500
    assert max(held) >= 50_000
    assert (too_large.status_code, too_large.json()["code"]) == (413, "size")

"""The protocol's own suites against `/mcp` and `stream-car mcp`: its conformance tests, and its inspector.

Of the conformance tests, those that need no tool or resource of the suite's own example server. `make mcp` runs them.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

import stream_car
from tests.support.passwords import CURRENT, QUESTION, SUPERSEDED, policy
from tests.support.repository import ROOT
from tests.support.server_process import PROGRAM, Server

SUITES = Path(os.environ.get("MCP_SUITES", "nowhere"))
NODE = os.environ.get("NODE", "node")
SCENARIOS = ("server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection")
pytestmark = pytest.mark.skipif(not SUITES.is_dir(), reason="`make mcp` installs the suites and runs these tests")


class InspectedTool(msgspec.Struct):
    name: str


class InspectedTools(msgspec.Struct):
    tools: list[InspectedTool]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Server(tmp_path_factory.mktemp("served") / "data", stderr=subprocess.DEVNULL) as server:
        with stream_car.connect(server.url) as client:
            client.publish([policy(2022, "90 days"), policy(2024, "never")])
        yield f"{server.url}/mcp"


def run(*words: str, folder: Path) -> str:
    path = f"{Path(NODE).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [NODE, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def inspect(target: Sequence[str], *words: str, folder: Path) -> str:
    launcher = SUITES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
    return run(str(launcher), "--cli", *target, *words, folder=folder)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_service_conforms_to_the_protocol(url: str, scenario: str, tmp_path: Path) -> None:
    suite = SUITES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    report = run(str(suite), "server", "--url", url, "--scenario", scenario, folder=tmp_path)

    assert "0 failed, 0 warnings" in report


def test_the_inspector_lists_nine_tools_calls_them_and_reads_a_resource_over_http(url: str, tmp_path: Path) -> None:
    target = (url, "--transport", "http")
    tools = msgspec.json.decode(inspect(target, "--method", "tools/list", folder=tmp_path), type=InspectedTools).tools
    call = ("--method", "tools/call", "--tool-name", "ask", "--tool-arg", f"text={QUESTION}")
    answer = inspect(target, *call, folder=tmp_path)
    uri = f"stream-car://documents/{SUPERSEDED}"
    resource = inspect(target, "--method", "resources/read", "--uri", uri, folder=tmp_path)

    assert len(tools) == 9
    assert CURRENT in answer
    assert "superseded" in resource


def test_the_inspector_talks_to_the_command_over_pipes(tmp_path: Path) -> None:
    with stream_car.open(tmp_path / "data") as engine:
        engine.publish([policy(2022, "90 days"), policy(2024, "never")])
    target = (sys.executable, "-c", PROGRAM, "mcp", "--data", str(tmp_path / "data"))
    config = tmp_path / "mcp.json"
    servers = {
        "mcpServers": {"stream-car": {"command": target[0], "args": target[1:], "env": {"PYTHONPATH": str(ROOT)}}}
    }
    config.write_bytes(msgspec.json.encode(servers))
    options = ("--config", str(config), "--server", "stream-car")
    call = ("--method", "tools/call", "--tool-name", "ask", "--tool-arg", f"text={QUESTION}")

    assert CURRENT in inspect(options, *call, folder=tmp_path)

"""A folder opens with the rules that it was built with, through every public entry point."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

import stream_car
from stream_car.cli import main
from stream_car.errors import InvalidRequest
from stream_car.http.tokens import make_token
from tests.support.server_process import Server

AHEAD = '{"id": "f1", "type": "fact", "time": "2990-01-01T00:00:00Z", "scope": {"subject": "tea"}}\n'


def run(data: Path, *arguments: str, text: str | None = None) -> Result:
    return CliRunner(env={"STREAM_CAR_DATA": str(data)}).invoke(main, arguments, input=text)


@pytest.fixture
def applied(tmp_path: Path) -> Path:
    """A folder in which documents ahead of their time count, because the command rebuilt it so."""
    assert run(tmp_path, "publish", "-", "--rules", "facts", text=AHEAD).exit_code == 0
    assert run(tmp_path, "resolve", "f1", "--json").stdout.count('"pending"') == 1
    assert run(tmp_path, "rebuild", "--future", "apply").exit_code == 0
    return tmp_path


def test_the_library_opens_it(applied: Path) -> None:
    with stream_car.open(applied) as car:
        assert car.resolve(["f1"])[0].status == "in_force"
        assert car.status().generation.endswith("-apply")
    with stream_car.open(applied, rules=["facts"], future="apply") as car:
        assert car.resolve(["f1"])[0].status == "in_force"


@pytest.mark.parametrize(
    "arguments",
    [
        ("query", "f1"),
        ("resolve", "f1"),
        ("frontier", "subject=tea"),
        ("history", "subject=tea"),
        ("changes",),
        ("explain", "f1"),
        ("pending",),
        ("rejected", "list"),
        ("doctor",),
        ("rebuild", "--dry-run"),
        ("rules", "show"),
        ("resolve", "f1", "--rules", "facts"),
    ],
    ids=" ".join,
)
def test_every_command_opens_it(applied: Path, arguments: tuple[str, ...]) -> None:
    result = run(applied, *arguments)

    assert result.exit_code in (0, 1), result.stderr
    assert "different rules" not in result.stderr
    assert "was asked for" not in result.stderr


def test_the_command_publishes_into_it_and_changes_it_back(applied: Path) -> None:
    later = AHEAD.replace("f1", "f2").replace("2990", "2991")
    assert '"accepted":1' in run(applied, "publish", "-", "--json", text=later).stdout
    assert run(applied, "rebuild", "--future", "wait").exit_code == 0
    assert run(applied, "resolve", "f1", "f2", "--json").stdout.count('"pending"') == 2


def test_a_service_opens_it_and_changes_it_while_it_runs(applied: Path) -> None:
    settings = applied.with_name("settings.toml")
    token, line = make_token("operator", ["admin"])
    applied.with_name("tokens").write_text(line)
    settings.write_text(f'token_file = "{applied.with_name("tokens")}"\n')
    with Server(applied, "--settings", str(settings)) as server, stream_car.connect(server.url, token=token) as car:
        assert car.resolve(["f1"])[0].status == "in_force"
        assert car.rebuild(future="wait").state == "switched"
        assert car.resolve(["f1"])[0].status == "pending"
    with stream_car.open(applied) as reopened:
        assert reopened.resolve(["f1"])[0].status == "pending"


def test_rules_that_differ_are_named_on_both_sides(applied: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"It has: facts\. Requested: legal\. Omit --rules") as caught:
        stream_car.open(applied, rules=["legal"])
    assert caught.value.code == "rules"
    with pytest.raises(InvalidRequest, match=r"built with future=apply, but future=wait was requested"):
        stream_car.open(applied, future="wait")
    result = run(applied, "resolve", "f1", "--rules", "legal")
    assert result.exit_code == 2
    assert "It has: facts. Requested: legal." in result.stderr.replace("\n", " ")


def test_a_pack_that_was_edited_is_told_from_itself(tmp_path: Path) -> None:
    pack = tmp_path / "mine.toml"
    pack.write_text('name = "mine"\n[types]\nfact = "A fact."\n[keys.subject]\n')
    with stream_car.open(tmp_path / "data", rules=[pack]) as car:
        car.publish(msgspec.json.decode(AHEAD))
    pack.write_text('name = "mine"\n[types]\nfact = "A fact."\nguess = "None."\n[keys.subject]\n')

    with pytest.raises(InvalidRequest, match="the same names, now"):
        stream_car.open(tmp_path / "data", rules=[pack])
    with stream_car.open(tmp_path / "data") as car:
        assert car.resolve(["f1"])[0].status == "pending"

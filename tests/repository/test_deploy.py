"""`docker-compose.yml` and `deploy/` name only commands, variables and files that exist; no container is started."""

import ast
import asyncio
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

import click
import msgspec
import pytest
from jsonschema.validators import validator_for
from msgspec import Struct

import stream_car
from deploy.local import kafka
from stream_car import settings
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.cli import main
from tests.support.http_service import serving
from tests.support.repository import ROOT

YAML = pytest.importorskip("ruamel.yaml", reason="it is in the dev extra: pip install -e '.[dev]'").YAML
COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
RUNBOOK = ROOT / "deploy" / "runbook.md"
PINNED = re.compile(r"[a-z0-9/.-]+:\d+\.\d+\.\d+[a-z0-9.-]*")


class Build(Struct):
    """How one of our images is built."""

    context: str
    dockerfile: str


class Service(Struct):
    """The fields of a service that are checked."""

    image: str
    profiles: list[str]
    build: Build | None = None
    command: list[str] = []
    environment: dict[str, str | int] = {}
    volumes: list[str] = []
    ports: list[str] = []
    depends_on: dict[str, dict[str, str]] = {}
    healthcheck: dict[str, object] | None = None


class Composed(Struct):
    """The file as a whole."""

    name: str
    services: dict[str, Service]
    volumes: dict[str, None]


CONTENT = YAML(typ="safe").load(COMPOSE.read_text(encoding="utf-8"))
FILE = msgspec.convert(CONTENT, Composed)
OURS = {name: service for name, service in FILE.services.items() if service.build is not None}


def instructions(name: str) -> list[str]:
    """Return the arguments of every such instruction of the Dockerfile, with continued lines joined."""
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    return [line.removeprefix(name).strip() for line in text.splitlines() if line.startswith(f"{name} ")]


def codes() -> Iterator[str]:
    """Yield the first argument of every `Halted(...)` in the sources."""
    for path in (ROOT / "stream_car").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Halted":
                code = ast.literal_eval(node.args[0])
                assert isinstance(code, str)
                yield code


def parse(words: list[str]) -> None:
    """Parse these words as the command line does, without running anything."""
    command: click.Command = main
    context: click.Context | None = None
    for _ in range(len(words) + 1):
        context = command.make_context(command.name, list(words), parent=context)
        if not isinstance(command, click.Group):
            return
        _, subcommand, words = command.resolve_command(context, [*context._protected_args, *context.args])
        assert subcommand is not None
        command = subcommand


def test_the_file_meets_the_specification_of_compose() -> None:
    package = find_spec("check_jsonschema")  # only the specification that it contains is used
    assert package is not None and package.origin is not None
    vendored = Path(package.origin).parent / "builtin_schemas" / "vendor" / "compose-spec.json"
    schema = json.loads(vendored.read_text(encoding="utf-8"))
    validator = validator_for(schema)(schema)

    assert not validator.is_valid({"services": {"kafka": {"imagine": "apache/kafka"}}})
    assert [error.message for error in validator.iter_errors(CONTENT)] == []


def test_every_image_is_pinned() -> None:
    bases = [line.split()[0] for line in instructions("FROM")]

    assert len(bases) == 2
    assert [
        image for image in [*bases, *(service.image for service in FILE.services.values())] if not PINNED.match(image)
    ] == []


def test_images_are_of_the_versions_that_are_tested() -> None:
    assert FILE.services["kafka"].image == f"apache/kafka:{kafka.VERSION}"
    assert {service.image for service in OURS.values()} == {f"stream-car:{stream_car.__version__}"}


def test_every_service_has_a_profile_and_depends_on_services_of_the_same_one() -> None:
    assert {profile for service in FILE.services.values() for profile in service.profiles} == {"embedded", "servers"}
    for service in FILE.services.values():
        for name in service.depends_on:
            assert FILE.services[name].profiles == service.profiles


def test_a_service_that_must_be_healthy_has_a_check() -> None:
    waited = {
        name
        for service in FILE.services.values()
        for name, how in service.depends_on.items()
        if how["condition"] == "service_healthy"
    }

    assert waited == {"kafka", "redis"}
    assert all((FILE.services[name].healthcheck or {}).get("test") for name in waited)


def test_nothing_listens_beyond_this_machine() -> None:
    ports = [port for service in FILE.services.values() for port in service.ports]

    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


@pytest.mark.parametrize("name", OURS)
def test_a_command_that_a_service_names_is_one_of_the_command_line(name: str) -> None:
    parse(OURS[name].command)


def test_a_wrong_option_is_detected() -> None:
    with pytest.raises(click.UsageError):
        parse(["serve", "--hosts", "localhost"])


def test_every_variable_of_a_service_is_a_setting() -> None:
    named = {variable for service in OURS.values() for variable in service.environment}

    assert "STREAM_CAR_KAFKA" in named
    assert named <= settings.KNOWN


def test_what_a_person_must_set_is_at_the_top_of_the_file() -> None:
    head, _, body = COMPOSE.read_text(encoding="utf-8").partition("\nname:")
    required = set(re.findall(r"\$\{([A-Z_]+):\?", body))

    assert required == {"STREAM_CAR_TOKEN"}
    assert all(f"export {variable}=" in head for variable in required)


def test_every_file_and_volume_that_a_service_mounts_exists() -> None:
    mounted = [volume.split(":")[0] for service in FILE.services.values() for volume in service.volumes]
    files = [source for source in mounted if source.startswith(".")]

    assert len(files) == 2
    assert [source for source in files if not (ROOT / source).exists()] == []
    assert set(mounted) - set(files) == set(FILE.volumes)


def test_the_image_is_built_from_files_that_exist_and_are_not_ignored() -> None:
    for service in OURS.values():
        assert service.build == Build(context=".", dockerfile="deploy/Dockerfile")
    copied = [word for line in instructions("COPY") if "--from" not in line for word in line.split()[:-1]]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()

    assert "stream_car" in copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert [name for name in copied if f"!{name}" not in ignored] == []
    assert any(fnmatch("anything", line) for line in ignored)


def test_the_image_runs_as_a_user_without_privileges() -> None:
    (user,) = instructions("USER")

    assert all(int(number) >= 1000 for number in user.split(":"))


async def test_the_image_serves_where_its_check_looks() -> None:
    (check,) = instructions("HEALTHCHECK")
    python, option, program = msgspec.json.decode(check[check.index("[") :], type=list[str])
    address = "http://127.0.0.1:8377"
    assert (python, option) == ("python", "-c")
    assert address in program

    async def checked(url: str) -> int:
        request = program.replace(address, url)
        running = await asyncio.create_subprocess_exec(sys.executable, "-c", request, stderr=subprocess.DEVNULL)
        return await running.wait()

    async with serving(token="a-token-of-the-test") as running:
        assert await checked(running.url) == 0
        assert await checked(f"{running.url}/nowhere") == 1


def test_the_default_of_the_image_is_a_command() -> None:
    assert msgspec.json.decode(instructions("ENTRYPOINT")[0]) == ["stream-car"]

    parse(msgspec.json.decode(instructions("CMD")[-1], type=list[str]))


def test_the_brokers_own_settings_are_those_that_topics_must_have() -> None:
    properties = kafka.read_properties(kafka.SETTINGS)
    layout = Layout(single_broker=True)
    wanted = layout.settings(layout.topics()[0])

    for name in ("cleanup.policy", "retention.ms", "retention.bytes", "message.timestamp.type"):
        assert properties[f"log.{name}"] == wanted[name]
    assert properties["unclean.leader.election.enable"] == wanted["unclean.leader.election.enable"]


def test_the_runbook_has_a_section_for_every_reason_of_a_halt() -> None:
    sections = set(re.findall(r"^### `(\w+)`", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE))

    assert len(set(codes())) >= 8
    assert set(codes()) - sections == set()


@pytest.mark.parametrize("page", sorted((ROOT / "deploy").glob("*.md")), ids=lambda page: page.name)
def test_commands_in_the_pages_of_deploy_are_those_of_the_command_line(page: Path) -> None:
    blocks = re.findall(r"^```(?:console|sh)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for line in "".join(blocks).splitlines():
        words = shlex.split(line, comments=True)
        while words and "=" in words[0]:
            words.pop(0)
        if words[:1] == ["stream-car"]:
            parse(words[1:])

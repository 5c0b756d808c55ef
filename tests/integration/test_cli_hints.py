"""What the command line advises: commands that look where this one looked, and cures that are at hand."""

import asyncio
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import stream_car
from stream_car.cli import main
from stream_car.cli.hints import again
from tests.integration.test_cli_service import listener_of, plain_of
from tests.support.engines import document
from tests.support.http_service import serving

TOKEN = "a-token-for-tests"
CLAIM = document("c1", topic="tea")
STRANGE = b'{"id": "s", "type": "strange", "time": "2020-01-01T00:00:00Z"}'
HALF = "{half\n"


def invoked(*arguments: str, text: str | None = None, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(main, arguments, input=text)


async def run(*arguments: str, text: str | None = None, **environment: str) -> Result:
    return await asyncio.to_thread(invoked, *arguments, text=text, **environment)


def advice(result: Result) -> set[str]:
    """The commands that are advised, each at the end of its line."""
    return {text[text.index("stream-car ") :] for text in result.output.splitlines() if "stream-car " in text}


HINTS = [
    (("explain", "nosuch"), "rejected list"),
    (("publish", "-"), "rejected list"),
    (("query", "about tea"), "pending"),
    (("query", "quantum"), "frontier KEY=VALUE"),
    (("rejected", "list"), "rejected show OFFSET"),
    (("rejected", "show", "777"), "rejected list"),
    (("rejected", "replay", "777"), "rejected list"),
    (("rejected", "replay", "--edit"), "rejected list"),
]


@pytest.mark.parametrize(("arguments", "command"), HINTS)
async def test_an_advised_command_asks_the_service_that_this_one_asked(
    arguments: tuple[str, ...], command: str
) -> None:
    async with serving() as running:
        running.engine.publish([CLAIM, document("later", at=5000, topic="tea"), b"{half"])
        typed = await run(*arguments, "--url", running.url, text=HALF)
        named = await run(*arguments, text=HALF, STREAM_CAR_URL=running.url)

    assert f"stream-car {command} --url {running.url}" in advice(typed)
    assert f"stream-car {command}" in advice(named)
    assert all(told.endswith(running.url) for told in advice(typed))


async def test_what_other_packs_would_make_of_a_type_is_asked_of_that_service() -> None:
    async with serving() as running:
        running.engine.publish([STRANGE])
        result = await run("explain", "s", "--url", running.url)

    assert f"stream-car rebuild --rules ... --dry-run --url {running.url}" in advice(result)


def test_an_advised_command_looks_into_the_folder_that_was_typed(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    refused = invoked("publish", "-", "--data", str(folder), text=HALF)
    listed = invoked("rejected", "list", "--data", str(folder))
    watched = invoked("watch", "--data", str(folder))

    assert advice(refused) == {f"stream-car rejected list --data {shlex.quote(str(folder))}"}
    assert advice(listed) == {f"stream-car rejected show OFFSET --data {shlex.quote(str(folder))}"}
    assert f"stream-car up --data {shlex.quote(str(folder))}, then" in watched.stderr


def test_an_advised_command_reads_the_topics_that_were_typed() -> None:
    @click.command()
    @click.option("--kafka")
    @click.option("--prefix", default="car")
    def command(kafka: str, prefix: str) -> None:
        click.echo(again("rejected list"))

    told = CliRunner().invoke(command, ["--kafka", "localhost:9092"]).stdout
    other = CliRunner().invoke(command, ["--kafka", "localhost:9092", "--prefix", "other"]).stdout

    assert told == "stream-car rejected list --kafka localhost:9092\n"
    assert other == "stream-car rejected list --kafka localhost:9092 --prefix other\n"


async def test_a_wrong_token_is_told_from_none_and_both_say_where_it_is_given() -> None:
    async with serving(token=TOKEN) as running:
        none = await run("pending", "--url", running.url)
        wrong = await run("pending", "--url", running.url, STREAM_CAR_TOKEN=TOKEN + "-not")

    assert "no token was sent" in none.stderr and "not the one of this service" in wrong.stderr
    for result in (none, wrong):
        assert result.exit_code == 2
        assert "set $STREAM_CAR_TOKEN" in result.stderr and "`token`" in result.stderr
        assert "Authorization" not in result.stderr


@pytest.mark.parametrize(("token", "complaint"), [("", "is empty"), (" ", "is empty"), ("short", "is no token")])
def test_a_token_that_can_be_none_is_not_made_by_whoever_asks(token: str, complaint: str) -> None:
    result = invoked("pending", "--url", "http://127.0.0.1:9", STREAM_CAR_TOKEN=token)

    assert result.exit_code == 2
    assert complaint in result.stderr and "unset it" in result.stderr
    assert "openssl" not in result.stderr


async def test_an_address_with_a_wrong_scheme_or_a_path_says_what_to_change() -> None:
    async with serving() as running:
        secure = await run("pending", "--url", running.url.replace("http:", "https:"))
        deep = await run("pending", "--url", running.url + "/v1")

    assert (secure.exit_code, deep.exit_code) == (2, 2)
    assert f"perhaps it speaks plain HTTP: {running.url}" in secure.stderr
    assert "if the address has a path (/v1, say), leave it out" in deep.stderr


@pytest.mark.parametrize("command", ["doctor", "backup", "restore"])
def test_the_help_of_what_works_on_files_does_not_promise_a_service(command: str) -> None:
    told = " ".join(invoked(command, "--help").stdout.split())

    assert "Ask the service" not in told
    assert "this works on the files of --data" in told


def test_doctor_sends_nobody_to_a_service_that_it_refuses(tmp_path: Path) -> None:
    with stream_car.open(tmp_path):
        result = invoked("doctor", "--data", str(tmp_path))

    assert result.exit_code == 2
    assert "is open in process" in result.stderr and "--url" not in result.stderr
    assert f"stream-car backup COPY --data {tmp_path}, then stream-car doctor --data COPY" in result.stderr


async def test_watching_warns_of_names_that_no_rule_of_the_service_knows() -> None:
    chosen = ("--type", "klaim", "--type", "claim", "--domain", "tolk", "--domain", "talk")
    async with serving() as running:
        watching = asyncio.create_task(run("watch", *chosen, "--limit", "1", "--url", running.url))
        await listener_of(running)
        await running.post("/v1/documents", plain_of(CLAIM))
        warned = await asyncio.wait_for(watching, 20)

    assert warned.exit_code == 0
    assert "no pack knows the type 'klaim'; did you mean 'claim'?" in warned.stderr
    assert "no pack is called 'tolk'; did you mean 'talk'?" in warned.stderr


def test_watching_a_folder_warns_of_names_that_its_rules_do_not_know(tmp_path: Path) -> None:
    invoked("publish", "-", "--rules", "security", "--data", str(tmp_path), text="{}")
    warned = invoked("watch", "--type", "advisori", "packag=x", "--data", str(tmp_path))

    assert (warned.exit_code, warned.stdout) == (0, "")
    assert "did you mean 'advisory'?" in warned.stderr
    assert "did you mean 'package'?" in warned.stderr


async def test_a_file_whose_cursor_cannot_be_gone_on_from_is_to_be_removed(tmp_path: Path) -> None:
    file = tmp_path / "bad.txt"
    file.write_text("nonsense\n")
    async with serving() as running:
        served = await run("watch", "--cursor", str(file), "--url", running.url)
    local = await run("watch", "--cursor", str(file), "--data", str(tmp_path))

    for result in (served, local):
        assert result.exit_code == 2
        assert f"remove {file}, or name another file" in result.stderr
        assert "leave the cursor out" not in result.stderr


async def test_numbers_beyond_those_of_a_service_are_refused_in_the_words_of_the_options(tmp_path: Path) -> None:
    async with serving() as running:
        running.engine.publish([CLAIM])
        for name, number in (("--k", "101"), ("--depth", "201"), ("--budget", "1000001")):
            result = await run("query", "tea", name, number, "--url", running.url)
            assert result.exit_code == 2
            assert f"Invalid value for '{name}': a service takes at most" in result.stderr
    assert invoked("query", "tea", "--k", "1001").exit_code == 2

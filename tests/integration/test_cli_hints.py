"""What the command line advises: commands that work where this one worked, and cures that are at hand."""

import asyncio
import shlex
from pathlib import Path

import pytest
from click.testing import Result

import stream_car
from tests.support.command_line import invoke, parse, run, until_subscribed
from tests.support.engines import document
from tests.support.http_service import as_fields, serving

TOKEN = "a-token-for-tests"
CLAIM = document("c1", topic="tea")
STRANGE = b'{"id": "s", "type": "strange", "time": "2020-01-01T00:00:00Z"}'
HALF = "{half\n"


def advice(result: Result) -> set[str]:
    """Return the commands that are advised, each at the end of its line."""
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
async def test_an_advised_command_uses_the_service_that_this_one_used(arguments: tuple[str, ...], command: str) -> None:
    async with serving() as running:
        running.engine.publish([CLAIM, document("later", at=5000, topic="tea"), b"{half"])
        typed = await run(*arguments, "--url", running.url, text=HALF)
        named = await run(*arguments, text=HALF, STREAM_CAR_URL=running.url)

    assert f"stream-car {command} --url {running.url}" in advice(typed)
    assert f"stream-car {command}" in advice(named)
    assert all(command.endswith(running.url) for command in advice(typed))


async def test_an_unknown_type_advises_to_preview_other_rules_in_that_service() -> None:
    async with serving() as running:
        running.engine.publish([STRANGE])
        result = await run("explain", "s", "--url", running.url)

    assert f"stream-car rebuild --rules ... --dry-run --url {running.url}" in advice(result)


def test_an_advised_command_uses_the_data_directory_that_was_typed(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    rejected = invoke("publish", "-", "--data", str(folder), text=HALF)
    listed = invoke("rejected", "list", "--data", str(folder))
    watched = invoke("watch", "--data", str(folder))

    assert advice(rejected) == {f"stream-car rejected list --data {shlex.quote(str(folder))}"}
    assert advice(listed) == {f"stream-car rejected show OFFSET --data {shlex.quote(str(folder))}"}
    assert f"stream-car serve --data {shlex.quote(str(folder))}" in watched.stderr


async def test_a_wrong_token_and_a_missing_one_differ_and_both_name_the_cure() -> None:
    async with serving(token=TOKEN) as running:
        none = await run("pending", "--url", running.url)
        wrong = await run("pending", "--url", running.url, STREAM_CAR_TOKEN=TOKEN + "-not")

    assert "A token is required." in none.stderr and "A token is required." not in wrong.stderr
    for result in (none, wrong):
        assert result.exit_code == 2
        assert "set $STREAM_CAR_TOKEN" in result.stderr and "`token`" in result.stderr
        assert "Authorization" not in result.stderr


@pytest.mark.parametrize(("token", "complaint"), [("", "is empty"), (" ", "is empty"), ("short", "is not a token")])
def test_a_client_with_a_useless_token_is_not_advised_to_create_one(token: str, complaint: str) -> None:
    result = invoke("pending", "--url", "http://127.0.0.1:9", STREAM_CAR_TOKEN=token)

    assert result.exit_code == 2
    assert complaint in result.stderr and "unset it" in result.stderr
    assert "openssl" not in result.stderr


async def test_an_address_with_a_wrong_scheme_or_a_path_says_what_to_change() -> None:
    async with serving() as running:
        secure = await run("pending", "--url", running.url.replace("http:", "https:"))
        deep = await run("pending", "--url", running.url + "/v1")

    assert (secure.exit_code, deep.exit_code) == (2, 2)
    assert f"Try plain HTTP: {running.url}" in secure.stderr
    assert "If the URL has a path (such as /v1), omit it." in deep.stderr


@pytest.mark.parametrize("command", ["doctor", "backup", "restore"])
def test_the_help_of_what_works_on_files_does_not_promise_a_service(command: str) -> None:
    text = " ".join(invoke(command, "--help").stdout.split())

    assert "Use the service" not in text
    assert "this command works on the files of --data" in text


def test_doctor_does_not_advise_a_service_that_it_rejects(tmp_path: Path) -> None:
    with stream_car.open(tmp_path):
        result = invoke("doctor", "--data", str(tmp_path))

    assert result.exit_code == 2
    assert "is open in process" in result.stderr and "--url" not in result.stderr
    assert f"stream-car backup COPY --data {tmp_path}, then stream-car doctor --data COPY" in result.stderr


async def test_watching_warns_of_names_that_the_rules_of_the_service_do_not_have() -> None:
    chosen = ("--type", "klaim", "--type", "claim", "--pack", "tolk", "--pack", "talk")
    async with serving() as running:
        watching = asyncio.create_task(run("watch", *chosen, "--limit", "1", "--url", running.url))
        await until_subscribed(running)
        await running.post_documents(as_fields("c1", topic="tea"))
        warned = await asyncio.wait_for(watching, 20)

    assert warned.exit_code == 0
    assert "No rule pack knows the type 'klaim'. Did you mean 'claim'?" in warned.stderr
    assert "No rule pack is called 'tolk'. Did you mean 'talk'?" in warned.stderr


def test_watching_a_folder_warns_of_names_that_its_rules_do_not_know(tmp_path: Path) -> None:
    invoke("publish", "-", "--rules", "security", "--data", str(tmp_path), text="{}")
    warned = invoke("watch", "--type", "advisori", "packag=x", "--data", str(tmp_path))

    assert (warned.exit_code, warned.stdout) == (0, "")
    assert "Did you mean 'advisory'?" in warned.stderr
    assert "Did you mean 'package'?" in warned.stderr


async def test_a_file_with_a_useless_cursor_is_to_be_removed(tmp_path: Path) -> None:
    file = tmp_path / "bad.txt"
    file.write_text("nonsense\n")
    async with serving() as running:
        served = await run("watch", "--cursor", str(file), "--url", running.url)
    local = await run("watch", "--cursor", str(file), "--data", str(tmp_path))

    for result in (served, local):
        assert result.exit_code == 2
        assert f"Remove {file}, or name another file" in result.stderr
        assert "Omit the cursor" not in result.stderr


async def test_numbers_that_a_service_does_not_accept_are_rejected_by_the_name_of_the_option(tmp_path: Path) -> None:
    async with serving() as running:
        running.engine.publish([CLAIM])
        for name, number in (("--k", "101"), ("--depth", "201"), ("--budget", "1000001")):
            result = await run("query", "tea", name, number, "--url", running.url)
            assert result.exit_code == 2
            assert f"Invalid value for '{name}': A service accepts at most" in result.stderr
    assert invoke("query", "tea", "--k", "1001").exit_code == 2


async def test_the_rules_of_the_data_are_shown_and_advised(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    invoke("publish", "-", "--data", folder, "--rules", "legal", text=HALF)
    shown = invoke("rules", "show", "--data", folder)
    async with serving() as running:
        remote = await run("rules", "show", "--url", running.url, "--json")
        hint = await run("frontier", "nosuch=key", STREAM_CAR_URL=running.url)

    assert "legal" in shown.stdout and "security" not in shown.stdout
    assert "rules digest" in shown.stdout
    assert [pack["name"] for pack in parse(remote)] == [pack.name for pack in running.engine.rules().packs]
    assert f"stream-car rules show --url {running.url}" in advice(hint)
    assert f"stream-car rules show --data {folder}" in advice(invoke("frontier", "nosuch=key", "--data", folder))
    assert invoke("rules", "show", "legal", "--data", folder).exit_code == 2

"""The command line does the same with a service as with a data directory."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from click.testing import Result

import stream_car
from stream_car import demo
from stream_car.codec import encode
from stream_car.core.documents import Document
from stream_car.queries.answers import RebuildStatus
from tests.support import command_line
from tests.support.command_line import invoke, parse, until_subscribed
from tests.support.contract import PEACE
from tests.support.engines import document, engine
from tests.support.http_service import TOKEN, as_fields, serving

CLAIM = document("c1", topic="tea")
DENIAL = document("d1", "denial", 3, topic="tea")
LATER = document("later", at=5000, topic="tea")


def lines(*documents: Document) -> str:
    return "".join(encode(document).decode() + "\n" for document in documents)


async def run(url: str, *arguments: str, text: str | None = None, token: str | None = None) -> Result:
    """Run a command beside the service that the environment names."""
    return await command_line.run(*arguments, text=text, STREAM_CAR_URL=url, STREAM_CAR_TOKEN=token)


COMMANDS = [
    (("query", "about tea"), 0, "d1"),
    (("query", "about tea", "--budget", "1"), 0, "a larger budget"),
    (("query", "nothing of the kind"), 1, "Nothing was found"),
    (("search", "about tea"), 0, "c1  replaced by d1"),
    (("resolve", "c1"), 0, "c1 is replaced by d1"),
    (("check", "c1"), 1, "Not safe"),
    (("explain", "c1"), 0, "denial-voids-claim"),
    (("frontier", "topic=tea"), 0, "d1"),
    (("frontier", "topik=tea"), 1, "No rule uses the key 'topik'"),
    (("history", "topic=tea"), 0, "c1"),
    (("changes",), 0, "because of d1"),
    (("pending",), 0, "later (revision 1)"),
    (("rejected", "list"), 0, "syntax"),
    (("rejected", "show", "3"), 0, "{half"),
    (("status",), 0, "3 documents from 4 messages, 1 waiting for their time"),
    (("retract", "d1"), 0, "retracted"),
    (("resolve", "c1"), 0, "c1 is in force"),
    (("retract", "d1"), 0, "duplicate"),
    (("retract", "nobody"), 1, "never published"),
]


async def test_every_command_uses_the_service_that_the_environment_names() -> None:
    async with serving() as running:
        published = await run(running.url, "publish", "-", text=lines(CLAIM, DENIAL, LATER) + "{half\n")
        results = [await run(running.url, *arguments) for arguments, _, _ in COMMANDS]

        assert published.exit_code == 1
        assert "accepted" in published.stdout and "syntax" in published.stdout
        for result, (arguments, code, text) in zip(results, COMMANDS, strict=True):
            assert (arguments, result.exit_code) == (arguments, code), result.output
            assert text in result.stdout


READS = [
    ("query", "about tea"),
    ("search", "about tea"),
    ("resolve", "c1", "nobody"),
    ("check", "d1"),
    ("explain", "c1"),
    ("frontier", "topic=tea"),
    ("history", "topic=tea"),
    ("changes",),
    ("pending",),
]


@pytest.mark.parametrize("arguments", READS)
async def test_programs_receive_the_same_from_a_service_as_from_its_data_directory(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    with engine(tmp_path) as published:
        published.publish([CLAIM, DENIAL, LATER])
    local = invoke(*arguments, "--json", "--data", str(tmp_path))
    async with serving(tmp_path) as running:
        served = await run(running.url, *arguments, "--json")

    assert local.stdout
    assert served.stdout == local.stdout


async def test_the_bytes_of_rejected_input_are_returned_as_they_were() -> None:
    async with serving() as running:
        running.engine.publish([b"\xff{"])
        shown = await run(running.url, "rejected", "show", "0", "--bytes")

    assert shown.stdout_bytes == b"\xff{"


async def test_a_data_directory_on_the_command_line_overrides_a_service_in_the_environment(tmp_path: Path) -> None:
    async with serving() as running:
        local = await run(running.url, "publish", "-", "--data", str(tmp_path / "data"), text=lines(CLAIM))
        both = await run(running.url, "pending", "--data", str(tmp_path / "data"), "--url", running.url)

        assert running.engine.status().next_offset == 0
    assert local.exit_code == 1
    assert "type_unknown" in local.stdout
    assert both.exit_code == 2
    assert "own data, rules and encoder" in both.stderr


async def test_a_token_in_the_environment_is_sent() -> None:
    async with serving(token="a-token-for-tests") as running:
        sent = await run(running.url, "pending", token="a-token-for-tests")
        missing = await run(running.url, "pending")

    assert (sent.exit_code, sent.stdout) == (0, "No document waits for its time.\n")
    assert missing.exit_code == 2
    assert "A token is required." in missing.stderr and "set $STREAM_CAR_TOKEN" in missing.stderr


DOCUMENTS = ("watch", "--view", "document")


async def test_watching_shows_what_becomes_of_documents_and_why() -> None:
    async with serving() as running:
        await running.post_documents(as_fields("c1", topic="tea"))
        watching = asyncio.create_task(run(running.url, *DOCUMENTS, "--snapshot", "topic=tea", "--limit", "2"))
        await until_subscribed(running)
        await running.post_documents(as_fields("d1", "denial", 3, topic="tea"))
        watched = await asyncio.wait_for(watching, 20)

    assert watched.exit_code == 0, watched.output
    assert watched.stdout.splitlines()[:3] == ["In force:", "= c1  c1 · claim · 2022-01-08", "Changes:"]
    assert sorted(watched.stdout.splitlines()[3:]) == [
        "+ d1 is in force  d1 · denial · 2022-01-11",
        "- c1 is replaced by d1  c1 · claim · 2022-01-11",
    ]


async def test_watching_continues_from_the_cursor_in_a_file(tmp_path: Path) -> None:
    watch = ("watch", "--cursor", str(tmp_path / "cursor"), "--limit", "1", "--json")
    async with serving() as running:
        first = asyncio.create_task(run(running.url, *watch))
        await until_subscribed(running)
        await running.post_documents(*(as_fields(name, topic=name) for name in ("a", "b", "c")))
        events = parse(await asyncio.wait_for(first, 20)) + parse(await run(running.url, *watch))

    assert [event["record"] for event in events] == ["a", "b"]
    assert [event["event"] for event in events] == ["record-change", "record-change"]


def test_watching_a_data_directory_shows_the_changes_so_far_and_what_to_start_for_more(tmp_path: Path) -> None:
    data, cursor = str(tmp_path / "data"), str(tmp_path / "cursor")
    assert invoke("publish", "-", "--data", data, text=b"\n".join(demo.feed()).decode()).exit_code == 0
    every = invoke("watch", "--type", "drug_label", "--cursor", cursor, "--data", data)
    nothing_new = invoke("watch", "--type", "drug_label", "--cursor", cursor, "--data", data)

    assert every.exit_code == nothing_new.exit_code == 0
    assert "label-vioxx-1999 withdrawn by" in every.stdout
    assert nothing_new.stdout == ""
    assert "stream-car serve" in nothing_new.stderr


def test_a_record_is_told_once_and_a_document_to_programs_once_for_each_of_its_scopes(tmp_path: Path) -> None:
    drugs = '{"id": "l", "type": "drug_label", "time": "2020-01-01T00:00:00Z", "scope": {"drug": ["a", "b", "c"]}}'
    invoke("publish", "-", "--data", str(tmp_path), text=drugs)
    people = invoke(*DOCUMENTS, "--data", str(tmp_path))
    programs = invoke(*DOCUMENTS, "--json", "--data", str(tmp_path))
    records = invoke("watch", "--json", "--data", str(tmp_path))

    assert people.stdout.count("l is in force") == 1
    assert [event["event"] for event in parse(records)] == ["record-change"]
    assert [event["event"] for event in parse(programs)].count("document-change") == 3


def test_a_data_directory_that_is_served_says_how_to_use_the_service(tmp_path: Path) -> None:
    with stream_car.open(tmp_path):
        result = invoke("watch", "--data", str(tmp_path))

    assert result.exit_code == 2
    assert "If a service has it open, use its --url." in result.stderr


async def test_rejected_input_is_replayed_in_the_service(tmp_path: Path) -> None:
    corrected = tmp_path / "corrected.jsonl"
    corrected.write_text('{"offset": 0, "value": ' + encode(CLAIM).decode() + "}\n")
    async with serving() as running:
        running.engine.publish([b"{half"])
        rejected = await run(running.url, "rejected", "replay")
        replayed = await run(running.url, "rejected", "replay", "--from", str(corrected), "--json")

        assert (rejected.exit_code, replayed.exit_code) == (1, 0), replayed.output
        assert "still rejected" in rejected.stdout and "syntax" in rejected.stdout
        assert [item["outcome"] for item in parse(replayed)] == ["replayed"]
        assert running.engine.status().documents == 1


async def test_a_service_changes_its_rules_while_it_runs(tmp_path: Path) -> None:
    file = tmp_path / "peace.toml"
    file.write_text(PEACE)
    async with serving(token=TOKEN) as running:
        running.engine.publish([CLAIM, DENIAL])
        preview = await run(running.url, "rebuild", "--rules", str(file), "--dry-run", token=TOKEN)
        listed = await run(running.url, "rebuild", "--rules", str(file), "--dry-run", "--json", token=TOKEN)
        done = await run(running.url, "rebuild", "--rules", str(file), "--json", token=TOKEN)

        assert (preview.exit_code, done.exit_code) == (0, 0), done.output
        assert "1 document" in preview.stdout and "superseded" in preview.stdout
        [comparison] = [msgspec.json.decode(line, type=RebuildStatus) for line in listed.stdout.splitlines()]
        [difference] = comparison.differences
        assert (difference.id, difference.before, difference.after) == ("c1", "superseded", "in_force")
        assert parse(done)[0]["state"] == "switched"
        assert running.engine.resolve(["c1"])[0].status == "in_force"


async def test_a_service_without_a_token_does_not_change_its_rules() -> None:
    async with serving() as running:
        result = await run(running.url, "rebuild")

    assert result.exit_code == 2
    assert "Only available when the service runs with a token" in result.stderr


def test_commands_on_files_reject_a_service_and_name_the_cure(tmp_path: Path) -> None:
    for arguments in (("doctor",), ("backup", str(tmp_path / "copy")), ("restore", str(tmp_path))):
        for result in (
            invoke(*arguments, STREAM_CAR_URL="http://127.0.0.1:1"),
            invoke(*arguments, "--url", "http://127.0.0.1:1"),
        ):
            assert result.exit_code == 2
            assert "--data" in result.stderr
    with stream_car.open(tmp_path / "data"):
        pass
    intact = invoke("doctor", "--data", str(tmp_path / "data"), STREAM_CAR_URL="http://127.0.0.1:1")
    assert intact.exit_code == 0, intact.output

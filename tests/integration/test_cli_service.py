"""The command line asks a service as it asks a folder."""

import asyncio
from pathlib import Path

import msgspec
from click.testing import CliRunner, Result

import stream_car
from stream_car import demo
from stream_car.cli import main
from stream_car.codec import encode
from stream_car.core.documents import Document
from tests.integration.test_service_rebuild import PEACE, TOKEN
from tests.support.engines import document
from tests.support.http_service import Running, serving

CLAIM = document("c1", topic="tea")
DENIAL = document("d1", "denial", 3, topic="tea")
LATER = document("later", at=5000, topic="tea")


def lines(*documents: Document) -> str:
    return "".join(encode(one).decode() + "\n" for one in documents)


def invoked(url: str, *arguments: str, text: str | None = None, token: str | None = None) -> Result:
    return CliRunner(env={"STREAM_CAR_URL": url, "STREAM_CAR_TOKEN": token}).invoke(main, arguments, input=text)


async def run(url: str, *arguments: str, text: str | None = None, token: str | None = None) -> Result:
    return await asyncio.to_thread(invoked, url, *arguments, text=text, token=token)


ASKED = [
    (("query", "about tea"), 0, "d1"),
    (("query", "about tea", "--budget", "1"), 0, "a larger budget"),
    (("query", "nothing of the kind"), 1, "Nothing found"),
    (("resolve", "c1"), 0, "c1 is void"),
    (("check", "c1"), 1, "does not hold"),
    (("explain", "c1"), 0, "denial-voids-claim"),
    (("frontier", "topic=tea"), 0, "d1"),
    (("frontier", "topik=tea"), 1, "no rule knows the key 'topik'"),
    (("history", "topic=tea"), 0, "c1"),
    (("changes",), 0, "because of d1"),
    (("pending",), 0, "later (revision 1)"),
    (("rejected", "list"), 0, "syntax"),
    (("rejected", "show", "3"), 0, "{half"),
]


async def test_every_question_goes_to_the_service_that_the_environment_names() -> None:
    async with serving() as running:
        published = await run(running.url, "publish", "-", text=lines(CLAIM, DENIAL, LATER) + "{half\n")
        told = [await run(running.url, *arguments) for arguments, _, _ in ASKED]

        assert published.exit_code == 1
        assert "accepted" in published.stdout and "syntax" in published.stdout
        for result, (arguments, code, text) in zip(told, ASKED, strict=True):
            assert (arguments, result.exit_code) == (arguments, code), result.output
            assert text in result.stdout


async def test_the_bytes_of_refused_input_come_back_as_they_were() -> None:
    async with serving() as running:
        running.engine.publish([b"\xff{"])
        shown = await run(running.url, "rejected", "show", "0", "--bytes")

    assert shown.stdout_bytes == b"\xff{"


async def test_a_folder_on_the_command_line_goes_before_a_service_in_the_environment(tmp_path: Path) -> None:
    async with serving() as running:
        local = await run(running.url, "publish", "-", "--data", str(tmp_path / "data"), text=lines(CLAIM))
        both = await run(running.url, "pending", "--data", str(tmp_path / "data"), "--url", running.url)

        assert running.engine.next_offset == 0
    assert local.exit_code == 1
    assert "type_unknown" in local.stdout
    assert both.exit_code == 2
    assert "own data, rules and encoder" in both.stderr


async def test_a_token_in_the_environment_is_sent() -> None:
    async with serving(token="a-token-for-tests") as running:
        let_in = await run(running.url, "pending", token="a-token-for-tests")
        refused = await run(running.url, "pending")

    assert (let_in.exit_code, let_in.stdout) == (0, "Nothing waits.\n")
    assert refused.exit_code == 2
    assert "no token was sent" in refused.stderr and "set $STREAM_CAR_TOKEN" in refused.stderr


async def listener_of(running: Running) -> None:
    """Wait until somebody subscribes."""
    async with asyncio.timeout(20):
        while not (await running.get("/v1/status")).json()["subscriptions"]:
            await asyncio.sleep(0.01)


async def test_watching_tells_what_becomes_of_documents_and_why() -> None:
    async with serving() as running:
        await running.post("/v1/documents", plain_of(CLAIM))
        watching = asyncio.create_task(run(running.url, "watch", "--snapshot", "topic=tea", "--limit", "2"))
        await listener_of(running)
        await running.post("/v1/documents", plain_of(DENIAL))
        told = await asyncio.wait_for(watching, 20)

    assert told.exit_code == 0, told.output
    assert told.stdout.splitlines()[:3] == ["In force:", "= c1  c1 · claim · 2022-01-08", "Changes:"]
    assert sorted(told.stdout.splitlines()[3:]) == [
        "+ d1 is in force  d1 · denial",
        "- c1 is void now, because of d1 (denial-voids-claim)  c1 · claim",
    ]


async def test_watching_goes_on_from_the_cursor_in_a_file(tmp_path: Path) -> None:
    watch = ("watch", "--cursor", str(tmp_path / "seen"), "--limit", "1", "--json")
    async with serving() as running:
        first = asyncio.create_task(run(running.url, *watch))
        await listener_of(running)
        await running.post("/v1/documents", [plain_of(document(name, topic=name)) for name in ("a", "b", "c")])
        told = said(await asyncio.wait_for(first, 20)) + said(await run(running.url, *watch))

    assert [one["data"]["id"] for one in told] == ["a", "b"]  # type: ignore[index]
    assert [one["event"] for one in told] == ["change", "change"]


def test_watching_a_folder_tells_the_changes_so_far_and_what_to_start_for_more(tmp_path: Path) -> None:
    def call(*arguments: str, text: str = "") -> Result:
        return CliRunner(env={"STREAM_CAR_DATA": str(tmp_path / "data")}).invoke(main, arguments, input=text)

    feed = b"\n".join(demo.feed()).decode()
    assert call("publish", "-", text=feed).exit_code == 0
    cursor = str(tmp_path / "seen")
    all_told = call("watch", "--type", "drug_label", "--cursor", cursor)
    nothing_new = call("watch", "--type", "drug_label", "--cursor", cursor)

    assert all_told.exit_code == nothing_new.exit_code == 0
    assert "is void now, because of" in all_told.stdout
    assert nothing_new.stdout == ""
    assert "stream-car up" in nothing_new.stderr


def test_people_are_told_of_a_document_once_and_programs_of_each_of_its_scopes(tmp_path: Path) -> None:
    drugs = '{"id": "l", "type": "drug_label", "time": "2020-01-01T00:00:00Z", "scope": {"drug": ["a", "b", "c"]}}'
    environment = {"STREAM_CAR_DATA": str(tmp_path)}
    CliRunner(env=environment).invoke(main, ("publish", "-"), input=drugs)
    people = CliRunner(env=environment).invoke(main, ("watch",))
    programs = CliRunner(env=environment).invoke(main, ("watch", "--json"))

    assert people.stdout.count("l is in force") == 1
    assert [one["event"] for one in said(programs)].count("change") == 3


def test_a_folder_that_is_served_says_how_to_ask_the_service(tmp_path: Path) -> None:
    with stream_car.open(tmp_path):
        result = CliRunner().invoke(main, ("watch", "--data", str(tmp_path)))

    assert result.exit_code == 2
    assert "stream-car up" in result.stderr and "--url" in result.stderr


def plain_of(one: Document) -> object:
    told: object = msgspec.json.decode(encode(one))
    return told


def said(result: Result) -> list[dict[str, object]]:
    assert result.exit_code == 0, result.output
    return [msgspec.json.decode(text, type=dict[str, object]) for text in result.stdout.splitlines()]


async def test_refused_input_is_replayed_in_the_service(tmp_path: Path) -> None:
    mended = tmp_path / "mended.jsonl"
    mended.write_text('{"offset": 0, "value": ' + encode(CLAIM).decode() + "}\n")
    async with serving() as running:
        running.engine.publish([b"{half"])
        refused = await run(running.url, "rejected", "replay")
        replayed = await run(running.url, "rejected", "replay", "--from", str(mended), "--json")

        assert (refused.exit_code, replayed.exit_code) == (1, 0), replayed.output
        assert "refused again" in refused.stdout or "syntax" in refused.stdout
        assert msgspec.json.decode(replayed.stdout, type=dict[str, object])["outcome"] == "replayed"
        assert running.engine.header().documents == 1


async def test_a_service_changes_its_rules_while_it_runs(tmp_path: Path) -> None:
    file = tmp_path / "peace.toml"
    file.write_text(PEACE)
    async with serving(token=TOKEN) as running:
        running.engine.publish([CLAIM, DENIAL])
        dry = await run(running.url, "rebuild", "--rules", str(file), "--dry-run", token=TOKEN)
        listed = await run(running.url, "rebuild", "--rules", str(file), "--dry-run", "--json", token=TOKEN)
        done = await run(running.url, "rebuild", "--rules", str(file), "--json", token=TOKEN)

        assert (dry.exit_code, listed.exit_code, done.exit_code) == (0, 0, 0), done.output
        assert "1 document: void now, active then" in dry.stdout
        assert [msgspec.json.decode(text, type=dict[str, object])["id"] for text in listed.stdout.splitlines()] == [
            "c1"
        ]
        assert msgspec.json.decode(done.stdout, type=dict[str, object])["generation"] == running.engine.generation
        assert running.engine.resolve(["c1"])[0].status == "active"


async def test_a_service_without_a_token_does_not_change_its_rules() -> None:
    async with serving() as running:
        result = await run(running.url, "rebuild")

    assert result.exit_code == 2
    assert "only a service with a token" in result.stderr


def test_what_works_on_files_says_what_to_do_instead(tmp_path: Path) -> None:
    for arguments in (("doctor",), ("backup", str(tmp_path / "copy")), ("restore", str(tmp_path))):
        for result in (
            invoked("http://127.0.0.1:1", *arguments),
            invoked("", *arguments, "--url", "http://127.0.0.1:1"),
        ):
            assert result.exit_code == 2
            assert "--data" in result.stderr
    with stream_car.open(tmp_path / "data"):
        pass
    sound = invoked("http://127.0.0.1:1", "doctor", "--data", str(tmp_path / "data"))
    assert sound.exit_code == 0, sound.output

"""Other clients on a real Kafka: kcat publishes and reads, kafka-python reads changes."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from stream_car.ports import Message, Record
from stream_car.processing.replay import REPLAY_OF
from stream_car.processing.two_hop import FORWARDED
from tests.chaos.installation import STREAM_CAR, Installation
from tests.support.repository import ROOT
from tests.support.servers import in_one_worker, require

pytestmark = in_one_worker(__name__)

EXAMPLE = ROOT / "docs" / "examples" / "read_changes.py"
COUNT = 40
KCAT_S = 60


@pytest.fixture(autouse=True)
def require_kcat() -> None:
    require(None if shutil.which("kcat") else "kcat is not installed")


def kcat(installation: Installation, *options: str, lines: Sequence[str] = ()) -> str:
    """Run kcat with these lines as its input, and return its output."""
    command = ["kcat", "-b", installation.server.address, "-q", *options]
    text = "".join(f"{line}\n" for line in lines)
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=KCAT_S).stdout


def document(name: str, kind: str = "a", second: int = 1, x: str = "1") -> str:
    """Return the JSON of a document."""
    return json.dumps({"id": name, "type": kind, "time": f"2024-01-01T00:00:{second:02d}Z", "scope": {"x": x}})


def line(name: str, value: str) -> str:
    """Return a key and a value as kcat reads them."""
    return f"{name}|{value}"


def publish(installation: Installation, lines: Sequence[str], *options: str) -> None:
    """Publish with kcat, which places keys by CRC-32, unlike Kafka's own clients. An empty value becomes null."""
    kcat(installation, "-P", "-Z", "-t", installation.layout.full_name("documents"), "-K", "|", *options, lines=lines)


def changes_of(installation: Installation) -> list[tuple[str, str, str]]:
    """Return the headers, scopes and values of all changes, as kcat prints them."""
    topic = installation.layout.full_name("changes")
    rows = kcat(installation, "-C", "-e", "-o", "beginning", "-t", topic, "-f", "%h\t%k\t%s\n").splitlines()
    return [(headers, scope, value) for headers, scope, value in (row.split("\t") for row in rows)]


async def records_of(installation: Installation, topic: str, partitions: int) -> list[tuple[int, Record]]:
    """Return all records of a topic with their partitions."""
    return [
        (partition, record)
        for partition in range(partitions)
        for record in await installation.records(topic, partition)
    ]


async def test_kcat_publishes_documents_and_reads_changes(kafka: str, redis: str, tmp_path: Path) -> None:
    async with Installation(kafka, redis, tmp_path).open() as installation:
        await installation.worker().assigned(5)
        publish(installation, [line(f"k{n}", document(f"k{n}", x=str(n % 5))) for n in range(COUNT)])
        await installation.judge()  # all have entered before anything voids them
        publish(installation, [line("v", document("v", "b", second=9, x="3")), line("k0", "")])
        publish(
            installation, [line("e", '{"scope": {"x": "9"}}')], "-H", "ce_specversion=1.0", "-H", "ce_id=e",
            "-H", "ce_type=a", "-H", "ce_source=kcat", "-H", "ce_time=2024-01-01T00:00:01Z",
        )  # fmt: skip
        verdict = await installation.judge()

        documents = await records_of(installation, "documents", installation.layout.intakes)
        changes = changes_of(installation)

    assert verdict.rejected == 0
    is_forwarded = [FORWARDED in dict(record.headers) for _, record in documents]
    assert any(is_forwarded), "kcat places keys as Stream-CAR does: nothing was tested"
    entered = {(scope, member["id"]) for _, scope, value in changes for member in json.loads(value)["entered"]}
    left = {(member["id"], member["why"]) for _, _, value in changes for member in json.loads(value)["left"]}
    assert {(f"x={n % 5}", f"k{n}") for n in range(COUNT)} | {("x=9", "e")} <= entered
    assert left == {(f"k{n}", "voided") for n in range(3, COUNT, 5)} | {("k0", "retracted")}
    for headers, scope, _ in changes:
        values = dict(header.split("=", 1) for header in headers.split(","))
        assert values["ce_specversion"] == "1.0"
        assert values["ce_id"].count("/") == 2
        assert values["ce_source"] == "stream-car"
        assert values["ce_type"] == "streamcar.frontier.changed"
        assert values["ce_subject"] == scope
        assert values["content-type"] == "application/json"
    assert len({headers for headers, _, _ in changes}) == len(changes)


async def test_kafka_python_reads_each_change_once_with_the_example(kafka: str, redis: str, tmp_path: Path) -> None:
    places = tmp_path / "places.json"

    def read(*generation: str) -> list[str]:
        """Run the example, and return the lines that it prints."""
        topic = installation.layout.full_name("changes")
        command = [sys.executable, str(EXAMPLE), kafka, str(places), topic, "1500", *generation]
        run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=KCAT_S)
        return run.stdout.splitlines()

    entered = [f"+ x=1 k{n}" for n in range(4)]
    superseded = ["+ x=1 v", *(f"- x=1 k{n} voided" for n in range(4))]
    async with Installation(kafka, redis, tmp_path).open() as installation:
        await installation.worker().assigned(5)
        publish(installation, [line(f"k{n}", document(f"k{n}")) for n in range(4)])
        await installation.judge()
        assert sorted(read()) == entered

        publish(installation, [line("v", document("v", "b", second=9))])
        await installation.judge()
        topic = installation.layout.full_name("changes")
        records = await records_of(installation, "changes", installation.layout.frontiers)
        generation = dict(records[0][1].headers)["ce_id"].decode().partition("/")[0]
        for partition, record in records:
            repeat = Message(key=record.key, value=record.value, headers=record.headers)  # as a stalled worker does
            number = dict(record.headers)["ce_id"].rpartition(b"/")[2]
            other = Message(value=record.value, headers=(("ce_id", b"other/%d/%b" % (partition, number)),))
            await installation.sender.send(topic, partition, [repeat, other])
        for partition in range(installation.layout.frontiers):
            numbers = ("9" * 15, "9" * 5000, "x", "", "-1")
            names = [f"{generation}/{partition}/{number}".encode() for number in numbers]
            forged = [Message(value=b"{}", headers=(("ce_id", name),)) for name in (*names, b"", b"\xff")]
            await installation.sender.send(topic, partition, [*forged, Message(value=None), Message(value=b"garbage")])
        assert sorted(read()) == superseded
        publish(installation, [line("n", document("n", x="2"))])
        await installation.judge()
        assert read() == ["+ x=2 n"]  # no made-up number silences what follows
        assert read() == []

        places.unlink()
        assert sorted(read()) == sorted([*entered, *superseded, "+ x=2 n"])
        assert sorted(read("other")) == sorted([*entered, *superseded])
        assert read("other") == []


async def test_a_rejected_record_keeps_key_value_and_headers_and_names_its_origin_and_the_reason(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    bad = '{"id": "r1", "type": "unheard of", "time": "2024-01-01T00:00:00Z"}'
    async with Installation(kafka, redis, tmp_path).open() as installation:
        await installation.worker().assigned(5)
        publish(installation, [line("r1", bad), line("r2", "{")], "-H", "trace=7")
        publish(installation, [line("r3", json.dumps({"id": "other", "type": "a", "time": "2024-01-01T00:00:00Z"}))])
        await installation.judge()

        rejected = {record.key: record for _, record in await records_of(installation, "rejected", 1)}
        documents = {
            (partition, record.offset): record
            for partition, record in await records_of(installation, "documents", installation.layout.intakes)
        }

    codes = {key: dict(record.headers)["stream-car-code"] for key, record in rejected.items()}
    assert codes == {b"r1": b"type_unknown", b"r2": b"syntax", b"r3": b"key"}
    assert rejected[b"r1"].value == bad.encode()
    for record in rejected.values():
        headers = dict(record.headers)
        original = documents[int(headers["stream-car-partition"]), int(headers["stream-car-offset"])]
        assert (record.key, record.value) == (original.key, original.value)
        assert set(original.headers) <= set(record.headers)
        assert headers["stream-car-reason"]
    assert dict(rejected[b"r1"].headers)["trace"] == b"7"
    assert rejected[b"r1"].key == b"r1"
    assert dict(rejected[b"r1"].headers)["stream-car-id"] == b"r1"


async def test_rejected_input_is_listed_shown_and_replayed_from_the_command_line(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    large = document("r1", x="2") + " " * 70_000
    corrected = tmp_path / "corrected.json"
    corrected.write_text(document("r2", x="7"))
    async with Installation(kafka, redis, tmp_path).open() as installation:
        query_worker = installation.query_worker()
        await installation.worker().assigned(5)
        await query_worker.ready()
        url = await query_worker.url()

        def rejected(*words: str) -> tuple[int, list[dict[str, object]]]:
            """Run `stream-car rejected`, and return its exit code and the lines of its output."""
            command = [*STREAM_CAR, "rejected", *words, "--url", url, "--json"]
            run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            assert "Traceback" not in run.stderr
            return run.returncode, [json.loads(row) for row in run.stdout.splitlines()]

        publish(installation, [line("r1", document("r1"))])
        await installation.judge()
        publish(installation, [line("r1", large)], "-H", "trace=7")
        await installation.judge()
        publish(installation, [line("r2", "{")])
        await installation.judge()
        code, [r1, r2] = rejected("list")
        assert (code, r1["code"], r1["value"], r2["code"], r2["value"]) == (0, "conflict", "", "syntax", "{")
        assert rejected("show", str(r2["offset"])) == (0, [r2])

        code, replayed = rejected("replay", "--dry-run")
        assert (code, [answer["outcome"] for answer in replayed]) == (1, ["rejected", "rejected"])
        code, replayed = rejected("replay", str(r2["offset"]), "--from", str(corrected), "--dry-run")
        assert (code, replayed[0]["outcome"], replayed[0]["receipt"]) == (0, "replayed", None)
        code, replayed = rejected("replay", str(r2["offset"]), "--from", str(corrected))
        assert (code, replayed[0]["outcome"]) == (0, "replayed")
        code, replayed = rejected("replay", str(r2["offset"]), "--from", str(corrected))
        assert (code, replayed[0]["outcome"]) == (0, "replayed_before")
        publish(installation, [line("r1", "")])  # what is void does not conflict
        await installation.judge()
        code, replayed = rejected("replay", str(r1["offset"]))
        assert (code, replayed[0]["outcome"]) == (0, "replayed")
        assert rejected("replay", "99")[0] == 2

        verdict = await installation.judge()
        documents = [record for _, record in await records_of(installation, "documents", installation.layout.intakes)]
        entered = [member["id"] for _, _, value in changes_of(installation) for member in json.loads(value)["entered"]]

    [copy] = [record for record in documents if record.key == b"r1" and REPLAY_OF in dict(record.headers)]
    assert copy.value == large.encode()
    assert dict(copy.headers)["trace"] == b"7"
    assert sorted(entered) == ["r1", "r2"]
    assert verdict.rejected == 2

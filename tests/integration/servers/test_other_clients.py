"""Clients that nobody here wrote, over a real Kafka: kcat publishes and tails, kafka-python reads what changes."""

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
from tests.chaos.installation import RULES, STREAM_CAR, Installation
from tests.support.repository import ROOT
from tests.support.servers import in_one_worker, require

pytestmark = in_one_worker("kafka")

RECIPE = ROOT / "docs" / "examples" / "read_changes.py"
COUNT = 40
KCAT_S = 60


@pytest.fixture(autouse=True)
def installed() -> None:
    require(None if shutil.which("kcat") else "kcat is not installed")


def kcat(here: Installation, *words: str, sent: Sequence[str] = ()) -> str:
    command = ["kcat", "-b", here.server.address, "-q", *words]
    done = subprocess.run(
        command, input="".join(f"{line}\n" for line in sent), capture_output=True, text=True, check=True, timeout=KCAT_S
    )
    return done.stdout


def said(name: str, kind: str = "a", second: int = 1, x: str = "1") -> str:
    return json.dumps({"id": name, "type": kind, "time": f"2024-01-01T00:00:{second:02d}Z", "scope": {"x": x}})


def line(name: str, value: str) -> str:
    return f"{name}|{value}"


def publish(here: Installation, lines: Sequence[str], *words: str) -> None:
    """By kcat, which places keys by CRC-32 and not as Kafka's own clients do; what is empty becomes null."""
    kcat(here, "-P", "-Z", "-t", here.layout.named("documents"), "-K", "|", *words, sent=lines)


def tailed(here: Installation) -> list[tuple[str, str, str]]:
    """Identifiers, scopes and values of all changes, as kcat tells them."""
    words = ("-C", "-e", "-o", "beginning", "-t", here.layout.named("changes"), "-f", "%h\t%k\t%s\n")
    rows = [row.split("\t") for row in kcat(here, *words).splitlines()]
    return [(headers, scope, value) for headers, scope, value in rows]


async def every(here: Installation, topic: str, partitions: int) -> list[tuple[int, Record]]:
    return [(p, one) for p in range(partitions) for one in await here.records(topic, p)]


async def test_kcat_publishes_and_tails(kafka: str, redis: str, tmp_path: Path) -> None:
    async with Installation(kafka, redis, tmp_path).open() as here:
        await here.worker().assigned(5)
        publish(here, [line(f"k{n}", said(f"k{n}", x=str(n % 5))) for n in range(COUNT)])
        await here.judge()  # all have entered before anything voids them
        publish(here, [line("v", said("v", "b", second=9, x="3")), line("k0", "")])
        publish(
            here, [line("e", '{"scope": {"x": "9"}}')], "-H", "ce_specversion=1.0", "-H", "ce_id=e", "-H", "ce_type=a",
            "-H", "ce_source=kcat", "-H", "ce_time=2024-01-01T00:00:01Z",
        )  # fmt: skip
        verdict = await here.judge()

        documents = await every(here, "documents", here.layout.intakes)
        changes = tailed(here)

    assert verdict.rejected == 0
    assert any(FORWARDED in dict(one.headers) for _, one in documents), "kcat places keys as we do: nothing was tested"
    entered = {(scope, one["id"]) for _, scope, value in changes for one in json.loads(value)["entered"]}
    left = {(one["id"], one["why"]) for _, _, value in changes for one in json.loads(value)["left"]}
    assert {(f"x={n % 5}", f"k{n}") for n in range(COUNT)} | {("x=9", "e")} <= entered
    assert left == {(f"k{n}", "voided") for n in range(3, COUNT, 5)} | {("k0", "retracted")}
    for headers, scope, _ in changes:
        told = dict(header.split("=", 1) for header in headers.split(",", 5))
        assert told["ce_specversion"] == "1.0"
        assert told["ce_id"].count("/") == 2
        assert told["ce_source"] == "stream-car"
        assert told["ce_type"] == "streamcar.frontier.changed"
        assert told["ce_subject"] == scope
        assert told["content-type"] == "application/json"
    assert len({headers for headers, _, _ in changes}) == len(changes)


async def test_kafka_python_reads_changes_by_the_recipe_once_each(kafka: str, redis: str, tmp_path: Path) -> None:
    places = tmp_path / "places.json"

    def read() -> list[str]:
        words = [kafka, str(places), here.layout.named("changes"), "1500"]
        done = subprocess.run(
            [sys.executable, str(RECIPE), *words], capture_output=True, text=True, check=True, timeout=KCAT_S
        )
        return done.stdout.splitlines()

    async with Installation(kafka, redis, tmp_path).open() as here:
        worker = here.worker()
        await worker.assigned(5)
        publish(here, [line(f"k{n}", said(f"k{n}")) for n in range(4)])
        await here.judge()
        assert sorted(read()) == [f"+ x=1 k{n}" for n in range(4)]

        publish(here, [line("v", said("v", "b", second=9))])
        await here.judge()
        for p, one in await every(here, "changes", here.layout.frontiers):
            again = [Message(key=one.key, value=one.value, headers=one.headers)]  # as a stalled worker does
            await here.sender.send(here.layout.named("changes"), p, again)
        assert sorted(read()) == ["+ x=1 v", *(f"- x=1 k{n} voided" for n in range(4))]
        assert read() == []

        places.unlink()
        entered = [f"+ x=1 k{n}" for n in range(4)]
        assert sorted(read()) == sorted([*entered, "+ x=1 v", *(f"- x=1 k{n} voided" for n in range(4))])


async def test_what_is_rejected_keeps_key_bytes_headers_and_place_and_says_why(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    bad = '{"id": "r1", "type": "unheard of", "time": "2024-01-01T00:00:00Z"}'
    async with Installation(kafka, redis, tmp_path).open() as here:
        await here.worker().assigned(5)
        publish(here, [line("r1", bad), line("r2", "{")], "-H", "trace=7")
        publish(here, [line("r3", json.dumps({"id": "other", "type": "a", "time": "2024-01-01T00:00:00Z"}))])
        await here.judge()

        refused = {one.key: one for _, one in await every(here, "rejected", 1)}
        documents = {(q, one.offset): one for q, one in await every(here, "documents", here.layout.intakes)}

    codes = {key: dict(one.headers)["stream-car-code"] for key, one in refused.items()}
    assert codes == {b"r1": b"type_unknown", b"r2": b"syntax", b"r3": b"key"}
    assert refused[b"r1"].value == bad.encode()
    for one in refused.values():
        told = dict(one.headers)
        came = documents[int(told["stream-car-partition"]), int(told["stream-car-offset"])]
        assert (one.key, one.value) == (came.key, came.value)
        assert set(came.headers) <= set(one.headers)
        assert told["stream-car-reason"]
    assert dict(refused[b"r1"].headers)["trace"] == b"7"
    assert refused[b"r1"].key == b"r1"
    assert dict(refused[b"r1"].headers)["stream-car-id"] == b"r1"


async def test_what_is_rejected_is_replayed_whole_as_it_came_or_mended(kafka: str, redis: str, tmp_path: Path) -> None:
    large = json.dumps({"id": "r1", "type": "blackout_announced", "time": "2024-01-01T00:00:00Z", "text": "x" * 70_000})
    mended = tmp_path / "mended.json"
    mended.write_text(said("r2", x="7"))
    async with Installation(kafka, redis, tmp_path).open() as here:

        def rejected(*words: str, rules: str = str(RULES)) -> tuple[int, list[dict[str, object]]]:
            where = ("--kafka", kafka, "--prefix", here.layout.prefix, "--rules", rules, "--json")
            done = subprocess.run(
                [*STREAM_CAR, "rejected", *words, *where], capture_output=True, text=True, check=False
            )
            assert "Traceback" not in done.stderr
            return done.returncode, [json.loads(row) for row in done.stdout.splitlines()]

        await here.worker().assigned(5)
        publish(here, [line("r1", large), line("r2", "{")], "-H", "trace=7")
        await here.judge()
        listed = {str(one.get("id")): one for one in rejected("list")[1]}
        assert {(one["code"], not one.get("value")) for one in listed.values()} == {
            ("type_unknown", True),  # beyond 64 KiB
            ("syntax", False),
        }
        r1 = str(listed.pop("r1")["offset"])
        [r2] = [str(one["offset"]) for one in listed.values()]

        code, tried = rejected("replay", "--dry-run")
        assert (code, {one["outcome"] for one in tried}) == (1, {"refused"})
        code, sent = rejected("replay", r2, "--from", str(mended))
        assert (code, sent[0]["outcome"]) == (0, "replayed")
        code, sent = rejected("replay", r1, rules="compliance")
        assert (code, sent[0]["outcome"]) == (0, "replayed")
        assert rejected("replay", "99")[0] == 2

        verdict = await here.judge()
        documents = [one for _, one in await every(here, "documents", here.layout.intakes)]
        entered = {one["id"] for _, _, value in tailed(here) for one in json.loads(value)["entered"]}

    copies = [one for one in documents if one.key == b"r1"]
    first = next(one for one in copies if REPLAY_OF not in dict(one.headers))
    again = [one for one in copies if REPLAY_OF in dict(one.headers) and FORWARDED not in dict(one.headers)]
    assert [(one.key, one.value, dict(one.headers)["trace"]) for one in again] == [(b"r1", first.value, b"7")]
    assert first.value == large.encode()
    assert entered == {"r2"}
    assert verdict.rejected == 3, "the workers' own rules still do not know the type"

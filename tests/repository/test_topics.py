"""What `topics/` tells other people's clients agrees with the code."""

import json

import pytest
from jsonschema import Draft202012Validator

import stream_car
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.codec import decode
from stream_car.codec.placements import encode_placement, encode_watermark
from stream_car.core.changes import Cause
from stream_car.core.revisions import Placement
from stream_car.core.stored import Entry
from stream_car.errors import InvalidDocument
from stream_car.local.run_sync import at_once
from tests.support.repository import ROOT
from topics.build import FOLDER, files

FEED = ROOT / "stream_car" / "demo" / "feed.jsonl"
GOOD = {"id": "a", "type": "advisory", "time": "2024-01-01T00:00:00Z"}


def schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(files()[f"{name}.schema.json"]))


def test_the_files_are_those_that_the_code_makes() -> None:
    assert {name: (FOLDER / name).read_text(encoding="utf-8") for name in files()} == files()


@pytest.mark.parametrize("name", ["documents", "placements", "changes"])
def test_schemas_are_sound(name: str) -> None:
    Draft202012Validator.check_schema(schema(name).schema)


def test_every_document_of_the_demo_is_one_by_the_schema() -> None:
    lines = FEED.read_text(encoding="utf-8").splitlines()

    assert lines
    for line in lines:
        decode(line.encode())
        schema("documents").validate(json.loads(line))


@pytest.mark.parametrize(
    "said",
    [
        GOOD | {"scope": [{"cve": ["CVE-1"], "package": "axios"}], "supersedes": ["b"], "anything": [1]},
        {"id": "a", "retracted": True},
        {"id": "a", "retracted": True, "revision": 2},
        {"specversion": "1.0", "id": "e", "type": "t", "source": "s", "data": GOOD},
    ],
)
def test_what_the_decoder_takes_the_schema_takes(said: dict[str, object]) -> None:
    decode(json.dumps(said).encode())

    schema("documents").validate(said)


@pytest.mark.parametrize(
    "said",
    [
        [], "x", {"type": "advisory", "time": "2024-01-01T00:00:00Z"}, GOOD | {"id": ""}, GOOD | {"id": 5},
        GOOD | {"time": "2024-01-01"}, GOOD | {"order": "1"}, GOOD | {"revision": 0}, GOOD | {"order": 2**53},
        GOOD | {"scope": "axios"}, GOOD | {"scope": {"cve": [""]}}, GOOD | {"supersedes": [5]}, GOOD | {"v": 2},
        GOOD | {"supersedes": "b"},
        GOOD | {"title": 5}, GOOD | {"attributes": []}, {"specversion": "0.3", "data": GOOD},
    ],
)  # fmt: skip
def test_what_the_schema_refuses_the_decoder_refuses(said: object) -> None:
    assert not schema("documents").is_valid(said)

    with pytest.raises(InvalidDocument):
        decode(json.dumps(said).encode())


def test_changes_are_as_their_schema_says() -> None:
    with stream_car.open() as car:
        car.publish(FEED.read_text(encoding="utf-8").splitlines())
        events = at_once(car._built.journal.read(0, "changes"))

    assert len(events) > 10
    for event in events:
        schema("changes").validate(json.loads(event.value))


def test_placements_and_marks_are_as_their_schema_says() -> None:
    cause = Cause(id="a", revision=1)
    entry = Entry("a", 1, "advisory", 5, 0, 7, 9)
    placement = Placement(scope="cve=CVE-1", id="a", entry=entry, old=None, cause=cause, offset=7, is_link=False)

    for value in (
        encode_placement(placement, generation="g", shard=0, oseq=1),
        encode_watermark(generation="g", shard=0, next_offset=8),
    ):
        schema("placements").validate(json.loads(value))


def test_the_asyncapi_document_names_every_topic_and_only_files_that_exist() -> None:
    text = files()["asyncapi.json"]
    told = json.loads(text)
    layout = Layout()

    assert told["asyncapi"].startswith("3.")
    assert [channel["address"] for channel in told["channels"].values()] == [
        layout.named(topic) for topic in layout.topics()
    ]
    for topic, channel in zip(layout.topics(), told["channels"].values(), strict=True):
        assert channel["x-kafka-settings"] == layout.settings(topic)
    for part in text.split('"$ref": "./')[1:]:
        assert (FOLDER / part.partition('"')[0]).is_file()

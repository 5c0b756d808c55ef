"""`topics/` describes the topics to other clients as the code makes them."""

import json

import pytest
from jsonschema import Draft202012Validator

import stream_car
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.codec import decode
from stream_car.codec.changes import decode_change, encode_change
from stream_car.codec.placements import encode_placement, encode_watermark
from stream_car.core.changes import Cause
from stream_car.core.revisions import Placement
from stream_car.core.stored import Entry
from stream_car.errors import InvalidDocument
from stream_car.local.run_sync import run_sync
from tests.support.repository import ROOT
from topics.build import FOLDER, files

FEED = ROOT / "stream_car" / "demo" / "feed.jsonl"
GOOD = {"id": "a", "type": "advisory", "time": "2024-01-01T00:00:00Z"}


def schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(files()[f"{name}.schema.json"]))


def test_the_files_are_those_that_the_code_generates() -> None:
    assert {name: (FOLDER / name).read_text(encoding="utf-8") for name in files()} == files()


@pytest.mark.parametrize("name", ["documents", "placements", "changes"])
def test_schemas_are_valid(name: str) -> None:
    Draft202012Validator.check_schema(schema(name).schema)


def test_every_document_of_the_demo_matches_the_schema() -> None:
    lines = FEED.read_text(encoding="utf-8").splitlines()

    assert lines
    for line in lines:
        decode(line.encode())
        schema("documents").validate(json.loads(line))


@pytest.mark.parametrize(
    "value",
    [
        GOOD | {"scope": [{"cve": ["CVE-1"], "package": "axios"}], "supersedes": ["b"], "anything": [1]},
        GOOD | {"time": "2024-01-01"},
        {"id": "a", "retracted": True},
        {"id": "a", "retracted": True, "revision": 2},
        {"specversion": "1.0", "id": "e", "type": "t", "source": "s", "data": GOOD},
    ],
)
def test_the_schema_accepts_what_the_decoder_accepts(value: dict[str, object]) -> None:
    decode(json.dumps(value).encode())

    schema("documents").validate(value)


@pytest.mark.parametrize(
    "value",
    [
        [], "x", {"type": "advisory", "time": "2024-01-01T00:00:00Z"}, GOOD | {"id": ""}, GOOD | {"id": 5},
        GOOD | {"time": "2024-1-1"}, GOOD | {"order": "1"}, GOOD | {"revision": 0}, GOOD | {"order": 2**53},
        GOOD | {"scope": "axios"}, GOOD | {"scope": {"cve": [""]}}, GOOD | {"supersedes": [5]}, GOOD | {"v": 2},
        GOOD | {"supersedes": "b"},
        GOOD | {"title": 5}, GOOD | {"attributes": []}, {"specversion": "0.3", "data": GOOD},
    ],
)  # fmt: skip
def test_the_decoder_rejects_what_the_schema_rejects(value: object) -> None:
    assert not schema("documents").is_valid(value)

    with pytest.raises(InvalidDocument):
        decode(json.dumps(value).encode())


def test_changes_match_their_schema() -> None:
    with stream_car.open() as car:
        car.publish(FEED.read_text(encoding="utf-8").splitlines())
        events = run_sync(car.directory.projection.change_log.read(0, "changes"))

    assert len(events) > 10
    for event in events:
        schema("changes").validate(json.loads(encode_change(decode_change(event.key, event.value))))


def test_placements_and_watermarks_match_their_schema() -> None:
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
    description = json.loads(text)
    layout = Layout()

    assert description["asyncapi"].startswith("3.")
    assert [channel["address"] for channel in description["channels"].values()] == [
        layout.full_name(topic) for topic in layout.topics()
    ]
    for topic, channel in zip(layout.topics(), description["channels"].values(), strict=True):
        assert channel["x-kafka-settings"] == layout.settings(topic)
    for part in text.split('"$ref": "./')[1:]:
        assert (FOLDER / part.partition('"')[0]).is_file()

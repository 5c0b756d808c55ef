"""Data that an older release wrote is read as it was meant, without being built again."""

import asyncio
import shutil
from pathlib import Path
from typing import cast

import msgspec
import pytest

import stream_car
from stream_car.adapters.sqlite.state_file import StateFile
from stream_car.cluster.rejected import Refusals
from stream_car.codec import decode
from stream_car.codec.placements import WatermarkRecord, decode_placement, encode_placement, encode_watermark
from stream_car.core.changes import FrontierChange
from stream_car.errors import InvalidDocument
from stream_car.local import backup
from stream_car.local.change_feed import so_far
from stream_car.ports import Record
from stream_car.subscriptions.events import Filter
from tests.golden.facts import events, facts
from tests.golden.stored import RELEASES, RecordedLog, records, unpacked, values
from tests.golden.write import FEEDS, VIEWS
from tests.support.feeds import PAGES, WRITTEN, published

pytestmark = pytest.mark.parametrize("release", RELEASES)


@pytest.fixture
def as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever would be built again fails."""

    def refuse(self: StateFile) -> None:
        raise AssertionError("the state was thrown away")

    monkeypatch.setattr(StateFile, "reset", refuse)


def expected(release: str, name: str) -> object:
    return values(release, "expected")[name]


def id_of(record: Record) -> str | None:
    try:
        return decode(record.value, key=record.key, headers=record.headers).id
    except InvalidDocument as invalid:
        return invalid.document_id


def plain(value: object) -> object:
    return msgspec.json.decode(msgspec.json.encode(value))


@pytest.mark.usefixtures("as_it_is")
@pytest.mark.parametrize("name", ["folder", "applied"])
def test_a_folder_opens_with_its_rules_and_says_what_it_said(release: str, name: str, tmp_path: Path) -> None:
    folder = unpacked(release, name, tmp_path)

    with stream_car.open(folder) as car:
        assert plain(facts(car)) == expected(release, name)


def test_its_log_alone_says_the_same(release: str, tmp_path: Path) -> None:
    folder = unpacked(release, "folder", tmp_path)
    shutil.rmtree(folder / "built")

    with stream_car.open(folder) as car:
        assert plain(facts(car)) == expected(release, "folder")


def test_its_backup_says_the_same(release: str, tmp_path: Path) -> None:
    kept = unpacked(release, "backup", tmp_path)

    backup.copy(kept, tmp_path / "restored")

    with stream_car.open(tmp_path / "restored") as car:
        assert plain(facts(car)) == expected(release, "folder")


@pytest.mark.usefixtures("as_it_is")
def test_its_cursors_and_positions_lead_on(release: str, tmp_path: Path) -> None:
    folder = unpacked(release, "folder", tmp_path)
    middle, heard = cast(tuple[str, dict[str, object]], expected(release, "after"))
    cursors = cast(list[str], values(release, "cursors")["embedded"])

    with stream_car.open(folder) as car:
        for view in VIEWS:
            told = events(list(so_far(car, Filter(view=view), middle, snapshot=False)))
            assert plain(told) == heard[view]
        for cursor in cursors:
            first = next(so_far(car, Filter(view="scope"), cursor, snapshot=False))
            assert first.event == "change"
        every = car.changes(limit=10_000)
        assert car.changes(behind=every[700].position, limit=10_000) == every[701:]


@pytest.mark.usefixtures("as_it_is")
def test_feeds_that_it_has_read_say_nothing_new(release: str, tmp_path: Path) -> None:
    folder = unpacked(release, "folder", tmp_path)

    with stream_car.open(folder) as car:
        for form in FEEDS:
            name, text = WRITTEN.findall((PAGES / f"{form}.md").read_text(encoding="utf-8"))[0]
            (tmp_path / str(name)).write_text(str(text), encoding="utf-8")
            steps = published(car, form, [tmp_path / str(name)])
            assert sum(len(step.conversion.documents) for step in steps if step.conversion is not None) == 0


def test_the_records_of_every_topic_are_read(release: str) -> None:
    for record in (one for some in records(release, "documents").values() for one in some):
        if record.value not in (b"no JSON", b"[]") and b"\xff" not in (record.value or b""):
            assert id_of(record)
    for record in (one for some in records(release, "placements").values() for one in some):
        assert record.value is not None
        found = decode_placement(record.value)
        if isinstance(found, WatermarkRecord):
            again = encode_watermark(generation=found.generation, shard=found.shard, next_offset=found.next)
        else:
            placement = found.placement()
            again = encode_placement(placement, generation=found.generation, shard=found.shard, oseq=found.oseq)
        assert again == record.value
    for record in (one for some in records(release, "changes").values() for one in some):
        change = msgspec.json.decode(record.value or b"", type=FrontierChange)
        assert msgspec.json.encode(change, order="deterministic") == record.value
    refused = asyncio.run(Refusals(RecordedLog(records(release, "rejected"))).listed())
    assert {(one.told["code"], one.told["id"]) for one in refused} == {
        ("conflict", "menu-a"),
        ("type_unknown", "untyped"),
        ("time", "timeless"),
        ("syntax", ""),
        ("encoding", ""),
        ("not_object", ""),
    }

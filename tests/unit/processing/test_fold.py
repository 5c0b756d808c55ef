"""The fold of single records."""

import gc

import msgspec

from stream_car.core.documents import Document
from stream_car.errors import InvalidDocument
from stream_car.ports import Record
from stream_car.processing.effects import DecodedRecord
from stream_car.processing.fold import LINES_LIMITED_FROM, NOT_KEPT, TICK, Fold, tally
from tests.support.engines import RULESET


def read(value: bytes | None, headers: tuple[tuple[str, bytes], ...] = ()) -> DecodedRecord:
    return Fold(RULESET).read(Record(offset=0, append_time=0, value=value, headers=headers))


def test_rejected_input_does_not_stay_in_memory() -> None:
    gc.collect()
    gc.disable()  # it would not help: records are not tracked
    try:
        before = sum(isinstance(thing, InvalidDocument) for thing in gc.get_objects())
        for value in (b"1", b'{"id": "a"}', b'{"id": "a", "type": "unknown", "time": "2024-01-31"}') * 10:
            assert isinstance(read(value).content, InvalidDocument)
        after = sum(isinstance(thing, InvalidDocument) for thing in gc.get_objects())
    finally:
        gc.enable()

    assert after == before


def test_a_tick_counts_input_that_is_not_kept() -> None:
    assert read(None, tally(12).headers).not_kept == 12


def test_a_count_that_cannot_be_read_is_ignored() -> None:
    for count in (b"", b"-1", b"x", b"1" * 20):
        assert read(None, (TICK, (NOT_KEPT, count))).not_kept == 0
    assert read(b"{}", ((NOT_KEPT, b"5"),)).not_kept == 0


def test_a_long_title_is_rejected_and_one_that_is_already_in_a_log_replays_as_before() -> None:
    value = msgspec.json.encode({"id": "a", "type": "claim", "time": "2024-01-31", "title": "x" * 5000})

    def content(append_time: int) -> object:
        return Fold(RULESET).read(Record(offset=0, append_time=append_time, value=value)).content

    rejected = content(LINES_LIMITED_FROM)
    assert isinstance(content(LINES_LIMITED_FROM - 1), Document)
    assert isinstance(rejected, InvalidDocument)
    assert (rejected.code, rejected.document_id, "`title`" in rejected.reason) == ("size", "a", True)

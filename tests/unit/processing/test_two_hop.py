"""The folds of the two hops: what each sends to the other, and what it drops."""

import msgspec
import pytest

from stream_car.codec.placements import PlacementRecord, decode_placement, encode_watermark
from stream_car.errors import Halted
from stream_car.ports import Message
from stream_car.processing.fold import REJECTED
from stream_car.processing.partitions import Partitions
from stream_car.processing.state import State
from stream_car.processing.two_hop import (
    DOCUMENTS,
    FORWARDED,
    PLACEMENTS,
    REJECTED_MAX,
    IntakeFold,
    emission_message,
    generation_of,
)
from tests.support.engines import OTHER_RULESET, RULESET, document
from tests.support.two_hop_folds import TWO, Frontier, Intake, ids_of, record, run_fold, topic_of


def test_a_document_becomes_one_placement_per_scope_with_its_number_and_input() -> None:
    name = ids_of(0)[0]
    events = Intake().apply(record(5, document(name, topic="rain", place="here")))

    assert [(event.oseq, event.stream) for event in events] == [(1, PLACEMENTS), (2, PLACEMENTS)]
    for event in events:
        placement = decode_placement(event.value)
        assert isinstance(placement, PlacementRecord)
        assert (placement.shard, placement.offset, placement.id) == (0, 5, name)
        assert placement.scope == event.key.decode()


def test_a_record_in_the_wrong_partition_is_forwarded_unchanged_with_its_origin() -> None:
    stray = record(5, document(ids_of(1)[0], topic="rain"), headers=(("trace", b"x"),))
    [event] = Intake().apply(stray)

    assert (event.stream, event.key.decode()) == (DOCUMENTS, ids_of(1)[0])
    assert emission_message(event) == Message(
        value=stray.value, key=stray.key, headers=(("trace", b"x"), (FORWARDED, b"0/5"))
    )


def test_a_forwarded_record_counts_once_however_often_it_arrives() -> None:
    name = ids_of(1)[0]
    intake = Intake(shard=1)
    forwarded = [
        record(0, document(name, topic="rain"), headers=((FORWARDED, b"0/5"),)),
        record(1, None, key=name.encode(), headers=((FORWARDED, b"0/6"),)),
        record(2, document(name, revision=2, topic="rain"), headers=((FORWARDED, b"0/7"),)),
    ]
    for copy in forwarded:
        assert intake.apply(copy)

    late = [msgspec.structs.replace(copy, offset=copy.offset + 3) for copy in forwarded]

    assert [intake.apply(copy) for copy in late] == [[], [], []]


def test_a_forwarded_copy_in_the_wrong_partition_is_dropped() -> None:
    stray = record(5, document(ids_of(1)[0], topic="rain"), headers=((FORWARDED, b"1/3"),))

    assert Intake().apply(stray) == []


@pytest.mark.parametrize("origin", [b"", b"x/1", b"1", b"9/1", b"-1/2", b"1/x"])
def test_a_header_that_names_no_partition_is_ignored(origin: bytes) -> None:
    given = record(5, document(ids_of(0)[0], topic="rain"), headers=((FORWARDED, origin),))

    assert [event.stream for event in Intake().apply(given)] == [PLACEMENTS]


def test_a_rejected_record_keeps_its_bytes_key_headers_and_coordinates() -> None:
    [event] = Intake().apply(record(5, b"{", key=b"k", headers=(("trace", b"x"),)))
    message = emission_message(event)
    headers = dict(message.headers)

    assert (event.stream, message.value, message.key, headers["trace"]) == (REJECTED, b"{", b"k", b"x")
    assert headers["stream-car-code"] == b"syntax"
    assert (headers["stream-car-partition"], headers["stream-car-offset"]) == (b"0", b"5")


def test_only_the_coordinates_of_a_huge_rejected_record_are_kept() -> None:
    [event] = Intake().apply(record(5, b"{" * (REJECTED_MAX + 1)))

    assert emission_message(event).value is None
    assert dict(emission_message(event).headers)["stream-car-offset"] == b"5"


def test_a_placement_is_applied_once_and_repeats_are_dropped() -> None:
    intake, frontier = Intake(), Frontier()
    topic = topic_of(0)
    [event] = intake.apply(record(5, document(ids_of(0)[0], topic=topic)))

    assert [change.entered[0].id for change in frontier.apply(event.value)] == [ids_of(0)[0]]
    assert frontier.apply(event.value) == []
    assert (frontier.header.applied, frontier.header.repeated, frontier.header.oseqs) == (1, 1, [1, 0])


def test_a_placement_moves_the_watermark_to_its_input_and_a_watermark_beyond_it() -> None:
    intake, frontier = Intake(), Frontier()
    [event] = intake.apply(record(5, document(ids_of(0)[0], topic=topic_of(0))))
    frontier.apply(event.value)

    assert frontier.header.watermarks == [5, 0]

    frontier.apply(encode_watermark(generation=frontier.fold.generation, shard=0, next_offset=6))
    frontier.apply(encode_watermark(generation=frontier.fold.generation, shard=0, next_offset=4))

    assert frontier.header.watermarks == [6, 0]


def test_records_of_another_generation_are_ignored() -> None:
    other = IntakeFold(OTHER_RULESET, TWO, shard=0)
    decoded = other.read(record(5, document(ids_of(0)[0], topic=topic_of(0))))
    state = State()
    [event] = other.emit(decoded, run_fold(state, other.apply(state, decoded)), 1)
    frontier = Frontier()

    assert frontier.apply(event.value) == []
    assert frontier.apply(encode_watermark(generation=other.generation, shard=0, next_offset=9)) == []
    assert (frontier.header.foreign, frontier.header.watermarks) == (2, [0, 0])


def test_a_placement_in_the_wrong_partition_halts_the_shard() -> None:
    [event] = Intake().apply(record(5, document(ids_of(0)[0], topic=topic_of(1))))

    with pytest.raises(Halted) as caught:
        Frontier(shard=0).apply(event.value)

    assert caught.value.code == "partitions"


def test_rules_partitions_and_the_future_make_another_generation() -> None:
    more = Partitions(intakes=2, frontiers=4)
    names = {
        generation_of(RULESET, TWO),
        generation_of(RULESET, more),
        generation_of(OTHER_RULESET, TWO),
        generation_of(RULESET, TWO, "apply"),
    }

    assert len(names) == 4

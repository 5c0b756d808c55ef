"""The folds of the two hops: what each sends to the other, and what it drops."""

import msgspec
import pytest
from msgspec import structs

from stream_car.codec.placements import PlacementRecord, decode_placement, encode_watermark
from stream_car.ports import Message, Record
from stream_car.processing.fold import NOT_KEPT, REJECTED, TICK
from stream_car.processing.partitions import Partitions
from stream_car.processing.signatures import SIGNATURE, Signatures
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
from tests.support.two_hop_folds import SIGNATURES, TWO, Frontier, Intake, ids_of, record, run_fold, topic_of

OLD = structs.replace(SIGNATURES, ends={DOCUMENTS: (9, 9), PLACEMENTS: (9, 9)})


def forwarded_copy(original: Record, origin: bytes) -> Record:
    """Return the copy that a worker makes of a record."""
    message = Message(value=original.value, key=original.key, headers=(*original.headers, (FORWARDED, origin)))
    return structs.replace(original, headers=SIGNATURES.sign(DOCUMENTS, message).headers)


def test_a_document_becomes_one_placement_per_scope_with_its_number_and_input() -> None:
    name = ids_of(0)[0]
    events = Intake().apply(record(5, document(name, topic="rain", place="here")))

    assert [(event.oseq, event.stream) for event in events] == [(1, PLACEMENTS), (2, PLACEMENTS)]
    for event in events:
        placement = decode_placement(event.value, generation_of(RULESET, TWO))
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
        forwarded_copy(record(0, document(name, topic="rain")), b"0/5"),
        forwarded_copy(record(1, None, key=name.encode()), b"0/6"),
        forwarded_copy(record(2, document(name, revision=2, topic="rain")), b"0/7"),
    ]
    for copy in forwarded:
        assert intake.apply(copy)

    late = [msgspec.structs.replace(copy, offset=copy.offset + 3) for copy in forwarded]

    assert [intake.apply(copy) for copy in late] == [[], [], []]


def test_a_forwarded_copy_in_the_wrong_partition_is_dropped() -> None:
    stray = forwarded_copy(record(5, document(ids_of(1)[0], topic="rain")), b"1/3")

    assert Intake().apply(stray) == []


@pytest.mark.parametrize(
    "origin", [b"", b"x/1", b"1", b"9/1", b"-1/2", b"1/x", b"1/" + b"9" * 32, b"1/" + b"9" * 19, "1/²".encode()]
)
@pytest.mark.parametrize("signatures", [SIGNATURES, OLD])
def test_a_header_that_names_no_partition_is_ignored(origin: bytes, signatures: Signatures) -> None:
    given = record(5, document(ids_of(0)[0], topic="rain"), headers=((FORWARDED, origin),))

    assert [event.stream for event in Intake(signatures=signatures).apply(given)] == [PLACEMENTS]


@pytest.mark.parametrize(
    "headers",
    [
        ((FORWARDED, b"0/9000000000000000000"),),
        ((FORWARDED, b"0/9000000000000000000"), (SIGNATURE, bytes(16))),
        SIGNATURES.sign(DOCUMENTS, Message(value=b"other", headers=((FORWARDED, b"0/9"),))).headers,
        SIGNATURES.sign(PLACEMENTS, Message(value=None, headers=((FORWARDED, b"0/9"),))).headers,
    ],
)
def test_a_publisher_cannot_pass_a_record_off_as_forwarded(headers: tuple[tuple[str, bytes], ...]) -> None:
    first, second = ids_of(1)[:2]
    intake = Intake(shard=1)

    assert intake.apply(record(0, document(first, topic="rain"), headers=headers))
    assert intake.apply(forwarded_copy(record(1, document(second, topic="rain")), b"0/5"))


def test_a_publisher_cannot_make_up_a_number_of_rejected_inputs() -> None:
    fold = IntakeFold(RULESET, TWO, shard=0, signatures=SIGNATURES)
    forged = Record(offset=0, append_time=1, value=None, headers=(TICK, (NOT_KEPT, b"999999999")))

    assert fold.read(forged).decoded.not_kept == 0


def test_a_forged_record_in_the_wrong_partition_is_forwarded_like_any_other() -> None:
    stray = record(5, document(ids_of(1)[0], topic="rain"), headers=((FORWARDED, b"1/9"),))
    [event] = Intake().apply(stray)
    copy = SIGNATURES.sign(DOCUMENTS, emission_message(event))

    assert copy.headers[:2] == ((FORWARDED, b"1/9"), (FORWARDED, b"0/5"))
    assert Intake(shard=1).apply(record(0, copy.value, key=copy.key, headers=copy.headers))


def test_a_copy_that_is_older_than_the_key_counts_as_it_did() -> None:
    name = ids_of(1)[0]
    intake = Intake(shard=1, signatures=OLD)
    copies = [
        record(offset, document(name, revision=revision, topic="rain"), headers=((FORWARDED, b"0/5"),))
        for offset, revision in ((0, 1), (1, 2), (9, 3))
    ]

    assert [bool(intake.apply(copy)) for copy in copies] == [True, False, True]  # record 9 came after the key


@pytest.mark.parametrize(("key", "header"), [(b"k" * 1_040_000, b""), (b"", b"v" * 1_040_000)])
def test_a_record_that_leaves_no_room_for_further_headers_is_rejected_within_the_limit_of_a_topic(
    key: bytes, header: bytes
) -> None:
    name = ids_of(1)[0]
    for content in (document(name, topic="rain"), None):
        [event] = Intake().apply(record(5, content, key=key or name.encode(), headers=(("h", header),)))
        message = emission_message(event)

        assert event.stream == REJECTED
        assert len(message.key or b"") + sum(len(value) for _, value in message.headers) < REJECTED_MAX * 3
        assert dict(message.headers)["stream-car-offset"] == b"5"


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
    other = IntakeFold(OTHER_RULESET, TWO, shard=0, signatures=SIGNATURES)
    decoded = other.read(record(5, document(ids_of(0)[0], topic=topic_of(0))))
    state = State()
    [event] = other.emit(decoded, run_fold(state, other.apply(state, decoded)), 1)
    frontier = Frontier()

    assert frontier.apply(event.value) == []
    assert frontier.apply(encode_watermark(generation=other.generation, shard=0, next_offset=9)) == []
    assert (frontier.header.foreign, frontier.header.watermarks) == (2, [0, 0])


@pytest.mark.parametrize("value", [None, b"", b"garbage", b"{}", b'{"kind":"place","v":1,"generation":"GEN"}'])
def test_records_that_no_worker_signed_are_ignored_and_counted(value: bytes | None) -> None:
    frontier = Frontier()
    value = value and value.replace(b"GEN", frontier.fold.generation.encode())
    watermark = encode_watermark(generation=frontier.fold.generation, shard=0, next_offset=2**62)
    [event] = Intake().apply(record(5, document(ids_of(0)[0], topic=topic_of(0))))

    assert [frontier.apply(given, is_signed=False) for given in (value, watermark, event.value)] == [[], [], []]
    assert (frontier.header.foreign, frontier.header.watermarks, frontier.header.oseqs) == (3, [0, 0], [0, 0])
    assert frontier.apply(event.value)


@pytest.mark.parametrize(
    "value",
    [
        b'{"kind":"place","v":1,"generation":"GEN"}',
        b'{"kind":"mark","v":1,"generation":"GEN","shard":2,"next":1}',
        b'{"kind":"mark","v":1,"generation":"GEN","shard":-1,"next":1}',
        b'{"kind":"mark","v":1,"generation":"GEN","shard":0,"next":99999999999999999999}',
    ],
)
def test_a_signed_record_with_impossible_values_is_never_applied(value: bytes) -> None:
    frontier = Frontier()

    with pytest.raises(ValueError, match=r"."):
        frontier.apply(value.replace(b"GEN", frontier.fold.generation.encode()))


def test_a_placement_that_is_older_than_the_key_counts_as_it_did() -> None:
    frontier = Frontier(signatures=OLD)
    [event] = Intake().apply(record(5, document(ids_of(0)[0], topic=topic_of(0))))

    assert frontier.apply(b"garbage", is_signed=False) == []
    assert frontier.apply(event.value, is_signed=False)


def test_a_copy_of_a_placement_in_another_partition_is_foreign() -> None:
    [event] = Intake().apply(record(5, document(ids_of(0)[0], topic=topic_of(1))))
    frontier = Frontier(shard=0)

    assert frontier.apply(event.value) == []
    assert (frontier.header.foreign, frontier.header.oseqs) == (1, [0, 0])


def test_rules_partitions_and_the_future_make_another_generation() -> None:
    more = Partitions(intakes=2, frontiers=4)
    names = {
        generation_of(RULESET, TWO),
        generation_of(RULESET, more),
        generation_of(OTHER_RULESET, TWO),
        generation_of(RULESET, TWO, "apply"),
    }

    assert len(names) == 4

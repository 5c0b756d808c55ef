"""The folds apart: what each says to the other, and what it drops."""

from collections.abc import Generator, Sequence
from typing import TypeVar

import msgspec
import pytest

from stream_car.codec import encode
from stream_car.codec.placements import PlacementRecord, decode_placement, encode_watermark
from stream_car.core.changes import FrontierChange
from stream_car.core.documents import Document
from stream_car.errors import Halted
from stream_car.ports import Emission, Message, Record
from stream_car.processing.fold import REJECTED
from stream_car.processing.headers import FrontierHeader
from stream_car.processing.partitions import Partitions
from stream_car.processing.state import State
from stream_car.processing.two_hop import (
    DOCUMENTS,
    FORWARDED,
    FRONTIER,
    PLACEMENTS,
    REJECTED_MAX,
    FrontierFold,
    IntakeFold,
    generation_of,
    message_of_emission,
)
from tests.support.engines import NOW, OTHER_RULESET, RULESET, document

T = TypeVar("T")
TWO = Partitions(intakes=2, frontiers=2)


def at_home(shard: int, partitions: Partitions = TWO) -> list[str]:
    return [name for name in map(str, range(40)) if partitions.of_id(name) == shard]


def topic_of(shard: int) -> str:
    return next(name for name in map(str, range(40)) if TWO.of_scope(f"topic={name}".encode()) == shard)


def record(
    offset: int,
    said: Document | bytes | None,
    *,
    key: bytes | None = None,
    headers: Sequence[tuple[str, bytes]] = (),
) -> Record:
    value = encode(said) if isinstance(said, Document) else said
    return Record(offset=offset, append_time=NOW, value=value, key=key, headers=tuple(headers))


def driven(state: State, steps: Generator[list[bytes], None, T]) -> T:
    while True:
        try:
            keys = next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
        state.update(dict.fromkeys(keys))


class Intake:
    """An intake shard over a plain dictionary."""

    def __init__(self, shard: int = 0, partitions: Partitions = TWO) -> None:
        self.fold = IntakeFold(RULESET, partitions, shard=shard)
        self.state = State()
        self.oseq = 0

    def take(self, given: Record) -> list[Emission]:
        read = self.fold.read(given)
        events = self.fold.emit(read, driven(self.state, self.fold.apply(self.state, read)), self.oseq + 1)
        self.oseq += len(events)
        return events


class Frontier:
    """A frontier shard over a plain dictionary."""

    def __init__(self, shard: int = 0) -> None:
        self.fold = FrontierFold(RULESET, TWO, shard=shard)
        self.state = State()
        self.offset = 0

    def take(self, value: bytes | None) -> list[FrontierChange]:
        read = self.fold.read(record(self.offset, value))
        effects = driven(self.state, self.fold.apply(self.state, read))
        self.offset += 1
        return [msgspec.json.decode(e.value, type=FrontierChange) for e in self.fold.emit(read, effects, 1)]

    @property
    def header(self) -> FrontierHeader:
        found = self.state[FRONTIER]
        assert isinstance(found, FrontierHeader)
        return found


def test_a_document_becomes_one_placement_a_scope_with_its_number_and_input() -> None:
    name = at_home(0)[0]
    events = Intake().take(record(5, document(name, topic="rain", place="here")))
    sent = [decode_placement(event.value) for event in events]

    assert [(event.oseq, event.stream) for event in events] == [(1, PLACEMENTS), (2, PLACEMENTS)]
    assert all(isinstance(one, PlacementRecord) and (one.shard, one.offset, one.id) == (0, 5, name) for one in sent)
    assert [event.key.decode() for event in events] == [one.scope for one in sent if isinstance(one, PlacementRecord)]


def test_a_record_in_the_wrong_partition_is_forwarded_as_it_came_and_says_where_from() -> None:
    stray = record(5, document(at_home(1)[0], topic="rain"), headers=(("trace", b"x"),))
    [event] = Intake().take(stray)

    assert (event.stream, event.key.decode()) == (DOCUMENTS, at_home(1)[0])
    assert message_of_emission(event) == Message(
        value=stray.value, key=stray.key, headers=(("trace", b"x"), (FORWARDED, b"0/5"))
    )


def test_a_forwarded_record_counts_once_however_often_it_comes() -> None:
    name = at_home(1)[0]
    intake = Intake(shard=1)
    forwarded = [
        record(0, document(name, topic="rain"), headers=((FORWARDED, b"0/5"),)),
        record(1, None, key=name.encode(), headers=((FORWARDED, b"0/6"),)),
        record(2, document(name, revision=2, topic="rain"), headers=((FORWARDED, b"0/7"),)),
    ]
    for one in forwarded:
        assert intake.take(one)

    late = [msgspec.structs.replace(one, offset=one.offset + 3) for one in forwarded]

    assert [intake.take(one) for one in late] == [[], [], []]


def test_a_copy_that_belongs_nowhere_here_is_left_to_its_original() -> None:
    stray = record(5, document(at_home(1)[0], topic="rain"), headers=((FORWARDED, b"1/3"),))

    assert Intake().take(stray) == []


@pytest.mark.parametrize("origin", [b"", b"x/1", b"1", b"9/1", b"-1/2", b"1/x"])
def test_a_header_that_names_no_partition_is_a_publishers_own_affair(origin: bytes) -> None:
    given = record(5, document(at_home(0)[0], topic="rain"), headers=((FORWARDED, origin),))

    assert [event.stream for event in Intake().take(given)] == [PLACEMENTS]


def test_what_is_rejected_keeps_its_bytes_key_headers_and_coordinates() -> None:
    [event] = Intake().take(record(5, b"{", key=b"k", headers=(("trace", b"x"),)))
    message = message_of_emission(event)
    said = dict(message.headers)

    assert (event.stream, message.value, message.key, said["trace"]) == (REJECTED, b"{", b"k", b"x")
    assert (said["stream-car-code"], said["stream-car-partition"], said["stream-car-offset"]) == (b"syntax", b"0", b"5")


def test_of_a_huge_rejected_record_only_the_coordinates_are_kept() -> None:
    [event] = Intake().take(record(5, b"{" * (REJECTED_MAX + 1)))

    assert message_of_emission(event).value is None
    assert dict(message_of_emission(event).headers)["stream-car-offset"] == b"5"


def test_a_placement_is_applied_once_and_repeats_are_dropped() -> None:
    intake, frontier = Intake(), Frontier()
    topic = topic_of(0)
    [event] = intake.take(record(5, document(at_home(0)[0], topic=topic)))

    assert [change.entered[0].id for change in frontier.take(event.value)] == [at_home(0)[0]]
    assert frontier.take(event.value) == []
    assert (frontier.header.applied, frontier.header.repeated, frontier.header.oseqs) == (1, 1, [1, 0])


def test_a_placement_moves_the_bound_to_its_input_and_a_mark_beyond() -> None:
    intake, frontier = Intake(), Frontier()
    [event] = intake.take(record(5, document(at_home(0)[0], topic=topic_of(0))))
    frontier.take(event.value)

    assert frontier.header.watermarks == [5, 0]

    frontier.take(encode_watermark(generation=frontier.fold.generation, shard=0, next_offset=6))
    frontier.take(encode_watermark(generation=frontier.fold.generation, shard=0, next_offset=4))

    assert frontier.header.watermarks == [6, 0]


def test_what_another_generation_said_is_passed_over() -> None:
    other = IntakeFold(OTHER_RULESET, TWO, shard=0)
    read = other.read(record(5, document(at_home(0)[0], topic=topic_of(0))))
    state = State()
    [event] = other.emit(read, driven(state, other.apply(state, read)), 1)
    frontier = Frontier()

    assert frontier.take(event.value) == []
    assert frontier.take(encode_watermark(generation=other.generation, shard=0, next_offset=9)) == []
    assert (frontier.header.foreign, frontier.header.watermarks) == (2, [0, 0])


def test_a_placement_that_lies_in_a_wrong_partition_halts_the_shard() -> None:
    [event] = Intake().take(record(5, document(at_home(0)[0], topic=topic_of(1))))

    with pytest.raises(Halted) as caught:
        Frontier(shard=0).take(event.value)

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

"""The records between the hops: nothing is lost on the way, and nothing unknown is passed over."""

import pytest

from stream_car.codec.placements import (
    PlacementRecord,
    WatermarkRecord,
    decode_placement,
    encode_placement,
    encode_watermark,
)
from stream_car.core.changes import Cause
from stream_car.core.revisions import Placement
from stream_car.core.stored import Entry
from stream_car.errors import Halted

CAUSE = Cause(id="n1", revision=2, kind="corrected", title="Größe")
ENTRY = Entry("n1", 2, "claim", -5, 1, 7, 1_700_000_000_000_000, 3, ('"a"', "null"))


@pytest.mark.parametrize(
    "placement",
    [
        Placement(scope="topic=rain", id="n1", entry=ENTRY, old=None, cause=CAUSE, offset=9),
        Placement(scope='topic="a, b"', id="n1", entry=ENTRY, old=("claim", -7, 0), cause=CAUSE, offset=9),
        Placement(scope="document=x", id="n1", entry=None, old=("claim", -7, 0), cause=CAUSE, offset=9, is_link=True),
    ],
)
def test_a_placement_arrives_as_it_was_sent(placement: Placement) -> None:
    value = encode_placement(placement, generation="g-1", shard=3, oseq=12)
    record = decode_placement(value, "g-1")

    assert isinstance(record, PlacementRecord)
    assert (record.generation, record.shard, record.oseq, record.offset) == ("g-1", 3, 12, 9)
    assert record.placement() == placement


def test_a_mark_arrives_as_it_was_sent() -> None:
    record = decode_placement(encode_watermark(generation="g-1", shard=3, next_offset=40), "g-1")

    assert isinstance(record, WatermarkRecord)
    assert (record.generation, record.shard, record.next) == ("g-1", 3, 40)


@pytest.mark.parametrize("v", [b"2", b"0"])
@pytest.mark.parametrize("rest", [b'"kind":"mark","shard":0,"next":1', b'"kind":"promise"'])
def test_a_record_of_another_version_halts_the_shard(v: bytes, rest: bytes) -> None:
    with pytest.raises(Halted) as caught:
        decode_placement(b'{"v":%b,"generation":"g",%b}' % (v, rest), "g")

    assert caught.value.code == "format"


@pytest.mark.parametrize(
    "rest",
    [
        b'"kind":"promise"',
        b'"kind":"place"',
        b'"kind":"mark","shard":-1,"next":1',
        b'"kind":"mark","shard":0,"next":-1',
        b'"kind":"mark","shard":0,"next":%b' % (b"9" * 30),
        b'"kind":"mark","shard":0,"next":1,"more":1',
    ],
)
def test_a_record_of_this_generation_must_be_whole_and_within_bounds(rest: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_placement(b'{"v":1,"generation":"g",%b}' % rest, "g")


@pytest.mark.parametrize(
    "value", [None, b"", b"{", b"[]", b'"g"', b'{"kind":"place","v":1,"generation":"h"}', b'{"v":"1","generation":"g"}']
)
def test_a_record_of_another_generation_or_program_is_no_placement(value: bytes | None) -> None:
    assert decode_placement(value, "g") is None

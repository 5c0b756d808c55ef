"""What every log promises."""

import pytest

from stream_car.errors import Halted
from stream_car.ports import Log, Message, Record
from tests.support.local_ports import Backend, SetClock


def messages(*values: bytes) -> list[Message]:
    return [Message(value=value, key=b"key of " + value) for value in values]


def contents(records: "list[Record] | tuple[Record, ...]") -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in records]


async def test_a_new_log_is_empty(log: Log) -> None:
    assert await log.range(0) == (0, 0)
    assert list(await log.fetch(0, 0, 10)) == []


async def test_offsets_are_consecutive_from_zero(log: Log) -> None:
    assert await log.append(0, messages(b"a", b"b")) == 0
    assert await log.append(0, messages(b"c")) == 2

    assert contents(list(await log.fetch(0, 0, 10))) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert await log.range(0) == (0, 3)


async def test_an_empty_batch_appends_nothing_and_returns_the_end(log: Log) -> None:
    await log.append(0, messages(b"a"))

    assert await log.append(0, []) == 1
    assert await log.range(0) == (0, 1)


async def test_a_record_is_read_as_it_was_given(log: Log) -> None:
    given = [
        Message(value=b"\x00\xff{}", key=b"\x00k", headers=(("ce_type", b"\xff"), ("again", b""), ("again", b"2"))),
        Message(value=None, key=b"retracted"),
        Message(value=b"", key=None),
        Message(value=b"x" * 1_000_000, key=b""),
    ]
    await log.append(0, given)

    read = await log.fetch(0, 0, 10)

    assert [Message(value=r.value, key=r.key, headers=r.headers) for r in read] == given


async def test_fetch_starts_at_exactly_the_offset_and_stops_at_the_limit(log: Log) -> None:
    await log.append(0, messages(b"a", b"b", b"c", b"d"))

    assert contents(list(await log.fetch(0, 1, 2))) == [(1, b"b"), (2, b"c")]


async def test_fetch_at_the_end_returns_nothing(log: Log) -> None:
    await log.append(0, messages(b"a"))

    assert list(await log.fetch(0, 1, 10)) == []


async def test_fetch_beyond_the_end_halts_as_ahead(log: Log) -> None:
    await log.append(0, messages(b"a"))

    with pytest.raises(Halted) as halted:
        await log.fetch(0, 2, 10)

    assert halted.value.code == "ahead"


async def test_append_times_never_decrease_though_the_clock_steps_back(log: Log, clock: SetClock) -> None:
    await log.append(0, messages(b"a"))
    clock.time -= 3_600_000_000
    await log.append(0, messages(b"b"))
    clock.time += 7_200_000_000
    await log.append(0, messages(b"c", b"d"))

    times = [record.append_time for record in await log.fetch(0, 0, 10)]

    assert times == sorted(times)
    assert all(time > 0 for time in times)


async def test_append_times_never_decrease_across_a_crash(backend: Backend, log: Log, clock: SetClock) -> None:
    await log.append(0, messages(b"a"))
    clock.time -= 3_600_000_000

    log = await backend.log(clock)
    await log.append(0, messages(b"b"))

    first, second = await log.fetch(0, 0, 10)
    assert first.append_time <= second.append_time


async def test_what_append_returned_for_survives_a_crash(backend: Backend, log: Log, clock: SetClock) -> None:
    await log.append(0, messages(b"a", b"b"))
    before = list(await log.fetch(0, 0, 10))

    log = await backend.log(clock)

    assert list(await log.fetch(0, 0, 10)) == before
    assert await log.append(0, messages(b"c")) == 2


async def test_partitions_are_numbered_apart(backend: Backend, clock: SetClock) -> None:
    log = await backend.log(clock, partitions=3)
    await log.append(0, messages(b"a"))
    await log.append(2, messages(b"b", b"c"))

    assert [await log.range(partition) for partition in range(3)] == [(0, 1), (0, 0), (0, 2)]
    assert contents(list(await log.fetch(2, 0, 10))) == [(0, b"b"), (1, b"c")]
    assert list(await log.fetch(1, 0, 10)) == []

"""What every journal promises."""

from stream_car.ports import ChangeLog, Emission
from tests.support.local_ports import Backend


def event(oseq: int, stream: str = "changes", key: bytes = b"scope") -> Emission:
    return Emission(oseq=oseq, stream=stream, key=key, value=b"event %d" % oseq)


async def test_a_new_journal_is_empty(journal: ChangeLog) -> None:
    assert await journal.last(0) == 0
    assert list(await journal.read(0, "changes")) == []


async def test_events_are_read_in_order_as_they_were_published(journal: ChangeLog) -> None:
    await journal.publish(0, [event(1), event(2)])
    await journal.publish(0, [event(3)])

    assert list(await journal.read(0, "changes")) == [event(1), event(2), event(3)]
    assert await journal.last(0) == 3


async def test_publishing_nothing_keeps_nothing(journal: ChangeLog) -> None:
    await journal.publish(0, [])

    assert await journal.last(0) == 0


async def test_a_repeat_changes_nothing(journal: ChangeLog) -> None:
    await journal.publish(0, [event(1), event(2)])

    await journal.publish(0, [event(1), event(2), event(3)])

    assert list(await journal.read(0, "changes")) == [event(1), event(2), event(3)]


async def test_reading_goes_on_after_a_number_and_stops_at_the_limit(journal: ChangeLog) -> None:
    await journal.publish(0, [event(n) for n in range(1, 8)])

    assert [e.oseq for e in await journal.read(0, "changes", after=2, limit=3)] == [3, 4, 5]
    assert list(await journal.read(0, "changes", after=7)) == []


async def test_a_stream_is_read_apart_from_others(journal: ChangeLog) -> None:
    await journal.publish(0, [event(1), event(2, "rejected"), event(3), event(4, "rejected")])

    assert [e.oseq for e in await journal.read(0, "rejected")] == [2, 4]
    assert [e.oseq for e in await journal.read(0, "changes", after=1)] == [3]
    assert await journal.last(0) == 4


async def test_with_a_key_only_that_keys_events_are_read(journal: ChangeLog) -> None:
    await journal.publish(0, [event(n, key=b"a" if n % 3 else b"b") for n in range(1, 10)])
    await journal.publish(0, [event(10, stream="rejected", key=b"b")])

    assert [e.oseq for e in await journal.read(0, "changes", key=b"b")] == [3, 6, 9]
    assert [e.oseq for e in await journal.read(0, "changes", key=b"b", after=3, limit=1)] == [6]
    assert list(await journal.read(0, "changes", key=b"c")) == []


async def test_shards_are_read_apart(journal: ChangeLog) -> None:
    await journal.publish(0, [event(1), event(2)])
    await journal.publish(1, [event(1, key=b"other")])

    assert list(await journal.read(1, "changes")) == [event(1, key=b"other")]
    assert (await journal.last(0), await journal.last(1), await journal.last(2)) == (2, 1, 0)


async def test_after_a_crash_what_is_kept_is_a_prefix_that_goes_on(backend: Backend, journal: ChangeLog) -> None:
    events = [event(n) for n in range(1, 40)]
    for emission in events:
        await journal.publish(0, [emission])

    journal = await backend.journal()
    kept = await journal.last(0)
    await journal.publish(0, events[kept:])

    assert list(await journal.read(0, "changes")) == events

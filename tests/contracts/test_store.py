"""What every store promises."""

from collections.abc import Callable, Coroutine

import pytest

from stream_car.errors import ClaimLost
from stream_car.ports import Claim, Emission, Store
from tests.support.local_ports import Backend


def event(oseq: int) -> Emission:
    return Emission(oseq=oseq, stream="changes", key=b"scope", value=b"event %d" % oseq)


async def test_a_shard_never_seen_starts_at_offset_zero_and_event_one(store: Store) -> None:
    claim = await store.claim(3)

    assert (claim.shard, claim.next_offset, claim.next_oseq, claim.trimmed) == (3, 0, 1, 0)
    assert await store.read(claim, [b"key"]) == {}
    assert list(await store.outbox(claim)) == []


async def test_peeking_at_a_shard_never_seen_finds_nothing(store: Store) -> None:
    assert await store.peek(7, [b"key"]) == (0, {})


async def test_a_commit_writes_values_events_and_offset_at_once(store: Store) -> None:
    claim = await store.claim(0)

    claim = await store.commit(claim, 5, {b"a": b"1", b"b": b""}, [event(1), event(2)])

    assert (claim.next_offset, claim.next_oseq) == (5, 3)
    assert await store.read(claim, [b"a", b"b", b"c"]) == {b"a": b"1", b"b": b""}
    assert list(await store.outbox(claim)) == [event(1), event(2)]


async def test_a_commit_replaces_and_deletes(store: Store) -> None:
    claim = await store.commit(await store.claim(0), 1, {b"a": b"1", b"b": b"2", b"c": b"3"}, [])

    claim = await store.commit(claim, 2, {b"a": b"9", b"b": None, b"never": None}, [])

    assert await store.read(claim, [b"a", b"b", b"c"]) == {b"a": b"9", b"c": b"3"}


async def test_an_unused_key_reads_as_absent(store: Store) -> None:
    claim = await store.commit(await store.claim(0), 1, {b"a": b"1"}, [])

    assert await store.read(claim, [b"a\x00", b"", b"A", b"a", b"a"]) == {b"a": b"1"}


async def test_keys_and_values_are_any_bytes(store: Store) -> None:
    writes: dict[bytes, bytes | None] = {bytes([n]) * (n + 1): bytes(range(256)) * n for n in range(256)}

    claim = await store.commit(await store.claim(0), 1, writes, [])

    assert await store.read(claim, list(writes)) == writes


async def test_thousands_of_keys_are_read_at_once(store: Store) -> None:
    writes: dict[bytes, bytes | None] = {b"key %d" % n: b"%d" % n for n in range(3000)}

    claim = await store.commit(await store.claim(0), 1, writes, [])

    assert await store.read(claim, list(writes)) == writes
    assert (await store.peek(0, list(writes)))[1] == writes


async def test_a_commit_may_move_the_offset_alone(store: Store) -> None:
    claim = await store.commit(await store.claim(0), 4, {}, [])

    assert claim.next_offset == 4
    assert (await store.peek(0, []))[0] == 4


async def test_a_repeated_commit_changes_nothing_more(store: Store) -> None:
    claim = await store.claim(0)
    moved = await store.commit(claim, 1, {b"a": b"1"}, [event(1)])

    with pytest.raises(ClaimLost):
        await store.commit(claim, 1, {b"a": b"2"}, [event(1)])

    assert await store.read(moved, [b"a"]) == {b"a": b"1"}
    assert list(await store.outbox(moved)) == [event(1)]


async def test_a_commit_that_moved_only_events_cannot_be_repeated(store: Store) -> None:
    claim = await store.claim(0)
    moved = await store.commit(claim, 0, {}, [event(1)])

    with pytest.raises(ClaimLost):
        await store.commit(claim, 0, {}, [event(1)])

    assert moved.next_oseq == 2


async def test_a_read_is_refused_when_the_shard_has_moved(store: Store) -> None:
    claim = await store.claim(0)
    await store.commit(claim, 1, {b"a": b"1"}, [])

    with pytest.raises(ClaimLost):
        await store.read(claim, [b"a"])


Call = Callable[[Store, Claim], Coroutine[object, object, object]]
CALLS: dict[str, Call] = {
    "read": lambda store, claim: store.read(claim, [b"a"]),
    "commit": lambda store, claim: store.commit(claim, 2, {b"a": b"2"}, []),
    "outbox": lambda store, claim: store.outbox(claim),
    "trim": lambda store, claim: store.trim(claim, 1),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_nothing_is_done_for_a_claim_that_another_worker_took(store: Store, call: Call) -> None:
    old = await store.commit(await store.claim(0), 1, {b"a": b"1"}, [event(1)])
    new = await store.claim(0)

    with pytest.raises(ClaimLost):
        await call(store, old)

    assert await store.read(new, [b"a"]) == {b"a": b"1"}
    assert list(await store.outbox(new)) == [event(1)]


async def test_a_new_claim_stands_where_the_old_one_stopped(store: Store) -> None:
    old = await store.commit(await store.claim(0), 9, {b"a": b"1"}, [event(1), event(2)])
    old = await store.trim(old, 1)

    new = await store.claim(0)

    assert (new.next_offset, new.next_oseq, new.trimmed) == (9, 3, 1)
    assert new.owner != old.owner
    assert list(await store.outbox(new)) == [event(2)]


async def test_trimming_forgets_up_to_and_including_an_event(store: Store) -> None:
    claim = await store.commit(await store.claim(0), 1, {}, [event(1), event(2)])
    claim = await store.commit(claim, 2, {}, [event(3), event(4)])

    claim = await store.trim(claim, 1)
    assert list(await store.outbox(claim)) == [event(2), event(3), event(4)]
    claim = await store.trim(claim, 3)
    assert list(await store.outbox(claim)) == [event(4)]
    claim = await store.trim(claim, 4)
    assert list(await store.outbox(claim)) == []
    assert (claim.trimmed, claim.next_oseq, claim.next_offset) == (4, 5, 2)


async def test_trimming_again_brings_nothing_back(store: Store) -> None:
    claim = await store.commit(await store.claim(0), 1, {}, [event(1), event(2), event(3)])
    claim = await store.trim(claim, 2)

    claim = await store.trim(claim, 1)

    assert list(await store.outbox(claim)) == [event(3)]
    assert claim.trimmed == 2


async def test_events_are_numbered_on_after_a_trim(store: Store) -> None:
    claim = await store.commit(await store.claim(0), 1, {}, [event(1)])
    claim = await store.trim(claim, 1)

    claim = await store.commit(claim, 2, {}, [event(2)])

    assert list(await store.outbox(claim)) == [event(2)]


async def test_a_reader_without_a_claim_sees_the_last_commit(store: Store) -> None:
    claim = await store.commit(await store.claim(0), 1, {b"a": b"1"}, [])
    await store.commit(claim, 2, {b"a": b"2", b"b": b"3"}, [])

    assert await store.peek(0, [b"a", b"b", b"c"]) == (2, {b"a": b"2", b"b": b"3"})


async def test_shards_do_not_see_one_another(store: Store) -> None:
    first, second = await store.claim(0), await store.claim(1)

    first = await store.commit(first, 1, {b"a": b"first"}, [event(1)])
    second = await store.commit(second, 1, {b"a": b"second"}, [])

    assert await store.read(first, [b"a"]) == {b"a": b"first"}
    assert await store.read(second, [b"a"]) == {b"a": b"second"}
    assert list(await store.outbox(second)) == []


async def test_after_a_crash_the_state_is_one_that_was_committed(backend: Backend, store: Store) -> None:
    claim: Claim = await store.claim(0)
    for n in range(1, 20):
        claim = await store.commit(claim, n, {b"a": b"%d" % n, b"b": b"%d" % n}, [event(n)])

    store = await backend.store()

    claim = await store.claim(0)
    values = await store.read(claim, [b"a", b"b"])
    reached = claim.next_offset
    assert values == ({b"a": b"%d" % reached, b"b": b"%d" % reached} if reached else {})
    assert list(await store.outbox(claim)) == [event(n) for n in range(1, reached + 1)]

"""The service of a query worker, beyond what every back end does: cursors, its index, its rules, lost state."""

import asyncio
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition

from stream_car.cluster import change_feed
from stream_car.cluster.connections import Connections, Plan
from stream_car.errors import Halted, InvalidRequest, NotVisible, Unavailable, Unsupported
from stream_car.queries import fair_scheduling
from stream_car.queries.answers import RebuildStatus
from stream_car.subscriptions.events import DocumentChange, Event, Reset, ScopeChange
from tests.support.cluster import Installed, ServiceCalls, installed, query_worker, settled_calls
from tests.support.engines import OTHER_RULESET, RULESET, document
from tests.support.servers import in_one_worker

pytestmark = in_one_worker(__name__)

DOCUMENTS = [document(f"d{n}", topic=str(n)) for n in range(30)]  # each in a scope of its own


async def scope_changes(calls: ServiceCalls, count: int, after: str | None) -> list[Event]:
    """Return this many events of a subscription by scope."""
    events: list[Event] = []
    async with calls.subscribe(view="scope", after=after) as subscription, asyncio.timeout(20):
        while len(events) < count:
            events.append(await anext(subscription))
    return events


async def test_a_cursor_of_one_query_worker_continues_at_another(kafka: str, redis: str, tmp_path: Path) -> None:
    async with installed(kafka, redis) as cluster, query_worker(cluster.connections, tmp_path) as service:
        first, second = cluster.calls, ServiceCalls(service)
        beginning = (await first.status()).cursor
        await first.publish(DOCUMENTS)
        at_first = await scope_changes(first, 30, beginning)
        at_second = await scope_changes(second, 30, beginning)
        rest = await scope_changes(second, 20, at_first[9].cursor)
        back = await scope_changes(first, 10, rest[9].cursor)

    def contents(events: list[Event]) -> list[tuple[object, ...]]:
        changes = [event for event in events if isinstance(event, ScopeChange)]
        return sorted((event.change.position, event.change.scope, event.change.entered) for event in changes)

    assert len(contents(at_first)) == 30
    assert contents(at_first) == contents(at_second)
    assert contents(rest) == contents(at_first[10:])
    assert contents(back) == contents(rest[10:])


async def test_a_subscription_of_documents_moves_from_one_query_worker_to_another_without_loss_or_repeat(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    async with installed(kafka, redis) as cluster, query_worker(cluster.connections, tmp_path) as service:
        calls = [cluster.calls, ServiceCalls(service)]
        cursor = (await cluster.calls.status()).cursor
        received: list[str] = []
        await cluster.calls.publish(DOCUMENTS[:15])
        async with asyncio.timeout(20):
            while len(received) < 30:
                async with calls[len(received) % 2].subscribe(after=cursor) as subscription:
                    event = await anext(subscription)
                    subscription.keep()
                assert isinstance(event, DocumentChange)
                received.append(event.id)
                cursor = subscription.cursor or ""
                if len(received) == 10:
                    await cluster.calls.publish(DOCUMENTS[15:])

    assert sorted(received) == sorted(one.id for one in DOCUMENTS)


async def test_a_stored_index_is_continued(kafka: str, redis: str, tmp_path: Path) -> None:
    async with installed(kafka, redis) as cluster:
        async with query_worker(cluster.connections, tmp_path) as service:
            first = ServiceCalls(service)
            await first.publish(DOCUMENTS)
            answer = await first.query("d7")
        indexed = list(service.indexer.indexed)
        await cluster.calls.publish(document("late", topic="late"))
        async with query_worker(cluster.connections, tmp_path) as service:
            again = ServiceCalls(service)
            assert service.began_at == indexed
            assert sum(service.indexer.indexed) == 31
            assert (await again.query("d7")).results == answer.results
            assert [result.id for result in (await again.query("late")).results] == ["late"]


async def test_an_index_whose_list_of_keys_is_damaged_is_built_again(kafka: str, redis: str, tmp_path: Path) -> None:
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish(DOCUMENTS)
        async with query_worker(cluster.connections, tmp_path):
            pass
        damaged = bytearray((tmp_path / "keys.sqlite").read_bytes())
        damaged[damaged.index(b"d:d7")] ^= 1
        (tmp_path / "keys.sqlite").write_bytes(damaged)
        async with query_worker(cluster.connections, tmp_path) as service:
            listed = await service.indexer._keys.keys(b"d:", b"d;", 100)

        assert service.began_at == [0, 0]
        assert sorted(listed) == sorted(b"d:" + item.id.encode() for item in DOCUMENTS)


async def test_a_query_worker_with_other_rules_than_the_workers_does_not_start(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish(document("d", topic="tea"))
        plan = cluster.connections.plan
        connections = await Connections.open(
            Plan(kafka=plan.kafka, redis=plan.redis, ruleset=OTHER_RULESET, prefix=plan.prefix, single_broker=True)
        )
        try:
            with pytest.raises(Halted, match="--rules") as caught:
                async with query_worker(connections, tmp_path):
                    pass
        finally:
            await connections.close()

    assert caught.value.code == "generation"


async def test_changes_are_listed_shard_by_shard_and_continue_after_a_position(kafka: str, redis: str) -> None:
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish(DOCUMENTS)
        await cluster.rest()
        every = await cluster.calls.changes()
        paged = list(await cluster.calls.changes(limit=7))
        while len(paged) < 30:
            paged += await cluster.calls.changes(limit=7, after=paged[-1].position)
        after_the_last = await cluster.calls.changes(after=every[-1].position)
        of_one_scope = await cluster.calls.changes("topic=7")
        for position in ("x/1/2", f"{cluster.generation}/1", "nonsense"):
            with pytest.raises(InvalidRequest):
                await cluster.calls.changes(after=position)

    shards = [int(change.position.split("/")[1]) for change in every]
    assert tuple(paged) == every
    assert after_the_last == ()
    assert shards == sorted(shards)
    assert set(shards) == set(range(cluster.shards))
    assert [change.scope for change in of_one_scope] == ["topic=7"]
    assert of_one_scope[0] in every


async def test_a_lagging_index_is_awaited_no_longer_than_the_request_allows(
    kafka: str, redis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands_still = asyncio.Event()

    async def stand_still() -> bool:
        stands_still.set()
        return await asyncio.Event().wait()

    async with installed(kafka, redis) as cluster, query_worker(cluster.connections, tmp_path) as service:
        monkeypatch.setattr(service.indexer, "catch_up", stand_still)
        await stands_still.wait()
        await cluster.calls.publish(document("d", topic="tea"))
        async with asyncio.timeout(5):
            with pytest.raises(NotVisible) as caught:
                await ServiceCalls(service).resolve(["d"], min_revisions=[("d", 1)], timeout_ms=200)

    assert caught.value.code == "not_visible"


async def test_a_subscriber_whose_changes_retention_has_deleted_begins_again(
    kafka: str, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "RECENT_MAX", 1)
    async with installed(kafka, redis) as cluster:
        beginning = (await cluster.calls.status()).cursor
        await cluster.calls.publish(DOCUMENTS)
        await cluster.rest()
        log = cluster.connections.log("changes")
        ends = {TopicPartition(log.topic, p): (await log.range(p))[1] for p in range(cluster.shards)}
        assert min(ends.values()) > 2 * change_feed.RECENT_MAX
        admin = KafkaAdminClient(bootstrap_servers=kafka)
        await asyncio.to_thread(admin.delete_records, ends)
        admin.close()
        async with asyncio.timeout(20), cluster.calls.subscribe(view="scope", after=beginning) as subscription:
            first = await anext(subscription)

    assert isinstance(first, Reset)
    assert first.reason == "cursor_expired"


async def test_status_counts_over_all_shards(kafka: str, redis: str) -> None:
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish([*DOCUMENTS, DOCUMENTS[0], b"{", document("later", at=100_000, topic="t")])
        await cluster.rest()
        status = await cluster.calls.status()
        pending = await cluster.calls.pending()
        rules = await cluster.calls.rules()

    assert status.next_offset == 33
    assert status.outcomes == {"accepted": 30, "duplicate": 1, "pending": 1, "rejected": 1}
    assert (status.documents, status.pending) == (31, 1)
    assert status.changes_from == 1
    assert status.cursor.startswith(f"{cluster.generation}:")
    assert sum(map(int, status.cursor.rpartition(":")[2].split("."))) == 30
    assert [(one.id, one.revision) for one in pending] == [("later", 1)]
    assert rules.generation == status.generation == cluster.generation


async def test_what_a_query_worker_does_not_do_is_unsupported_and_the_error_tells_what_to_do_instead(
    kafka: str, redis: str
) -> None:
    async with installed(kafka, redis) as cluster:
        with pytest.raises(Unsupported, match="stream-car publish --format"):
            await cluster.calls.publish([b"{}"], format="osv")
        for dry_run in (True, False):
            with pytest.raises(Unsupported, match="--namespace"):
                await cluster.calls.rebuild("security", dry_run=dry_run)
        assert await cluster.calls.rebuild_status() == RebuildStatus()


async def query_until_unavailable(calls: ServiceCalls) -> None:
    """Query again and again, for at most twenty seconds."""
    async with asyncio.timeout(20):
        while True:
            await calls.query("d1")
            await asyncio.sleep(0.01)


async def wait_for_rejected(cluster: Installed, count: int) -> None:
    """Return when the topic `rejected` has this many records."""
    log = cluster.connections.log("rejected")
    async with asyncio.timeout(20):
        while (await log.range(0))[1] < count:
            await asyncio.sleep(0.01)


async def test_what_is_rejected_again_after_state_was_lost_is_listed_once(kafka: str, redis: str) -> None:
    async with installed(kafka, redis) as cluster:
        calls = cluster.calls
        await calls.publish([b"{", document("d1", topic="tea"), b"[", b"}"])
        await wait_for_rejected(cluster, 3)
        before = await calls.rejected()
        await cluster.lose_redis()
        await wait_for_rejected(cluster, 6)
        await cluster.rest()
        again = await calls.rejected()
        pages = [await calls.rejected(after=after, limit=1) for after in (0, *(one.number for one in before))]

    assert [one.value for one in before] == [b"{", b"[", b"}"]
    assert again == before
    assert [[one.offset for one in page] for page in pages] == [[0], [1], [2], []]


async def test_a_redis_that_lost_everything_sends_nothing_to_subscribers(kafka: str, redis: str) -> None:
    async with installed(kafka, redis) as cluster:
        calls = cluster.calls
        await calls.publish(DOCUMENTS)
        await cluster.rest()
        cursor = (await calls.status()).cursor
        async with calls.subscribe(after=cursor) as subscription:
            await cluster.lose_redis()
            with pytest.raises(Unavailable) as caught:
                await query_until_unavailable(calls)
            with pytest.raises(Unavailable):
                await anext(calls.subscribe())
            await cluster.rest()
            await calls.publish(document("end", "denial", 9, topic="7"))
            changes: list[tuple[str, str]] = []
            async with asyncio.timeout(20):
                while len(changes) < 2:
                    event = await anext(subscription)
                    if isinstance(event, DocumentChange):
                        changes.append((event.id, event.status))

    assert caught.value.code == "catching_up"
    assert sorted(changes) == [("d7", "superseded"), ("end", "in_force")]


async def test_short_questions_are_answered_while_a_long_walk_goes_on(
    kafka: str, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_scheduling, "YIELD_S", 0.0)  # the long question yields wherever it can
    names = [f"c{n}" for n in range(300)]
    earlier = [(), *((name,) for name in names)]
    chain = [document(name, topic=name, supersedes=link) for name, link in zip(names, earlier, strict=False)]
    answered: list[str] = []

    async def ask(calls: ServiceCalls, label: str, ids: list[str]) -> None:
        await calls.resolve(ids)
        answered.append(label)

    async with settled_calls(kafka, redis, RULESET) as calls:
        assert isinstance(calls, ServiceCalls)
        await calls.publish(chain)
        long = asyncio.create_task(ask(calls, "long", names))
        for _ in range(5):
            await ask(calls, "short", [names[-1]])
        await long

    assert answered == [*["short"] * 5, "long"]

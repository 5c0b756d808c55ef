"""What a query worker promises beyond what every service does: receipts, cursors, its index, its rules."""

import asyncio
from pathlib import Path
from random import Random

import pytest
from kafka import KafkaAdminClient, TopicPartition

from stream_car.api.messages import Seen
from stream_car.cluster import change_feed
from stream_car.cluster.connections import Plan, Works
from stream_car.cluster.service import ServersService
from stream_car.codec import encode_document
from stream_car.errors import Halted, InvalidRequest, NotVisible, Unavailable
from stream_car.subscriptions.events import DocumentChange, Event, Filter, Reset
from tests.support.cluster import Installed, installed, query_worker
from tests.support.engines import OTHER_RULESET, document, engine
from tests.support.servers import in_one_worker
from tests.support.streams import random_rules, random_stream

pytestmark = in_one_worker("kafka")


async def heard(service: ServersService, count: int, after: str | None) -> list[Event]:
    """So many events of a subscription by scope."""
    found: list[Event] = []
    events = await service.subscribe(Filter(view="scope"), after=after)
    async for some in events:
        found += some
        if len(found) >= count:
            break
    return found


async def test_receipts_say_what_intake_decided_also_of_many_statements_about_one_id(kafka: str, redis: str) -> None:
    random = Random(5)
    ruleset = random_rules(random)
    batches = [random_stream(random, random.choice((1, 5, 60))) for _ in range(12)]
    async with installed(kafka, redis, ruleset=ruleset) as here:
        with engine(ruleset=ruleset) as car:
            for batch in batches:
                expected = car.publish(batch).receipts
                told = (await here.service.publish([encode_document(one) for one in batch])).receipts

                assert [(r.outcome, r.id, r.revision, r.type, r.code, r.scopes, r.lacking) for r in told] == [
                    (r.outcome, r.id, r.revision, r.type, r.code, r.scopes, r.lacking) for r in expected
                ]
            assert {one.code for one in car.rejected()} >= {"conflict"}


async def test_a_cursor_of_one_query_worker_is_good_at_another(kafka: str, redis: str, tmp_path: Path) -> None:
    async with installed(kafka, redis) as here, query_worker(here.works, tmp_path) as other:
        beginning = (await here.service.status()).cursor
        await here.service.publish([encode_document(document(f"d{n}", topic=str(n))) for n in range(30)])
        one = await heard(here.service, 30, beginning)
        two = await heard(other, 30, beginning)
        rest = await heard(other, 20, one[9].cursor)

    def by_position(events: list[Event]) -> list[object]:
        return sorted((said.data for said in events), key=repr)

    assert by_position(one) == by_position(two)
    assert by_position(rest) == by_position(one[10:])


async def test_an_index_that_was_kept_is_gone_on_with(kafka: str, redis: str, tmp_path: Path) -> None:
    async with installed(kafka, redis) as here:
        async with query_worker(here.works, tmp_path) as first:
            await first.publish([encode_document(document(f"d{n}", topic=str(n))) for n in range(30)])
            answered = await first.query("d7")
        kept = list(first.feeder.fed)
        await here.service.publish([encode_document(document("late", topic="late"))])
        async with query_worker(here.works, tmp_path) as again:
            assert again.began_at == kept
            assert sum(again.feeder.fed) == 31
            assert [one.id for one in (await again.query("d7")).results] == [one.id for one in answered.results]
            assert [one.id for one in (await again.query("late")).results] == ["late"]


async def test_a_query_worker_with_other_rules_than_the_workers_does_not_start(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    async with installed(kafka, redis) as here:
        await here.service.publish([encode_document(document("d", topic="tea"))])
        plan = here.works.plan
        works = await Works.open(
            Plan(kafka=plan.kafka, redis=plan.redis, ruleset=OTHER_RULESET, prefix=plan.prefix, single_broker=True)
        )
        try:
            with pytest.raises(Halted, match="--rules") as caught:
                async with query_worker(works, tmp_path):
                    pass
        finally:
            await works.close()

    assert caught.value.code == "generation"


async def test_changes_are_listed_shard_by_shard_and_gone_on_with(kafka: str, redis: str) -> None:
    async with installed(kafka, redis) as here:
        await here.service.publish([encode_document(document(f"d{n}", topic=str(n))) for n in range(30)])
        await here.rest()
        every = await here.service.changes()
        found = list(await here.service.changes(limit=7))
        while len(found) < 30:
            found += await here.service.changes(limit=7, behind=found[-1].position)
        with pytest.raises(InvalidRequest):
            await here.service.changes(behind="x/1/2")

    assert [one.position for one in found] == [one.position for one in every]
    assert len({one.position.split("/")[1] for one in every}) == here.shards


async def test_an_index_that_is_behind_is_waited_for_no_longer_than_was_asked(
    kafka: str, redis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands = asyncio.Event()

    async def stand_still() -> bool:
        stands.set()
        return await asyncio.Event().wait()

    async with installed(kafka, redis) as here, query_worker(here.works, tmp_path) as other:
        monkeypatch.setattr(other.feeder, "catch_up", stand_still)
        await stands.wait()
        await here.service.publish([encode_document(document("d", topic="tea"))])
        async with asyncio.timeout(5):
            with pytest.raises(NotVisible) as caught:
                await other.resolve(["d"], after=[Seen(id="d", revision=1)], timeout_ms=200)

    assert caught.value.code == "not_visible"


async def test_who_is_behind_what_retention_has_taken_begins_anew(
    kafka: str, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "RECENT_MAX", 1)
    async with installed(kafka, redis) as here:
        beginning = (await here.service.status()).cursor
        await here.service.publish([encode_document(document(f"d{n}", topic=str(n))) for n in range(30)])
        await here.rest()
        log = here.works.log("changes")
        ends = {TopicPartition(log.topic, p): (await log.range(p))[1] for p in range(here.shards)}
        assert min(ends.values()) > 2 * change_feed.RECENT_MAX
        admin = KafkaAdminClient(bootstrap_servers=kafka)
        await asyncio.to_thread(admin.delete_records, ends)
        admin.close()
        async with asyncio.timeout(20):
            events = await here.service.subscribe(Filter(view="scope"), after=beginning)
            first = (await anext(events))[0]

    assert isinstance(first.data, Reset)
    assert first.data.reason == "cursor_expired"


async def asked_until_refused(service: ServersService) -> None:
    """Within twenty seconds."""
    async with asyncio.timeout(20):
        while True:
            await service.query("d1")
            await asyncio.sleep(0.01)


async def refused_so_often(here: Installed, count: int) -> None:
    """Returns when so many records lie in `rejected`."""
    log = here.works.log("rejected")
    async with asyncio.timeout(20):
        while (await log.range(0))[1] < count:
            await asyncio.sleep(0.01)


async def test_what_is_refused_again_after_state_was_lost_is_listed_once(kafka: str, redis: str) -> None:
    async with installed(kafka, redis) as here:
        service = here.service
        await service.publish([b"{", encode_document(document("d1", topic="tea")), b"[", b"}"])
        await refused_so_often(here, 3)
        before = await service.rejected()
        await here.lose_redis()
        await refused_so_often(here, 6)
        await here.rest()
        again = await service.rejected()
        pages = [await service.rejected(after=after, limit=1) for after in (0, *(one.oseq for one in before))]

    assert [one.value for one in before] == [b"{", b"[", b"}"]
    assert again == before
    assert [[one.offset for one in page] for page in pages] == [[0], [1], [2], []]


async def test_a_redis_that_lost_everything_is_no_news_to_subscribers(kafka: str, redis: str) -> None:
    said = [document(f"d{n}", topic=str(n)) for n in range(20)]
    async with installed(kafka, redis) as here:
        service = here.service
        await service.publish([encode_document(one) for one in said])
        await here.rest()
        cursor = (await service.status()).cursor
        events = await service.subscribe(Filter(), after=cursor)
        await here.lose_redis()
        with pytest.raises(Unavailable) as caught:
            await asked_until_refused(service)
        await here.rest()
        await service.publish([encode_document(document("end", "denial", 9, topic="7"))])
        told: list[tuple[str, bool]] = []
        async with asyncio.timeout(20):
            while len(told) < 2:
                change_feed = [one.data for one in await anext(events) if isinstance(one.data, DocumentChange)]
                told += [(one.id, one.active) for one in change_feed]

    assert caught.value.code == "catching_up"
    assert sorted(told) == [("d7", False), ("end", True)]

"""A query worker over a real Kafka and a real Redis answers as the embedded engine does."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import stream_car
from stream_car.codec import decode
from stream_car.subscriptions.events import ActiveDocument, DocumentChange, Event
from tests.chaos.installation import Installation
from tests.support.engines import document
from tests.support.servers import in_one_worker

pytestmark = in_one_worker("kafka")

FEED = Path(stream_car.__file__).parent / "demo" / "feed.jsonl"


async def until_the_end_of(snapshot: AsyncIterator[Event]) -> list[Event]:
    """The snapshot, its end included."""
    found: list[Event] = []
    async with asyncio.timeout(20):
        async for said in snapshot:
            found.append(said)
            if said.event == "snapshot-end":
                break
    return found


QUESTION = "is lodash 4.17.4 safe to use?"


async def test_a_query_worker_takes_and_answers_what_the_embedded_engine_does(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    lines = FEED.read_bytes().splitlines()
    ids = [decode(line).id for line in lines]
    with stream_car.open() as car:
        receipts = car.publish(lines).receipts
        answer = car.query(QUESTION)
        resolved = car.resolve(ids)
        explained = car.explain(ids[0])
        scoped = {one.id for one in receipts if one.scopes}
        active = {one.asked for one in resolved if one.status == "active"} & scoped
    async with Installation(kafka, redis, tmp_path, rules=()).open() as here:
        worker, query = here.worker(), here.serving()
        await worker.assigned(5)
        async with stream_car.AsyncClient(await query.url()) as client:
            await query.ready()
            published = await client.publish(lines)
            assert [(r.outcome, r.id, r.scopes, r.lacking) for r in published.receipts] == [
                (r.outcome, r.id, r.scopes, r.lacking) for r in receipts
            ]
            after = [
                (one.id, one.revision) for one in receipts if one.outcome == "accepted" and one.id and one.revision
            ][-20:]
            told = await client.query(QUESTION, after=after)
            assert [[one.document.id for one in group.controlling] for group in told.groups] == [
                [one.document.id for one in group.controlling] for group in answer.groups
            ]
            assert told.certificate.complete == answer.certificate.complete
            assert [(one.asked, one.status) for one in await client.resolve(ids)] == [
                (one.asked, one.status) for one in resolved
            ]
            assert (await client.explain(ids[0])).status == explained.status
            bad = await client.publish([b'{"id": "bad", "type": "unheard of", "time": "2024-01-01T00:00:00Z"}'])
            assert bad.receipts[0].outcome == "rejected"
            assert [one.id for one in await client.rejected()] == ["bad"]
            async with client.subscribe() as events:
                snapshot = await until_the_end_of(events)
        again = here.serving()
        await again.ready()
        async with stream_car.AsyncClient(await again.url()) as client:
            other = await client.query(QUESTION)
            assert [group.controlling for group in other.groups] == [group.controlling for group in told.groups]
            async with client.subscribe(after=snapshot[-1].cursor) as events:
                await client.publish([document("new", "fact", subject="new", relation="of")])
                async with asyncio.timeout(20):
                    heard = await anext(events)
        assert {one.data.id for one in snapshot if isinstance(one.data, ActiveDocument)} == active
        assert isinstance(heard.data, DocumentChange) and (heard.data.id, heard.data.active) == ("new", True)
        assert await again.stop() == 0
        assert await query.stop() == 0

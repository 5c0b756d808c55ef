"""The text index of a query worker has every document of the state, whatever is lost while it is built."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import pytest

from stream_car import rule_packs
from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.key_list import SqliteKeys
from stream_car.cluster.service import ClusterService
from stream_car.codec import encode
from stream_car.core.documents import Document
from stream_car.core.revisions import document_key
from stream_car.errors import Unavailable
from stream_car.ports import IndexedDocument, Message, ShardId, SnapshotReader
from tests.chaos.installation import RULES
from tests.support.cluster import LOOK_S, REST_S, ServiceCalls, installed, query_worker
from tests.support.engines import document
from tests.support.servers import in_one_worker
from tests.support.streams import random_document

pytestmark = in_one_worker(__name__)

DOCUMENTS = [document(f"d{n}", topic=str(n)) for n in range(60)]


class LosesStateBetweenReads:
    """A `SnapshotReader` before whose next read of documents all state is lost."""

    def __init__(self, views: SnapshotReader, lose: Callable[[], Awaitable[None]], times: int) -> None:
        self.times_left = times
        self._views = views
        self._lose = lose

    async def peek(self, wanted: Mapping[ShardId, Sequence[bytes]]) -> Mapping[ShardId, tuple[int, dict[bytes, bytes]]]:
        if self.times_left and any(key.startswith(document_key("")) for keys in wanted.values() for key in keys):
            self.times_left -= 1
            await self._lose()
        return await self._views.peek(wanted)


async def indexed_ids(service: ClusterService, documents: Sequence[Document]) -> set[str]:
    return set(await service.index.documents([item.id for item in documents]))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(REST_S):
        while not condition():
            await asyncio.sleep(LOOK_S)


async def publish_until_acknowledged(calls: ServiceCalls, documents: Sequence[Document]) -> list[str]:
    """Publish as a client does, again and again, and return the outcomes."""
    async with asyncio.timeout(REST_S):
        while True:
            try:
                published = await calls.publish(documents)
            except Unavailable:
                await asyncio.sleep(LOOK_S)
            else:
                return [receipt.outcome for receipt in published.receipts]


async def test_no_document_is_passed_over_when_state_is_lost_between_two_reads(kafka: str, redis: str) -> None:
    async with installed(kafka, redis) as cluster:
        losing = LosesStateBetweenReads(cluster.views, cluster.lose_redis, times=8)
        cluster.service.indexer._snapshots = losing
        outcomes = []
        for at in range(0, 60, 5):
            outcomes += await publish_until_acknowledged(cluster.calls, DOCUMENTS[at : at + 5])
        await cluster.rest()

        assert losing.times_left == 0
        assert await indexed_ids(cluster.service, DOCUMENTS) == {item.id for item in DOCUMENTS}
        assert cluster.service.indexer.repaired == 0
        assert set(outcomes) <= {"accepted", "duplicate"}


async def damage(folder: Path, owner: str, change: Callable[[TantivyIndex, SqliteKeys], Awaitable[None]]) -> None:
    """Change a stored index as if it had been built wrongly."""
    index, keys = TantivyIndex(folder), SqliteKeys(folder / "keys.sqlite", owner)
    await change(index, keys)
    index.close()
    keys.close()


async def drop_some(index: TantivyIndex, _: SqliteKeys) -> None:
    await index.apply([], ["d3", "d40"], await index.position())


async def age_one(index: TantivyIndex, _: SqliteKeys) -> None:
    other = IndexedDocument(document=document("d3", topic="3", text="something else"))
    await index.apply([other], [], await index.position())


async def forget_some(index: TantivyIndex, keys: SqliteKeys) -> None:
    await drop_some(index, keys)
    keys._connection.execute("DELETE FROM keys WHERE key = ?", (document_key("d3"),))


async def keep_retracted(index: TantivyIndex, _: SqliteKeys) -> None:
    await index.apply([IndexedDocument(document=document("gone", topic="3"))], [], await index.position())


@pytest.mark.parametrize(("change", "repaired"), [(drop_some, 2), (age_one, 1), (keep_retracted, 1), (forget_some, 1)])
async def test_a_stored_index_that_differs_from_the_state_is_repaired_at_start(
    kafka: str,
    redis: str,
    tmp_path: Path,
    change: Callable[[TantivyIndex, SqliteKeys], Awaitable[None]],
    repaired: int,
) -> None:
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish([*DOCUMENTS, document("gone", topic="3")])
        await cluster.calls.retract("gone")
        async with query_worker(cluster.connections, tmp_path):
            pass
        await damage(tmp_path, cluster.connections.index_owner, change)
        async with query_worker(cluster.connections, tmp_path) as service:
            await until(lambda: service.indexer.repaired == repaired)
            stored = await service.index.documents([item.id for item in (*DOCUMENTS, document("gone"))])

    assert stored == {item.id: item for item in DOCUMENTS}


async def test_a_running_index_that_differs_answers_nothing_until_it_is_repaired(
    kafka: str, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish(DOCUMENTS)
        service = cluster.service
        may_prove, prove = asyncio.Event(), service.indexer._prove

        async def prove_later() -> None:
            await may_prove.wait()
            await prove()

        monkeypatch.setattr(service.indexer, "_prove", prove_later)
        await service.index.apply([], ["d3", "d40"], await service.index.position())
        await until(lambda: not service.can_answer)
        with pytest.raises(Unavailable) as caught:
            await cluster.calls.query("d3")
        may_prove.set()
        await until(lambda: service.can_answer)

        assert caught.value.code == "catching_up"
        assert service.indexer.repaired == 2
        assert await indexed_ids(service, DOCUMENTS) == {item.id for item in DOCUMENTS}


async def test_the_index_and_the_state_agree_on_the_number_of_documents_after_any_stream(
    kafka: str, redis: str
) -> None:
    random, ids = Random(5), 40
    documents = [random_document(random, ids) for _ in range(400)]
    async with installed(kafka, redis, ruleset=rule_packs.load([str(RULES)])) as cluster:
        for at in range(0, 400, 50):
            batches: dict[int, list[Message]] = {}
            for item in documents[at : at + 50]:
                partition = random.randrange(2)  # half of them in the wrong one
                value = None if random.random() < 0.1 else encode(item)
                batches.setdefault(partition, []).append(Message(value=value, key=item.id.encode()))
            for partition, messages in batches.items():
                await cluster.connections.sender.send(cluster.connections.topic("intake"), partition, messages)
            await cluster.rest()
            await until(lambda: cluster.service.can_answer)

            assert cluster.service.indexer.repaired == 0
            assert cluster.service.index.document_count > 0

"""Publishing through a query worker: receipts tell what the intake worker decided and stored."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from stream_car import Retraction
from stream_car.adapters.redis.store import RedisStore
from stream_car.cluster import publishing
from stream_car.codec import Publishable
from stream_car.core.documents import Document
from stream_car.errors import Unavailable
from stream_car.ports import Record
from stream_car.processing import outcomes
from stream_car.processing.effects import DecodedRecord
from stream_car.processing.fold import Fold
from stream_car.processing.outcomes import OutcomePage
from stream_car.processing.receipts import Receipt
from stream_car.processing.state import decode_value
from tests.support.cluster import INTAKES, Installed, ServiceCalls, installed, query_worker
from tests.support.engines import document, engine
from tests.support.servers import in_one_worker
from tests.support.streams import random_rules, random_stream

pytestmark = in_one_worker(__name__)


def without_offsets(receipts: Sequence[Receipt]) -> list[Receipt]:
    return [replace(receipt, offset=0) for receipt in receipts]


STATEMENTS: list[tuple[list[Publishable], list[str]]] = [
    ([document("a", topic="t")], ["accepted"]),
    ([document("a", topic="t")], ["duplicate"]),
    ([document("a", topic="other")], ["rejected conflict"]),
    ([document("a", topic="t", revision=3)], ["accepted"]),
    ([document("a", topic="t", revision=2)], ["older"]),
    ([Retraction(id="a")], ["retracted"]),
    ([Retraction(id="a", revision=3)], ["duplicate"]),
    ([Retraction(id="nobody")], ["nothing"]),
    ([document("later", at=100_000, topic="t")], ["pending"]),
    ([b"{", b"\xff", b'{"id": "b", "type": "unheard of", "time": "2024-01-01"}'], ["rejected syntax"]),
    (
        [
            document("c", topic="t"),
            document("c", topic="t"),
            document("c", topic="t", revision=2),
            document("c", topic="t", revision=2, text="other"),
            document("c", topic="t"),
            Retraction(id="c"),
            document("c", topic="t", revision=2),
            document("c", topic="t", revision=3),
        ],
        ["accepted", "duplicate", "accepted", "rejected conflict", "older", "retracted", "older", "accepted"],
    ),
    ([document("d", attributes={"suprsedes": "a"}), document("e", topic="t")], ["accepted", "accepted"]),
]


async def test_receipts_are_those_of_an_engine_for_every_outcome(kafka: str, redis: str) -> None:
    async with installed(kafka, redis) as cluster:
        with engine() as car:
            for documents, expected in STATEMENTS:
                receipts = (await cluster.calls.publish(documents)).receipts

                outcomes = [" ".join(filter(None, (receipt.outcome, receipt.code))) for receipt in receipts]
                assert outcomes[: len(expected)] == expected
                assert without_offsets(receipts) == without_offsets(car.publish(documents).receipts)
        assert (await cluster.calls.publish([])).receipts == ()


async def test_receipts_are_those_of_an_engine_for_random_statements(kafka: str, redis: str) -> None:
    random = Random(5)
    ruleset = random_rules(random)
    batches = [random_stream(random, random.choice((1, 5, 60))) for _ in range(12)]
    async with installed(kafka, redis, ruleset=ruleset) as cluster:
        with engine(ruleset=ruleset) as car:
            for batch in batches:
                expected = car.publish(batch)
                published = await cluster.calls.publish(batch)

                assert without_offsets(published.receipts) == without_offsets(expected.receipts)
                assert published.outcomes == expected.outcomes
            assert {rejected.code for rejected in car.rejected()} >= {"conflict"}


async def test_of_publishers_that_contend_for_an_id_one_is_accepted_and_each_receives_its_own_outcome(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    contents = [document("same", topic="t", text=f"content {number}") for number in range(40)]
    async with installed(kafka, redis) as cluster, query_worker(cluster.connections, tmp_path) as service:
        publishers = [cluster.calls, ServiceCalls(service)]
        published = await asyncio.gather(
            *(
                publishers[number % 2].publish([document(f"own-{number}", topic="t"), content])
                for number, content in enumerate(contents)
            )
        )
        await cluster.rest()
        [resolution] = await cluster.calls.resolve(["same"])

    own = [publication.receipts[0] for publication in published]
    contested = [publication.receipts[1] for publication in published]
    [winner] = [number for number, receipt in enumerate(contested) if receipt.outcome == "accepted"]
    assert [receipt.id for receipt in own] == [f"own-{number}" for number in range(40)]
    assert {receipt.outcome for receipt in own} == {"accepted"}
    assert Counter(receipt.code for receipt in contested) == {None: 1, "conflict": 39}
    assert contested[winner].offset == min(receipt.offset for receipt in contested)
    assert resolution.groups[0].anchor.text == f"content {winner}"


async def test_a_document_is_decoded_once_where_it_is_published_and_once_where_it_is_applied(
    kafka: str, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: Counter[int] = Counter()  # by fold: one of the publisher; per intake shard, one of the worker
    read = Fold.read

    def count(self: Fold, record: Record) -> DecodedRecord:
        decoded[id(self)] += 1
        return read(self, record)

    monkeypatch.setattr(Fold, "read", count)
    async with installed(kafka, redis) as cluster:
        publisher = id(cluster.service._publisher._fold)
        indexing = {id(fold._fold) for fold in cluster.service.indexer._folds}
        await cluster.calls.publish([document(f"d{number}", topic="t") for number in range(20)])
        await cluster.rest()

    assert decoded.pop(publisher) == 20
    assert sum(decoded.pop(fold, 0) for fold in indexing) == 20
    assert sum(decoded.values()) == 20


async def publish_held_back(cluster: Installed, service: ServiceCalls, documents: list[Document]) -> Unavailable:
    """Publish documents, then as many others of the same partition as overwrite the outcomes before they are read."""
    indexer = service.service.indexer  # type: ignore[attr-defined]
    wait_for = indexer.wait_for
    is_applied, may_continue = asyncio.Event(), asyncio.Event()

    async def hold_back(*arguments: object) -> object:
        is_indexed = await wait_for(*arguments)
        is_applied.set()
        await may_continue.wait()
        return is_indexed

    indexer.wait_for = hold_back
    publication = asyncio.create_task(service.publish(documents))
    await is_applied.wait()
    partition = cluster.connections.partitions.of_id(documents[0].id)
    names = (f"other-{number}" for number in range(10_000))
    others = [name for name in names if cluster.connections.partitions.of_id(name) == partition]
    for start in (0, outcomes.PAGE):
        await cluster.calls.publish([document(name, topic="t") for name in others[start : start + outcomes.PAGE]])
    may_continue.set()
    indexer.wait_for = wait_for
    with pytest.raises(Unavailable) as caught:
        await publication
    return caught.value


async def test_outcomes_that_were_overwritten_are_unavailable_and_publishing_again_gives_receipts(
    kafka: str, redis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "PAGES", 2)
    async with installed(kafka, redis) as cluster, query_worker(cluster.connections, tmp_path) as service:
        slow = ServiceCalls(service)
        error = await publish_held_back(cluster, slow, [document("d", topic="t")])
        again = await slow.publish([document("d", topic="t")])
        await cluster.rest()
        [resolution] = await slow.resolve(["d"])

    assert "Publish them again" in str(error)
    assert [receipt.outcome for receipt in again.receipts] == ["duplicate"]
    assert resolution.status == "in_force"


async def test_a_publication_of_more_documents_than_outcomes_are_stored_is_answered_in_full(
    kafka: str, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "PAGES", 2)
    monkeypatch.setattr(publishing, "PART_MAX", outcomes.PAGE)
    documents = [document(f"d{number}", topic=str(number)) for number in range(8 * outcomes.PAGE)]
    async with installed(kafka, redis) as cluster:
        published = await cluster.calls.publish([*documents, documents[0]])

    assert [receipt.id for receipt in published.receipts] == [*(document.id for document in documents), "d0"]
    assert published.outcomes == {"accepted": len(documents), "duplicate": 1}


async def test_documents_that_no_worker_applies_are_unavailable_and_are_applied_when_one_runs(
    kafka: str, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with installed(kafka, redis) as cluster:
        async with cluster.without_workers():
            with monkeypatch.context() as patched:
                patched.setattr(publishing, "APPLIED_S", 0.2)
                with pytest.raises(Unavailable, match="publish them again"):
                    await cluster.calls.publish([document("d", topic="t")])
        again = await cluster.calls.publish([document("d", topic="t"), document("e", topic="t")])

    assert [receipt.outcome for receipt in again.receipts] == ["duplicate", "accepted"]


async def test_a_publication_outlives_the_worker_that_was_to_apply_it(kafka: str, redis: str) -> None:
    async with installed(kafka, redis) as cluster:
        async with cluster.without_workers():
            publications = [
                asyncio.create_task(cluster.calls.publish([document(f"d{number}", topic="t"), b"{"]))
                for number in range(5)
            ]
            log = cluster.connections.log("documents")
            async with asyncio.timeout(10):
                while sum([(await log.range(shard.shard))[1] for shard in INTAKES]) < 10:
                    await asyncio.sleep(0.01)
        published = await asyncio.gather(*publications)

    for number, publication in enumerate(published):
        assert [(one.outcome, one.id) for one in publication.receipts] == [
            ("accepted", f"d{number}"),
            ("rejected", None),
        ]


DECIDED: list[Publishable] = [
    document("accepted", topic="t"),
    document("accepted", topic="t"),
    document("accepted", topic="conflict"),
    document("pending", at=100_000, topic="t"),
    b"{",
]
OUTCOMES = ["accepted", "duplicate", "rejected", "pending", "rejected"]
REPEATED = ["duplicate", "duplicate", "rejected", "duplicate", "rejected"]


class Death:
    """Stops the worker that comes first to a step of the store at this step, until its shards are killed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: str, *, is_done: bool) -> None:
        self.is_reached = asyncio.Event()
        method = getattr(RedisStore, step)

        async def stop_first(*arguments: object) -> object:
            is_first = not self.is_reached.is_set()
            result: object = None if is_first and not is_done else await method(*arguments)
            if is_first:
                self.is_reached.set()
                await asyncio.Event().wait()
            return result

        monkeypatch.setattr(RedisStore, step, stop_first)


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", ["commit", "trim"])
async def test_receipts_are_those_of_the_worker_that_decided_although_it_was_killed(
    kafka: str, redis: str, monkeypatch: pytest.MonkeyPatch, step: str, is_done: bool
) -> None:
    async with installed(kafka, redis) as cluster:
        death = Death(monkeypatch, step, is_done=is_done)
        publication = asyncio.create_task(cluster.calls.publish(DECIDED))
        async with asyncio.timeout(20):
            await death.is_reached.wait()
        await cluster.kill_shards()
        await cluster.start_shards()
        published = await publication
        again = await cluster.calls.publish(DECIDED)
        await cluster.rest()
        rejected = await cluster.calls.rejected()

    assert [receipt.outcome for receipt in published.receipts] == OUTCOMES
    assert [receipt.outcome for receipt in again.receipts] == REPEATED
    assert sorted(rejection.code for rejection in rejected) == ["conflict", "conflict", "syntax", "syntax"]


async def test_a_publisher_that_tries_again_receives_what_was_decided_meanwhile(
    kafka: str, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with installed(kafka, redis) as cluster:
        with monkeypatch.context() as patched:
            patched.setattr(publishing, "APPLIED_S", 0.5)
            Death(patched, "commit", is_done=False)
            with pytest.raises(Unavailable):
                await cluster.calls.publish(DECIDED)
            await cluster.kill_shards()
        await cluster.start_shards()
        again = await cluster.calls.publish(DECIDED)

    assert [receipt.outcome for receipt in again.receipts] == REPEATED


async def test_receipts_are_complete_once_the_worker_has_committed_even_if_it_is_killed_then(
    kafka: str, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with installed(kafka, redis) as cluster:
        Death(monkeypatch, "commit", is_done=True)
        published = await cluster.calls.publish(document("d", topic="t"))
        await cluster.kill_shards()

    assert [receipt.outcome for receipt in published.receipts] == ["accepted"]


async def stored_pages(cluster: Installed) -> list[list[OutcomePage]]:
    """Return the pages of outcomes of each intake shard."""
    keys = [b"%b%d" % (outcomes.OUTCOMES, number) for number in range(outcomes.PAGES)]
    snapshot = await cluster.views.peek(dict.fromkeys(INTAKES, keys))
    values = [[decode_value(key, snapshot[shard][1].get(key)) for key in keys] for shard in INTAKES]
    return [[page for page in pages if isinstance(page, OutcomePage)] for pages in values]


async def test_a_shard_that_is_rebuilt_from_kafka_has_the_same_outcomes_and_receipts_go_on(
    kafka: str, redis: str
) -> None:
    async with installed(kafka, redis) as cluster:
        for documents, _ in STATEMENTS:
            await cluster.calls.publish(documents)
        await cluster.calls.publish([document(f"d{number}", topic="t") for number in range(1000)])
        await cluster.rest()
        before = await stored_pages(cluster)
        await cluster.lose_redis()
        published = await cluster.calls.publish([document("new", topic="t"), document("d7", topic="t")])
        await cluster.rest()
        after = await stored_pages(cluster)

    assert sum(len(page.outcomes) for pages in before for page in pages) > 1000
    assert any(len(pages) > 1 for pages in before)
    for shard in range(len(INTAKES)):
        for old, new in zip(before[shard], after[shard], strict=False):
            assert new.number == old.number
            assert new.outcomes[: len(old.outcomes)] == old.outcomes
            assert new.rejections == old.rejections
    assert [receipt.outcome for receipt in published.receipts] == ["accepted", "duplicate"]

"""A query worker is ready when state, index and changes have what the topics had, and no emptiness is unmarked."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition
from msgspec.structs import replace

from stream_car.cluster import service as services, state_check
from stream_car.cluster.connections import Connections
from stream_car.cluster.service import ClusterService
from stream_car.errors import InvalidRequest, NotVisible, Unavailable
from stream_car.ports import Hop, ShardId
from stream_car.processing.partitions import Partitions
from stream_car.queries.answers import Answer, Audit, Explanation, Frontier, History, Lookup, Resolution
from tests.support.cluster import (
    FRONTIERS,
    INTAKES,
    LOOK_S,
    PLACES,
    REST_S,
    Installed,
    ServiceCalls,
    installed,
    query_worker,
    starting_query_worker,
)
from tests.support.engines import document
from tests.support.servers import in_one_worker

pytestmark = in_one_worker(__name__)

DOCUMENTS = [document(f"d{n}", topic=str(n)) for n in range(30)]  # each in a scope of its own
READS: dict[str, Callable[[ServiceCalls], Awaitable[object]]] = {
    "query": lambda calls: calls.query("d1"),
    "search": lambda calls: calls.search("d1"),
    "resolve": lambda calls: calls.resolve(["d1"]),
    "documents": lambda calls: calls.get(["d1"]),
    "documents of a record": lambda calls: calls.get(["some record"]),
    "resolve a record": lambda calls: calls.resolve(["some record"]),
    "check": lambda calls: calls.check(["d1"]),
    "explain": lambda calls: calls.explain("d1"),
    "explain a record": lambda calls: calls.explain("some record"),
    "frontier": lambda calls: calls.frontier("topic=1"),
    "history": lambda calls: calls.history("topic=1"),
    "pending": lambda calls: calls.pending(),
}


def reasons_of(answer: object) -> set[str]:
    """Return why an answer may be incomplete."""
    if isinstance(answer, Answer | Audit):
        assert answer.certificate is not None
        return set(answer.certificate.reasons)
    if isinstance(answer, tuple) and answer:
        return set.intersection(*map(reasons_of, answer))
    if isinstance(answer, Resolution | Explanation | Frontier | History | Lookup):
        return set(answer.reasons)
    return set()


async def marks(calls: ServiceCalls) -> dict[str, set[str]]:
    """Ask everything, and return for each question the reasons of its answer, or the code of its error."""
    marked: dict[str, set[str]] = {}
    for name, read in READS.items():
        try:
            marked[name] = reasons_of(await read(calls))
        except (InvalidRequest, Unavailable) as error:
            marked[name] = {error.code}
    return marked


async def readiness(service: ClusterService) -> str:
    """Return `ready`, or the code for which the process is not."""
    try:
        await service.require_ready()
    except Unavailable as error:
        return error.code
    return "ready"


async def until_readiness(service: ClusterService, code: str) -> None:
    async with asyncio.timeout(REST_S):
        while await readiness(service) != code:
            await asyncio.sleep(LOOK_S)


async def test_a_fresh_query_worker_on_emptied_redis_answers_nothing_until_the_state_is_back(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish(DOCUMENTS)
        await cluster.rest()
        await cluster.stop_shards()
        await cluster.lose_redis()
        async with starting_query_worker(cluster.connections, tmp_path) as service:
            calls = ServiceCalls(service)
            before, before_marks = await readiness(service), await marks(calls)
            await cluster.start_shards(INTAKES)
            async with asyncio.timeout(REST_S):
                while not service.can_answer:
                    await asyncio.sleep(LOOK_S)
            half, half_marks = await readiness(service), await marks(calls)
            await cluster.start_shards(FRONTIERS)
            await until_readiness(service, "ready")
            status, after_marks = await calls.status(), await marks(calls)

    assert before == half == "catching_up"
    assert before_marks == {name: {"catching_up"} for name in READS}
    assert half_marks == {name: set() if name == "pending" else {"in_flight"} for name in READS}
    assert after_marks == {name: set() for name in READS}
    assert (status.next_offset, status.documents, status.reasons) == (30, 30, ())


async def test_a_new_namespace_is_not_ready_before_its_workers_have_caught_up(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish(DOCUMENTS)
        plan = replace(cluster.connections.plan, namespace=f"{cluster.connections.plan.prefix}-2")
        connections = await Connections.open(plan)
        try:
            async with starting_query_worker(connections, tmp_path) as service:
                code, marked = await readiness(service), await marks(ServiceCalls(service))
        finally:
            await connections.close()

    assert code == "catching_up"
    assert marked == {name: {"catching_up"} for name in READS}


@pytest.mark.parametrize("hops", [("frontier",), ("intake",), ("intake", "frontier")])
async def test_no_answer_from_state_that_was_just_lost_is_unmarked(
    kafka: str, redis: str, hops: tuple[Hop, ...]
) -> None:
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish(DOCUMENTS)
        await cluster.rest()
        await until_readiness(cluster.service, "ready")
        await cluster.stop_shards()
        await cluster.lose_redis(hops)
        marked, code = await marks(cluster.calls), await readiness(cluster.service)
        await cluster.start_shards()
        await until_readiness(cluster.service, "ready")
        after = await marks(cluster.calls)

    untouched = {"pending"} if hops == ("frontier",) else set()  # it reads intake shards only
    assert code == "catching_up"
    assert {name for name, reasons in marked.items() if not reasons & {"in_flight", "catching_up"}} == untouched
    assert after == {name: set() for name in READS}


async def until_applied(cluster: Installed, intake: ShardId) -> None:
    """Wait until an intake shard has applied its whole partition."""
    _, end = await cluster.connections.log("documents").range(intake.shard)
    async with asyncio.timeout(REST_S):
        while (await cluster.views.peek({intake: []}))[intake][0] < end:
            await asyncio.sleep(LOOK_S)


async def retire(cluster: Installed, offset: int, partitions: Sequence[int] = (0,)) -> None:
    """Let Kafka delete the first records of partitions of the documents."""
    name = cluster.connections.topic("intake")
    admin = KafkaAdminClient(bootstrap_servers=cluster.connections.plan.kafka.address)
    await asyncio.to_thread(admin.delete_records, {TopicPartition(name, each): offset for each in partitions})
    admin.close()


async def test_a_fresh_index_that_lacks_deleted_records_says_lost_history_in_every_answer(
    kafka: str, redis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_check, "RANGES_S", 0)
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish(DOCUMENTS)
        await cluster.rest()
        await retire(cluster, 5)
        async with query_worker(cluster.connections, tmp_path) as service:
            await until_readiness(service, "lost_history")
            calls = ServiceCalls(service)
            marked, status = await marks(calls), await calls.status()
            with pytest.raises(Unavailable) as caught:
                await anext(calls.subscribe())
        async with query_worker(cluster.connections, tmp_path) as service:  # the stored index is as incomplete
            await until_readiness(service, "lost_history")
        complete, complete_marks = await readiness(cluster.service), await marks(cluster.calls)

    assert {name for name, reasons in marked.items() if "lost_history" not in reasons} == set()
    assert status.reasons == ("lost_history",)
    assert caught.value.code == "lost_history"
    assert (complete, complete_marks) == ("ready", {name: set() for name in READS})  # it had indexed them


async def test_an_index_that_passes_over_deleted_records_seems_complete_at_no_moment(
    kafka: str, redis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish(DOCUMENTS)
        await cluster.rest()
        await retire(cluster, 5, range(len(INTAKES)))
        monkeypatch.setattr(ClusterService, "_index", lambda service: asyncio.Event().wait())
        async with starting_query_worker(cluster.connections, tmp_path) as service:
            indexer, seemed = service.indexer, []
            async with asyncio.timeout(REST_S):
                while not (indexer.is_proven and indexer.has_caught_up):
                    for step in (indexer.catch_up, indexer._prove):
                        await step()
                        seemed.append((indexer.has_caught_up and indexer.is_proven, indexer.has_lost_history))

    assert (True, False) not in seemed
    assert seemed[-1] == (True, True)


async def test_state_that_cannot_be_built_again_says_lost_history_in_every_answer(
    kafka: str, redis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_check, "RANGES_S", 0)
    monkeypatch.setattr(services, "LOOK_S", LOOK_S)
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish(DOCUMENTS)
        await cluster.rest()
        await retire(cluster, 5)
        await cluster.stop_shards()
        await cluster.lose_redis()
        await cluster.start_shards([place for place in PLACES if place != INTAKES[0]])  # that one would halt
        await until_applied(cluster, INTAKES[1])
        await until_readiness(cluster.service, "lost_history")
        await cluster.service.indexer.settle()
        old, old_status = await marks(cluster.calls), await cluster.calls.status()
        async with query_worker(cluster.connections, tmp_path) as service:
            await until_readiness(service, "lost_history")
            fresh = await marks(ServiceCalls(service))

    for answers in (old, fresh):
        assert {name for name, reasons in answers.items() if "lost_history" not in reasons} == set()
    assert old_status.reasons == ("lost_history",)


async def test_a_shard_that_is_taken_over_does_not_concern_exact_answers_from_others(kafka: str, redis: str) -> None:
    partitions = Partitions(intakes=len(INTAKES), frontiers=len(FRONTIERS))
    dead = FRONTIERS[0]
    topics = {partitions.of_scope(f"topic={n}".encode()): str(n) for n in range(40)}  # one in each shard
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish([document(f"claim {shard}", topic=topic) for shard, topic in topics.items()])
        await cluster.rest()
        await cluster.kill_shards()
        await cluster.start_shards([place for place in PLACES if place != dead])
        denials = [document(f"denial {shard}", "denial", 1, topic=topic) for shard, topic in topics.items()]
        await cluster.calls.publish(denials)
        answers = {}
        for shard in topics:
            after = [(f"denial {shard}", 1)]
            try:
                answers[shard] = await cluster.calls.resolve([f"claim {shard}"], min_revisions=after, timeout_ms=2000)
            except NotVisible:
                assert shard == dead.shard

    assert set(answers) == set(topics) - {dead.shard}
    assert {(answer.status, answer.reasons) for [answer] in answers.values()} == {("superseded", ())}


async def test_the_next_answer_after_a_receipt_knows_the_document_or_says_that_it_does_not(
    kafka: str, redis: str
) -> None:
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish(document("claim", topic="tea"))
        await cluster.rest()
        await cluster.stop_shards()
        await cluster.start_shards(INTAKES)
        published = await cluster.calls.publish(document("denial", "denial", 1, topic="tea"))
        [behind] = await cluster.calls.resolve(["claim"])
        [unrelated] = await cluster.calls.resolve(["denial"])
        await cluster.start_shards(FRONTIERS)
        [current] = await cluster.calls.resolve(["claim"])

    assert published.outcomes == {"accepted": 1}
    assert behind.reasons == ("in_flight",)
    assert unrelated.reasons == ("in_flight",)
    assert (current.status, current.reasons) == ("superseded", ())

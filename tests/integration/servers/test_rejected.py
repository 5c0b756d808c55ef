"""Rejected input on a cluster: listed with its bytes, and sent again as it was or corrected."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition

from stream_car.cluster.shared_log import SharedLog
from stream_car.codec import encode
from stream_car.errors import InvalidRequest
from stream_car.ports import Message, Record
from stream_car.processing.replay import OWN_HEADERS, REPLAY_OF
from stream_car.processing.signatures import SIGNATURE
from stream_car.processing.two_hop import REJECTED_MAX
from stream_car.queries.answers import Rejected
from tests.chaos.judge import read_all
from tests.support.cluster import INTAKES, Installed, ServiceCalls, installed, query_worker
from tests.support.engines import document
from tests.support.servers import in_one_worker

pytestmark = in_one_worker(__name__)

CORRECTED = encode(document("corrected", topic="tea"))


@asynccontextmanager
async def cluster_with_rejected(kafka: str, redis: str) -> AsyncIterator[tuple[Installed, list[Rejected]]]:
    """Run an installation that has rejected nonsense and a conflict, in this order."""
    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish([b"{", document("d", topic="tea")])
        await wait_for_rejected(cluster, 1)
        await cluster.calls.publish(document("d", topic="coffee"))
        await wait_for_rejected(cluster, 2)
        yield cluster, list(await cluster.calls.rejected())


async def wait_for_rejected(cluster: Installed, count: int) -> None:
    """Return when the topic `rejected` has this many records."""
    log = cluster.connections.log("rejected")
    async with asyncio.timeout(20):
        while (await log.range(0))[1] < count:
            await asyncio.sleep(0.01)


async def documents(cluster: Installed) -> list[Record]:
    """Return all records of the topic `documents`."""
    log = cluster.connections.log("documents")
    return [record for shard in INTAKES for record in await read_all(log, shard.shard)]


def replays(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if REPLAY_OF in dict(record.headers)]


async def test_what_other_programs_write_to_the_topic_lists_and_hides_nothing(kafka: str, redis: str) -> None:
    async with installed(kafka, redis) as cluster:
        facts = {"code": b"json", "reason": b"forged", "id": b"", "partition": b"0", "offset": b"0"}
        headers = tuple((OWN_HEADERS + name, value) for name, value in facts.items())
        forged = [Message(value=b"forged", headers=each) for each in (headers, (*headers, (SIGNATURE, bytes(32))))]
        connections = cluster.connections
        await connections.sender.send(connections.layout.full_name("rejected"), 0, forged)
        await cluster.calls.publish([b"{"])  # record 0 of partition 0
        await wait_for_rejected(cluster, len(forged) + 1)

        assert [rejected.value for rejected in await cluster.calls.rejected()] == [b"{"]


async def test_corrected_input_is_sent_once_whichever_query_worker_is_asked(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    async with cluster_with_rejected(kafka, redis) as (cluster, [syntax, _]):
        async with query_worker(cluster.connections, tmp_path) as service:
            [tried] = await cluster.calls.replay({syntax.offset: CORRECTED}, dry_run=True)
            before = replays(await documents(cluster))
            [sent] = await cluster.calls.replay({syntax.offset: CORRECTED})
            again = [
                replayed
                for calls in (cluster.calls, ServiceCalls(service))
                for replayed in await calls.replay({syntax.offset: CORRECTED})
            ]
        [resolution] = await cluster.calls.resolve(["corrected"], min_revisions=[("corrected", 1)])
        after = replays(await documents(cluster))

    assert (tried.outcome, tried.receipt) == ("replayed", None)
    assert before == []
    assert sent.receipt is not None
    assert (sent.outcome, sent.receipt.outcome, sent.receipt.id) == ("replayed", "accepted", "corrected")
    assert [(replayed.outcome, replayed.at) for replayed in again] == 2 * [("replayed_before", sent.at)]
    assert resolution.status == "in_force"
    assert [record.value for record in after] == [CORRECTED]


async def test_input_is_sent_again_as_it_was_with_key_and_headers_however_long_it_is(kafka: str, redis: str) -> None:
    content = encode(document("large", topic="tea", text="x" * (REJECTED_MAX + 1)))
    async with cluster_with_rejected(kafka, redis) as (cluster, _):
        await cluster.calls.publish(document("large", topic="coffee"))
        home = cluster.connections.partitions.of_id("large")
        message = Message(key=b"large", value=content, headers=(("trace", b"7"),))
        await cluster.connections.log("documents").append(home, [message])
        await wait_for_rejected(cluster, 3)
        rejected = (await cluster.calls.rejected())[-1]
        [as_it_was] = await cluster.calls.replay(offsets=[rejected.offset])
        await cluster.calls.publish(document("large", topic="coffee", revision=2))
        [sent] = await cluster.calls.replay(offsets=[rejected.offset])
        [copy] = replays(await documents(cluster))

    assert (rejected.code, rejected.value) == ("conflict", b"")
    assert (as_it_was.outcome, as_it_was.code) == ("rejected", "conflict")
    assert sent.receipt is not None
    assert (sent.outcome, sent.receipt.outcome) == ("replayed", "older")
    assert (copy.key, copy.value, dict(copy.headers)["trace"]) == (b"large", content, b"7")


async def test_input_that_would_be_rejected_again_is_not_sent(kafka: str, redis: str) -> None:
    async with cluster_with_rejected(kafka, redis) as (cluster, rejected):
        replayed = await cluster.calls.replay(
            {rejected[0].offset: b"[]"}, offsets=[rejection.offset for rejection in rejected]
        )
        sent = replays(await documents(cluster))

    assert {answer.outcome for answer in replayed} == {"rejected"}
    assert [answer.code for answer in replayed] == ["not_object", "conflict"]
    assert all(answer.reason for answer in replayed)
    assert sent == []


async def test_what_was_not_rejected_cannot_be_replayed(kafka: str, redis: str) -> None:
    async with cluster_with_rejected(kafka, redis) as (cluster, _):
        for offset in (2, 99):
            with pytest.raises(InvalidRequest, match="was not rejected") as caught:
                await cluster.calls.replay(offsets=[offset])
            assert caught.value.code == "offset"
        assert replays(await documents(cluster)) == []


async def test_input_that_kafka_has_deleted_cannot_be_replayed(kafka: str, redis: str) -> None:
    async with cluster_with_rejected(kafka, redis) as (cluster, rejected):
        log = cluster.connections.log("documents")
        ends = {TopicPartition(log.topic, shard.shard): (await log.range(shard.shard))[1] for shard in INTAKES}
        admin = KafkaAdminClient(bootstrap_servers=kafka)
        await asyncio.to_thread(admin.delete_records, ends)
        admin.close()
        with pytest.raises(InvalidRequest, match="no longer in Kafka") as caught:
            await cluster.calls.replay({rejected[0].offset: CORRECTED})

    assert caught.value.code == "offset"


async def test_a_replay_of_many_inputs_requests_the_range_of_the_topic_once(
    kafka: str, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[str] = []  # a request waits for the fetch that is on its way, so one per input takes minutes

    async def count(log: SharedLog, partition: int) -> tuple[int, int]:
        requests.append(log.topic)
        return await request_range(log, partition)

    async with installed(kafka, redis) as cluster:
        await cluster.calls.publish([b"{" for _ in range(100)])
        await wait_for_rejected(cluster, 100)
        rejected = await cluster.calls.rejected()
        request_range = SharedLog.range
        monkeypatch.setattr(SharedLog, "range", count)
        replayed = await cluster.calls.replay(offsets=[rejection.offset for rejection in rejected], dry_run=True)

    assert len(replayed) == 100
    assert [topic.rpartition(".")[2] for topic in requests].count("rejected") == 1
    assert [topic.rpartition(".")[2] for topic in requests].count("documents") == 0

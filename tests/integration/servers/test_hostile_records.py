"""What other programs write to the topics: it halts no shard, moves no cursor, and costs nobody a document."""

import asyncio
import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import KEYS, Layout
from stream_car.adapters.kafka.topics import apply, delete
from stream_car.cluster.connections import read_signatures
from stream_car.codec import encode
from stream_car.codec.placements import encode_watermark
from stream_car.core.documents import Document
from stream_car.ports import Message
from stream_car.processing.signatures import SIGNATURE
from stream_car.processing.two_hop import FORWARDED
from stream_car.subscriptions.events import ScopeChange
from tests.support.cluster import Installed, ServiceCalls, installed, query_worker
from tests.support.engines import document
from tests.support.servers import in_one_worker, require

pytestmark = in_one_worker(__name__)

FORGED_ORIGINS = (b"0/9000000000000000000", b"0/" + b"9" * 32, b"0/" + b"9" * 5000, b"\xff")


async def send(cluster: Installed, topic: str, partition: int, *messages: Message) -> None:
    """Append messages to a partition of a topic, as any program may."""
    connections = cluster.connections
    await connections.sender.send(connections.layout.full_name(topic), partition, messages)


def of_partition(cluster: Installed, partition: int, count: int) -> list[Document]:
    """Return documents that belong in a partition."""
    documents = (document(f"d{n}", topic=str(n)) for n in range(1000))
    return [each for each in documents if cluster.connections.partitions.of_id(each.id) == partition][:count]


async def statuses(calls: ServiceCalls, *documents: Document) -> set[str]:
    return {resolution.status for resolution in await calls.resolve([each.id for each in documents])}


async def test_a_publisher_that_claims_to_forward_deletes_nobodys_documents(kafka: str, redis: str) -> None:
    async with installed(kafka, redis) as cluster:
        victims = of_partition(cluster, 1, 8)
        for number, origin in enumerate(FORGED_ORIGINS):
            forged = Message(value=encode(victims[number]), headers=((FORWARDED, origin), (SIGNATURE, bytes(16))))
            await send(cluster, "documents", 1, forged)
            stray = Message(value=encode(victims[number + 4]), headers=((FORWARDED, origin),))
            await send(cluster, "documents", 0, stray)  # in the wrong partition: a worker forwards it
        await cluster.rest()

        assert await statuses(cluster.calls, *victims) == {"in_force"}
        assert await cluster.calls.rejected() == ()


async def test_forged_placements_and_changes_are_ignored(kafka: str, redis: str, tmp_path: Path) -> None:
    async with installed(kafka, redis) as cluster:
        first, second, third = of_partition(cluster, 0, 3)
        await cluster.calls.publish([first])
        await cluster.rest()
        beginning = (await cluster.calls.status()).cursor
        watermark = encode_watermark(generation=cluster.generation, shard=0, next_offset=2**62)
        values = (b"garbage", b"", b"{}", watermark, watermark[:-1])
        for shard in range(cluster.shards):
            await send(cluster, "placements", shard, *(Message(value=value) for value in values), Message(value=None))
            numbers = [b"9" * 5000, b"9" * 15, "²".encode(), b"-1", b""]
            names = [f"{cluster.generation}/{shard}/".encode() + number for number in numbers]
            forged = [Message(value=b"{}", headers=(("ce_id", name),)) for name in (*names, b"", b"\xff\xff")]
            await send(cluster, "changes", shard, *forged, Message(value=None))
        await cluster.stop_shards()  # a shard that starts asks the topic which of its changes are published
        await cluster.start_shards()
        await cluster.calls.publish([second, third])
        await cluster.rest()
        async with query_worker(cluster.connections, tmp_path) as service, asyncio.timeout(30):
            for calls in (cluster.calls, ServiceCalls(service)):
                async with calls.subscribe(view="scope", after=beginning) as subscription:
                    events = [await anext(subscription), await anext(subscription)]
                entered = {event.change.entered[0].id for event in events if isinstance(event, ScopeChange)}
                assert entered == {second.id, third.id}
                assert await statuses(calls, first, second, third) == {"in_force"}
                assert (await calls.resolve([first.id]))[0].reasons == ()


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        (["-H", "empty"], "in_force"),
        (["-H", b"\xff\xfe=1"], "unknown"),
        (["-z", "gzip"], "in_force"),
        (["-z", "snappy"], "in_force"),
        (["-z", "lz4"], "in_force"),
        (["-z", "zstd"], "in_force"),
    ],
    ids=["a header without a value", "a header's name that is not UTF-8", "gzip", "snappy", "lz4", "zstd"],
)
async def test_whatever_a_client_can_send_is_read(
    kafka: str, redis: str, options: list[str | bytes], outcome: str
) -> None:
    require(None if shutil.which("kcat") else "kcat is not installed")
    if {"snappy", "lz4", "zstd"} & set(options):
        require(None if find_spec("cramjam") else "cramjam is not installed")
    async with installed(kafka, redis) as cluster:
        sent, after = of_partition(cluster, 0, 2)
        value = json.loads(encode(sent)) | {"text": "rain " * 200}
        for topic, partitions in (("documents", 1), ("placements", cluster.shards), ("changes", cluster.shards)):
            for partition in range(partitions):
                command: list[str | bytes] = ["kcat", "-b", kafka, "-q", "-P", "-p", str(partition), *options]
                command += ["-t", cluster.connections.layout.full_name(topic)]
                subprocess.run(command, input=json.dumps(value).encode(), check=True, timeout=60)
        beginning = (await cluster.calls.status()).cursor
        await cluster.calls.publish([after])
        await cluster.rest()

        assert await statuses(cluster.calls, sent) == {outcome}
        assert await statuses(cluster.calls, after) == {"in_force"}
        assert [rejected.code for rejected in await cluster.calls.rejected()] == ["encoding"] * (outcome == "unknown")
        assert cluster.service.can_answer
        assert beginning != (await cluster.calls.status()).cursor


async def test_what_is_in_the_topics_before_their_key_is_older_than_the_key(kafka: str) -> None:
    server, layout = KafkaServer(address=kafka), Layout(prefix="older", intakes=1, frontiers=1, single_broker=True)
    [documents, *_] = layout.topics()
    admin = KafkaAdminClient(bootstrap_servers=kafka)
    admin.create_topics(
        {layout.full_name(documents): {"num_partitions": 1, "configs": layout.settings(documents)}},
        wait_for_metadata=True,
    )
    admin.close()
    reader, sender = await Reader.open(server), Sender(server)
    try:
        await sender.send(layout.full_name("documents"), 0, [Message(value=b"a"), Message(value=b"b")])
        for _ in range(2):  # the second changes nothing
            await asyncio.to_thread(apply, server, layout)
            await sender.send(layout.full_name("documents"), 0, [Message(value=b"c")])
        signatures = await read_signatures(KafkaLog(reader, sender, layout.full_name(KEYS)))
    finally:
        await reader.close()
        await sender.close()
        await asyncio.to_thread(delete, server, layout)

    assert signatures.ends == {"documents": (2,), "placements": (0,), "changes": (0,), "rejected": (0,)}
    assert signatures.key.hex() not in repr(signatures)

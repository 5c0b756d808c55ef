"""The log and the journal on a real Kafka: what the contract does not cover, because it concerns this server."""

import asyncio
import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from kafka import KafkaAdminClient, TopicPartition

from deploy.local import Kafka
from stream_car.adapters.kafka.journal import KafkaJournal
from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.adapters.kafka.topics import apply, delete
from stream_car.errors import Halted, StreamCarError, Unavailable
from stream_car.ports import Emission, Message
from stream_car.processing.fold import TICK
from tests.support.certificates import Certificates
from tests.support.kafka_publisher import KafkaPublisher
from tests.support.servers import in_one_worker
from tests.support.two_hop_folds import SIGNATURES

pytestmark = in_one_worker(__name__)


class Connected:
    """A server, topics of one partition each, and connections that read and write them."""

    def __init__(self, server: KafkaServer, layout: Layout, reader: Reader, sender: Sender) -> None:
        self.server = server
        self.layout = layout
        self.reader = reader
        self.sender = sender
        self.log = KafkaLog(reader, sender, layout.full_name("documents"), stall_s=5)

    async def values(self) -> list[bytes | None]:
        """Return the values of all records, without ticks."""
        records = await self.log.fetch(0, 0, 10_000)
        while more := await self.log.fetch(0, len(records), 10_000):
            records = [*records, *more]
        assert [record.offset for record in records] == list(range(len(records)))
        return [record.value for record in records if TICK not in record.headers]

    async def close(self) -> None:
        await self.reader.close()
        await self.sender.close()


async def connected(server: KafkaServer) -> Connected:
    layout = Layout(prefix=f"test-{secrets.token_hex(6)}", intakes=1, frontiers=1, single_broker=True)
    apply(server, layout)
    return Connected(server, layout, await Reader.open(server), Sender(server))


@pytest.fixture
def connection(kafka: str, runner: asyncio.Runner) -> Iterator[Connected]:
    """Connect to the broker that tests share."""
    connection = runner.run(connected(KafkaServer(address=kafka)))
    yield connection
    runner.run(connection.close())
    delete(connection.server, connection.layout)


@pytest.fixture(scope="module")
def own_kafka(local_kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Run a broker that tests may break."""
    kafka = Kafka(tmp_path_factory.mktemp("own-kafka"))
    kafka.start()
    yield kafka
    kafka.kill()


@pytest.fixture
def own_connection(own_kafka: Kafka, runner: asyncio.Runner) -> Iterator[Connected]:
    """Connect to the broker that tests may break."""
    own_connection = runner.run(connected(KafkaServer(address=own_kafka.address, timeout_ms=3000)))
    yield own_connection
    runner.run(own_connection.close())


def messages(*values: bytes) -> list[Message]:
    return [Message(value=value) for value in values]


def event(oseq: int, stream: str = "changes") -> Emission:
    return Emission(oseq=oseq, stream=stream, key=b"scope %d" % (oseq % 7), value=b"event %d" % oseq)


async def test_an_append_beyond_one_batch_keeps_its_order(connection: Connected) -> None:
    values = [b"%d " % n * 10_000 for n in range(120)]

    assert await connection.log.append(0, messages(*values)) == 0

    assert await connection.values() == values


async def test_a_record_larger_than_the_topic_allows_is_rejected_and_the_error_names_the_setting(
    connection: Connected,
) -> None:
    with pytest.raises(StreamCarError, match=r"max\.message\.bytes"):
        await connection.log.append(0, messages(b"x" * 1_100_000))

    assert await connection.log.append(0, messages(b"small")) == 0


async def test_a_cancelled_append_leaves_the_connection_to_others(connection: Connected) -> None:
    await connection.log.append(0, messages(b"first"))
    cancelled = asyncio.create_task(connection.log.append(0, messages(b"cancelled")))
    other = asyncio.create_task(connection.log.append(0, messages(b"other")))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait([cancelled])

    assert await other > 0
    assert [value for value in await connection.values() if value != b"cancelled"] == [b"first", b"other"]


async def test_many_appends_to_one_partition_wait_for_their_turn(connection: Connected) -> None:
    values = [b"%d" % n for n in range(300)]

    offsets = await asyncio.gather(*(connection.log.append(0, messages(value)) for value in values))

    assert sorted(offsets) == list(range(300))
    assert await connection.values() == [values[offsets.index(offset)] for offset in range(300)]


async def test_a_tick_has_neither_key_nor_value(connection: Connected) -> None:
    await connection.log.append(0, [Message(value=None, headers=(TICK,))])

    (record,) = await connection.log.fetch(0, 0, 10)

    assert (record.key, record.value, record.headers) == (None, None, (TICK,))


async def test_markers_of_a_publishers_transactions_are_ticks(connection: Connected) -> None:
    topic = connection.layout.full_name("documents")
    producer = AIOKafkaProducer(bootstrap_servers=connection.server.address, transactional_id=connection.layout.prefix)
    await producer.start()
    for value in (b"a", b"b"):
        async with producer.transaction():
            await producer.send_and_wait(topic, value, partition=0)
    await producer.stop()

    assert await connection.log.range(0) == (0, 4)
    assert await connection.values() == [b"a", b"b"]
    assert [TICK in record.headers for record in await connection.log.fetch(0, 1, 2)] == [True, False]
    await connection.log.append(0, messages(b"c"))
    assert await connection.values() == [b"a", b"b", b"c"]


@pytest.mark.parametrize(("deleted", "deleted_up_to"), [(0, 0), (3, 3), (5, 5)])
async def test_a_journal_reports_which_events_retention_has_deleted(
    connection: Connected, deleted: int, deleted_up_to: int
) -> None:
    topic = connection.layout.full_name("changes")
    journal = KafkaJournal({"changes": KafkaLog(connection.reader, connection.sender, topic)}, "g", SIGNATURES)
    await journal.publish(0, [event(n) for n in range(1, 6)])
    admin = KafkaAdminClient(bootstrap_servers=connection.server.address)
    await asyncio.to_thread(admin.delete_records, {TopicPartition(topic, 0): deleted})
    admin.close()

    assert await journal.deleted_up_to(0) == deleted_up_to
    assert [emission.oseq for emission in await journal.read(0, "changes", after=deleted_up_to)] == list(
        range(deleted_up_to + 1, 6)
    )


async def test_records_that_were_deleted_halt_as_lost_history(connection: Connected) -> None:
    await connection.log.append(0, messages(b"a", b"b", b"c"))
    admin = KafkaAdminClient(bootstrap_servers=connection.server.address)
    topic = connection.layout.full_name("documents")
    await asyncio.to_thread(admin.delete_records, {TopicPartition(topic, 0): 2})
    await asyncio.to_thread(admin.close)

    with pytest.raises(Halted) as halted:
        await connection.log.fetch(0, 0, 10)

    assert halted.value.code == "lost_history"
    assert [record.offset for record in await connection.log.fetch(0, 2, 10)] == [2]


async def test_a_topic_with_the_publishers_time_halts(connection: Connected) -> None:
    admin = KafkaAdminClient(bootstrap_servers=connection.server.address)
    topic = f"{connection.layout.prefix}.timed"
    settings = {"message.timestamp.type": "CreateTime"}
    topics = {topic: {"num_partitions": 1, "replication_factor": 1, "configs": settings}}
    await asyncio.to_thread(admin.create_topics, topics)
    await asyncio.to_thread(admin.close)
    log = KafkaLog(connection.reader, connection.sender, topic)
    await log.append(0, messages(b"a"))

    with pytest.raises(Halted) as halted:
        await log.fetch(0, 0, 10)

    assert halted.value.code == "append_time"
    assert "message.timestamp.type" in str(halted.value)


async def test_the_error_about_a_missing_topic_names_the_command_that_creates_it(connection: Connected) -> None:
    with pytest.raises(StreamCarError, match="stream-car topics apply"):
        await connection.reader.partitions("never-made")


async def test_one_reader_reads_partitions_of_two_topics_in_turn(connection: Connected) -> None:
    other = KafkaLog(connection.reader, connection.sender, connection.layout.full_name("changes"))
    await connection.log.append(0, messages(*(b"%d" % n for n in range(50))))
    await other.append(0, messages(*(b"-%d" % n for n in range(50))))

    for n in range(50):
        assert [record.value for record in await connection.log.fetch(0, n, 1)] == [b"%d" % n]
        assert [record.value for record in await other.fetch(0, n, 1)] == [b"-%d" % n]


async def test_documents_go_to_the_partition_of_their_id_and_their_offsets_are_returned(connection: Connected) -> None:
    publisher = KafkaPublisher(connection.sender, connection.layout.full_name("documents"), lambda key: 0)

    placed = await publisher.publish([Message(value=b"%d" % n, key=b"%d" % n) for n in range(5)])

    assert placed == [(0, n) for n in range(5)]
    assert await connection.values() == [b"%d" % n for n in range(5)]


async def test_what_a_stalled_worker_publishes_late_is_read_once_and_in_order(connection: Connected) -> None:
    logs = {
        stream: KafkaLog(connection.reader, connection.sender, connection.layout.full_name("changes"))
        for stream in ("changes",)
    }
    journal = KafkaJournal(logs, "now", SIGNATURES)
    before = KafkaJournal(logs, "before", SIGNATURES)
    events = [event(n) for n in range(1, 3001)]
    await before.publish(0, events[:100])
    await journal.publish(0, events[:1000])
    await journal.publish(0, events[990:2000])
    await journal.publish(0, events[500:900])
    await journal.publish(0, events[1500:])
    await journal.publish(0, events[2000:2040])

    for after in (0, 1, 899, 900, 998, 1500, 1999, 2050, 2999, 3000):
        read = await KafkaJournal(logs, "now", SIGNATURES).read(0, "changes", after=after, limit=300)
        assert list(read) == events[after : after + 300]
    assert await journal.last(0) == 3000
    assert await before.last(0) == 100


async def test_acknowledged_records_survive_a_killed_broker_and_writing_continues(
    own_kafka: Kafka, own_connection: Connected
) -> None:
    acknowledged = [b"%d" % n for n in range(100)]
    await own_connection.log.append(0, messages(*acknowledged))
    own_kafka.kill()

    failed = await asyncio.gather(
        *(own_connection.log.append(0, messages(b"unknown")) for _ in range(3)), return_exceptions=True
    )
    assert [type(error) for error in failed] == [Unavailable] * 3
    own_kafka.start()
    await own_connection.log.append(0, messages(b"after"))

    values = await own_connection.values()
    assert [value for value in values if value != b"unknown"] == [*acknowledged, b"after"]


async def test_a_frozen_broker_is_unavailable_and_does_not_look_empty(
    own_kafka: Kafka, own_connection: Connected
) -> None:
    await own_connection.log.append(0, messages(b"a"))
    os.kill(own_kafka.pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable):
            await own_connection.log.fetch(0, 0, 10)
    finally:
        os.kill(own_kafka.pid, signal.SIGCONT)

    assert await own_connection.values() == [b"a"]


async def test_the_error_about_a_missing_broker_names_its_address(runner: asyncio.Runner) -> None:
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        await Reader.open(KafkaServer(address="127.0.0.1:1", timeout_ms=500))


@pytest.fixture
def guarded(local_kafka: None, tmp_path: Path, certificates: Certificates) -> Iterator[Kafka]:
    """Run a broker with encryption and one user."""
    both = tmp_path / "server.both.pem"
    both.write_text(Path(certificates.server_key).read_text() + Path(certificates.server).read_text())
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    users = 'username="broker" password="inner-word" user_broker="inner-word" user_worker="secret-word"'
    kafka = Kafka(
        tmp_path / "kafka",
        protocol="SASL_SSL",
        properties={
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": certificates.ca,
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": f"{login} {users};",
        },
    )
    kafka.start()
    yield kafka
    kafka.kill()


async def test_an_encrypted_connection_with_a_password(guarded: Kafka, certificates: Certificates) -> None:
    server = KafkaServer(
        address=guarded.address, username="worker", password="secret-word", mechanism="PLAIN", ca=certificates.ca,
        timeout_ms=5000,
    )  # fmt: skip
    own_connection = await connected(server)
    await own_connection.log.append(0, messages(b"a"))
    assert await own_connection.values() == [b"a"]
    await own_connection.close()

    wrong = KafkaServer(
        address=guarded.address, username="worker", password="wrong-word", mechanism="PLAIN", ca=certificates.ca,
        timeout_ms=2000,
    )  # fmt: skip
    with pytest.raises(StreamCarError) as caught:
        await Reader.open(wrong)
    assert "wrong-word" not in str(caught.value) + repr(wrong)
    without_authority = KafkaServer(
        address=guarded.address, username="worker", password="secret-word", mechanism="PLAIN", tls=True,
        timeout_ms=2000,
    )  # fmt: skip
    with pytest.raises(Unavailable):
        await Reader.open(without_authority)

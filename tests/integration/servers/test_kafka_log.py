"""The log and the journal on a real Kafka: what the contract cannot say, because it is about this server."""

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

pytestmark = in_one_worker("kafka")


class Connected:
    """A server, a layout of one partition each, and both ends of its topics."""

    def __init__(self, server: KafkaServer, layout: Layout, reader: Reader, sender: Sender) -> None:
        self.server = server
        self.layout = layout
        self.reader = reader
        self.sender = sender
        self.log = KafkaLog(reader, sender, layout.named("documents"), stall_s=5)

    async def values(self) -> list[bytes | None]:
        """Everything in the log."""
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
def here(kafka: str, runner: asyncio.Runner) -> Iterator[Connected]:
    """On the broker that tests share."""
    here = runner.run(connected(KafkaServer(address=kafka)))
    yield here
    runner.run(here.close())
    delete(here.server, here.layout)


@pytest.fixture(scope="module")
def own(local_kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker that tests may break."""
    kafka = Kafka(tmp_path_factory.mktemp("own-kafka"))
    kafka.start()
    yield kafka
    kafka.kill()


@pytest.fixture
def there(own: Kafka, runner: asyncio.Runner) -> Iterator[Connected]:
    """On the broker that tests may break."""
    there = runner.run(connected(KafkaServer(address=own.address, timeout_ms=3000)))
    yield there
    runner.run(there.close())


def messages(*values: bytes) -> list[Message]:
    return [Message(value=value) for value in values]


def event(oseq: int, stream: str = "changes") -> Emission:
    return Emission(oseq=oseq, stream=stream, key=b"scope %d" % (oseq % 7), value=b"event %d" % oseq)


async def test_an_append_beyond_one_batch_keeps_its_order(here: Connected) -> None:
    values = [b"%d " % n * 10_000 for n in range(120)]

    assert await here.log.append(0, messages(*values)) == 0

    assert await here.values() == values


async def test_a_record_larger_than_the_topic_allows_is_refused_with_the_setting(here: Connected) -> None:
    with pytest.raises(StreamCarError, match=r"max\.message\.bytes"):
        await here.log.append(0, messages(b"x" * 1_100_000))

    assert await here.log.append(0, messages(b"small")) == 0


async def test_a_cancelled_append_leaves_the_connection_to_others(here: Connected) -> None:
    await here.log.append(0, messages(b"first"))
    cancelled = asyncio.create_task(here.log.append(0, messages(b"cancelled")))
    other = asyncio.create_task(here.log.append(0, messages(b"other")))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait([cancelled])

    assert await other > 0
    assert [value for value in await here.values() if value != b"cancelled"] == [b"first", b"other"]


async def test_a_tick_has_neither_key_nor_value(here: Connected) -> None:
    await here.log.append(0, [Message(value=None, headers=(TICK,))])

    (record,) = await here.log.fetch(0, 0, 10)

    assert (record.key, record.value, record.headers) == (None, None, (TICK,))


async def test_what_a_publishers_transactions_leave_in_the_log_is_passed_over(here: Connected) -> None:
    topic = here.layout.named("documents")
    producer = AIOKafkaProducer(bootstrap_servers=here.server.address, transactional_id=here.layout.prefix)
    await producer.start()
    for value in (b"a", b"b"):
        async with producer.transaction():
            await producer.send_and_wait(topic, value, partition=0)
    await producer.stop()

    assert await here.log.range(0) == (0, 4)
    assert await here.values() == [b"a", b"b"]
    assert [TICK in record.headers for record in await here.log.fetch(0, 1, 2)] == [True, False]
    await here.log.append(0, messages(b"c"))
    assert await here.values() == [b"a", b"b", b"c"]


@pytest.mark.parametrize(("deleted", "gone"), [(0, 0), (3, 3), (5, 5)])
async def test_a_journal_says_which_events_retention_has_taken(here: Connected, deleted: int, gone: int) -> None:
    topic = here.layout.named("changes")
    journal = KafkaJournal({"changes": KafkaLog(here.reader, here.sender, topic)}, "g")
    await journal.publish(0, [event(n) for n in range(1, 6)])
    admin = KafkaAdminClient(bootstrap_servers=here.server.address)
    await asyncio.to_thread(admin.delete_records, {TopicPartition(topic, 0): deleted})
    admin.close()

    assert await journal.deleted_up_to(0) == gone
    assert [one.oseq for one in await journal.read(0, "changes", after=gone)] == list(range(gone + 1, 6))


async def test_records_that_were_deleted_halt_as_lost_history(here: Connected) -> None:
    await here.log.append(0, messages(b"a", b"b", b"c"))
    admin = KafkaAdminClient(bootstrap_servers=here.server.address)
    topic = here.layout.named("documents")
    await asyncio.to_thread(admin.delete_records, {TopicPartition(topic, 0): 2})
    await asyncio.to_thread(admin.close)

    with pytest.raises(Halted) as halted:
        await here.log.fetch(0, 0, 10)

    assert halted.value.code == "lost_history"
    assert [record.offset for record in await here.log.fetch(0, 2, 10)] == [2]


async def test_a_topic_that_keeps_the_publishers_time_halts(here: Connected) -> None:
    admin = KafkaAdminClient(bootstrap_servers=here.server.address)
    topic = f"{here.layout.prefix}.timed"
    theirs = {"message.timestamp.type": "CreateTime"}
    made = {topic: {"num_partitions": 1, "replication_factor": 1, "configs": theirs}}
    await asyncio.to_thread(admin.create_topics, made)
    await asyncio.to_thread(admin.close)
    log = KafkaLog(here.reader, here.sender, topic)
    await log.append(0, messages(b"a"))

    with pytest.raises(Halted) as halted:
        await log.fetch(0, 0, 10)

    assert halted.value.code == "append_time"
    assert "message.timestamp.type" in str(halted.value)


async def test_a_topic_that_is_not_there_says_how_to_make_it(here: Connected) -> None:
    with pytest.raises(StreamCarError, match="stream-car topics apply"):
        await here.reader.partitions("never-made")


async def test_partitions_of_two_topics_are_read_by_one_reader_in_turns(here: Connected) -> None:
    other = KafkaLog(here.reader, here.sender, here.layout.named("changes"))
    await here.log.append(0, messages(*(b"%d" % n for n in range(50))))
    await other.append(0, messages(*(b"-%d" % n for n in range(50))))

    for n in range(50):
        assert [record.value for record in await here.log.fetch(0, n, 1)] == [b"%d" % n]
        assert [record.value for record in await other.fetch(0, n, 1)] == [b"-%d" % n]


async def test_documents_go_to_the_partition_of_their_id_and_tell_where_they_lie(here: Connected) -> None:
    publisher = KafkaPublisher(here.sender, here.layout.named("documents"), lambda key: 0)

    placed = await publisher.publish([Message(value=b"%d" % n, key=b"%d" % n) for n in range(5)])

    assert placed == [(0, n) for n in range(5)]
    assert await here.values() == [b"%d" % n for n in range(5)]


async def test_what_a_stalled_worker_publishes_late_is_read_once_and_in_its_place(here: Connected) -> None:
    logs = {stream: KafkaLog(here.reader, here.sender, here.layout.named("changes")) for stream in ("changes",)}
    journal = KafkaJournal(logs, "now")
    before = KafkaJournal(logs, "before")
    events = [event(n) for n in range(1, 3001)]
    await before.publish(0, events[:100])
    await journal.publish(0, events[:1000])
    await journal.publish(0, events[990:2000])
    await journal.publish(0, events[500:900])
    await journal.publish(0, events[1500:])
    await journal.publish(0, events[2000:2100])

    for after in (0, 1, 899, 900, 998, 1500, 1999, 2050, 2999, 3000):
        read = await KafkaJournal(logs, "now").read(0, "changes", after=after, limit=300)
        assert list(read) == events[after : after + 300]
    assert await journal.last(0) == 3000
    assert await before.last(0) == 100


async def test_acknowledged_records_survive_a_killed_broker_and_writing_goes_on(own: Kafka, there: Connected) -> None:
    kept = [b"%d" % n for n in range(100)]
    await there.log.append(0, messages(*kept))
    own.kill()

    failed = await asyncio.gather(
        *(there.log.append(0, messages(b"unknown")) for _ in range(3)), return_exceptions=True
    )
    assert [type(one) for one in failed] == [Unavailable] * 3
    own.start()
    await there.log.append(0, messages(b"after"))

    values = await there.values()
    assert [value for value in values if value != b"unknown"] == [*kept, b"after"]


async def test_a_frozen_broker_is_unavailable_not_silence(own: Kafka, there: Connected) -> None:
    await there.log.append(0, messages(b"a"))
    os.kill(own.pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable):
            await there.log.fetch(0, 0, 10)
    finally:
        os.kill(own.pid, signal.SIGCONT)

    assert await there.values() == [b"a"]


async def test_no_broker_is_an_error_that_names_the_place(runner: asyncio.Runner) -> None:
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        await Reader.open(KafkaServer(address="127.0.0.1:1", timeout_ms=500))


@pytest.fixture
def guarded(local_kafka: None, tmp_path: Path, certificates: Certificates) -> Iterator[Kafka]:
    """Encrypted, for one user."""
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


async def test_encrypted_and_with_a_password(guarded: Kafka, certificates: Certificates) -> None:
    server = KafkaServer(
        address=guarded.address, username="worker", password="secret-word", mechanism="PLAIN", ca=certificates.ca,
        timeout_ms=5000,
    )  # fmt: skip
    there = await connected(server)
    await there.log.append(0, messages(b"a"))
    assert await there.values() == [b"a"]
    await there.close()

    wrong = KafkaServer(
        address=guarded.address, username="worker", password="wrong-word", mechanism="PLAIN", ca=certificates.ca,
        timeout_ms=2000,
    )  # fmt: skip
    with pytest.raises(StreamCarError) as refused:
        await Reader.open(wrong)
    assert "wrong-word" not in str(refused.value) + repr(wrong)
    strange = KafkaServer(
        address=guarded.address, username="worker", password="secret-word", mechanism="PLAIN", tls=True,
        timeout_ms=2000,
    )  # fmt: skip
    with pytest.raises(Unavailable):
        await Reader.open(strange)

"""Worker processes over a real Kafka and a real Redis."""

import sys
from collections import Counter
from pathlib import Path

import msgspec

from deploy.local import Kafka
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topics import session_min_s
from tests.chaos.installation import Installation
from tests.chaos.workers import until
from tests.support.servers import in_one_worker

pytestmark = in_one_worker(__name__)

IMPATIENT = (sys.executable, "-m", "tests.support.processes.impatient")


async def test_a_killed_worker_is_replaced_and_one_that_is_stopped_leaves_no_repeat(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    async with Installation(kafka, redis, tmp_path).open() as installation:
        first, second = installation.worker(), installation.worker()
        await first.assigned()
        await second.assigned()
        await installation.publish(150)
        first.kill()
        await installation.publish(150)
        before = await installation.judge()
        assert before.changes > 100
        assert before.rejected > 0

        third = installation.worker()
        await third.assigned()
        await installation.publish(150)
        assert await second.stop() == 0
        await installation.publish(50)
        after = await installation.judge()
        assert after.changes > before.changes
        assert after.repeats == before.repeats, "a shard that was released in order repeats nothing"


async def test_each_hop_can_be_a_process_of_its_own_and_other_rules_halt_with_a_reason(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    async with Installation(kafka, redis, tmp_path).open() as installation:
        intake, frontier = installation.worker("intake"), installation.worker("frontier")
        await intake.assigned(2)
        await frontier.assigned(3)
        await installation.publish(60)
        verdict = await installation.judge()
        assert verdict.changes > 20
        assert verdict.repeats == 0
        assert await intake.stop() == 0
        assert await frontier.stop() == 0

        stranger = installation.worker("frontier", rules="incident")
        assert await stranger.ended() == 3
        assert {(event.hop, event.code) for event in stranger.events("halted")} == {("frontier", "generation")}


async def test_a_session_timeout_that_the_brokers_do_not_accept_is_named_at_start(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    least = session_min_s(KafkaServer(address=kafka))
    assert least is not None
    async with Installation(kafka, redis, tmp_path).open() as installation:
        accepted = installation.worker(options=["--session-timeout", f"{least:g}"])
        too_short = installation.worker(options=["--session-timeout", f"{least / 2:g}"])
        await accepted.assigned(5)
        assert await too_short.ended() == 2
        assert "group.min.session.timeout.ms" in too_short.output()


async def test_a_worker_whose_broker_is_away_writes_few_lines_and_all_of_them_are_json(
    local_kafka: None, redis: str, tmp_path: Path
) -> None:
    own = Kafka(tmp_path / "kafka")
    own.start()
    try:
        async with Installation(own.address, redis, tmp_path).open() as installation:
            worker = installation.worker(program=IMPATIENT)
            await worker.assigned(5)
            own.kill()
            await until(lambda: len(worker.events("trouble")) == 5, 60.0, "the worker has not noticed")
            lines = worker.output().splitlines()
            own.start()
            await until(lambda: len(worker.events("recovered")) == 5, 60.0, "the worker has not recovered")
            await installation.publish(50)
            await installation.judge()
    finally:
        own.kill()

    decoded = [msgspec.json.decode(line, type=dict[str, object]) for line in lines]
    messages = Counter(str(item.get("event") or item["logger"]) for item in decoded)
    assert max(messages.values()) <= 20, messages  # thousands, if each attempt were a line

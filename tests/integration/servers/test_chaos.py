"""A short run of chaos; `make chaos` is the long one."""

from pathlib import Path

from deploy.local import Kafka, Redis
from tests.chaos.run import SHORT_SESSIONS, Chaos, Dose
from tests.support.servers import in_one_worker

pytestmark = in_one_worker("chaos")

DOSE = Dose(
    kills=11, points=11, freezes=1, ends=1, churns=1, cuts=2, wipes=1, fulls=1, brokers=1, pause_s=0.5
)  # each point once


async def test_after_faults_of_workers_redis_and_the_broker_everything_equals_the_definition(
    local_kafka: None, local_redis: None, tmp_path: Path
) -> None:
    kafka, redis = Kafka(tmp_path / "kafka", properties=SHORT_SESSIONS), Redis(tmp_path / "redis")
    reports: list[str] = []
    chaos = Chaos(kafka, redis, tmp_path, 1, reports.append, session_s=2.0)
    try:
        redis.start()
        kafka.start()
        verdict = await chaos.run(DOSE)
    finally:
        kafka.kill()
        redis.kill()
    assert chaos.mishaps.deaths >= 20, reports
    assert len(chaos.mishaps.reached) >= 8, reports
    assert verdict.changes > 500
    assert verdict.acknowledged > 500

"""A short run of chaos; `make chaos` is the long one."""

from pathlib import Path

from deploy.local import Kafka, Redis
from tests.chaos.mishaps import SHORT_SESSIONS, Chaos, Dose
from tests.support.servers import in_one_worker

pytestmark = in_one_worker("chaos")

DOSE = Dose(
    kills=11, points=11, freezes=1, ends=1, churns=1, cuts=2, wipes=1, fulls=1, brokers=1, pause_s=0.5
)  # each point once


async def test_whatever_befalls_workers_redis_and_the_broker_all_is_as_the_definition_has_it(
    local_kafka: None, local_redis: None, tmp_path: Path
) -> None:
    kafka, redis = Kafka(tmp_path / "kafka", properties=SHORT_SESSIONS), Redis(tmp_path / "redis")
    told: list[str] = []
    chaos = Chaos(kafka, redis, tmp_path, 1, told.append, session_s=2.0)
    try:
        redis.start()
        kafka.start()
        found = await chaos.run(DOSE)
    finally:
        kafka.kill()
        redis.kill()
    assert chaos.deaths >= 20, told
    assert len(chaos.reached) >= 8, told
    assert found.changes > 500
    assert found.acknowledged > 500

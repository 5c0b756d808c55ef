"""A short run of chaos; `make chaos` is the long one."""

from pathlib import Path

from deploy.local import Kafka, Redis
from tests.chaos.mishaps import Chaos, Dose
from tests.servers import in_one_worker

pytestmark = in_one_worker("chaos")


async def test_after_kills_cuts_a_wipe_and_a_dead_broker_all_is_as_the_definition_has_it(
    local_kafka: None, local_redis: None, tmp_path: Path
) -> None:
    kafka, redis = Kafka(tmp_path / "kafka"), Redis(tmp_path / "redis")
    told: list[str] = []
    try:
        redis.start()
        kafka.start()
        found = await Chaos(kafka, redis, tmp_path, 1, told.append).run(Dose(kills=4, cuts=1, wipes=1, brokers=1))
    finally:
        kafka.kill()
        redis.kill()
    assert len(told) == 7
    assert found.changes > 50

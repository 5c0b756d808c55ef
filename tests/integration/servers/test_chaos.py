"""A short run of chaos; `make chaos` is the long one."""

from pathlib import Path

from deploy.local import Kafka, Redis
from tests.chaos.run import SHORT_SESSIONS, Chaos, Dose
from tests.support.servers import in_one_worker

pytestmark = in_one_worker("chaos")

DOSE = Dose(
    kills=1,
    points=3,
    freezes=1,
    ends=1,
    cuts=1,
    wipes=1,
    fulls=1,
    brokers=1,
    flushes=2,
    drops=2,
    blackouts=1,
    query_kills=2,
    query_ends=1,
    garbage=2,
    forgeries=2,
    retirements=1,
    documents=300,
    pause_s=0.3,
    calm_every=8,
    sample_s=0.05,
)


async def test_after_faults_of_workers_servers_and_publishers_everything_equals_the_definition_and_so_it_did_meanwhile(
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
    answers = chaos.prober.answers
    assert chaos.mishaps.deaths >= 4, reports
    assert len(chaos.mishaps.reached) >= 1, reports
    assert verdict.changes > 300
    assert verdict.acknowledged > 300
    assert sum(count for name, count in answers.items() if name.endswith(" right")) > 50, answers
    assert sum(count for name, count in answers.items() if name.endswith(" marked")) > 0, answers
    assert chaos.compared > 1000
    assert chaos.marked > 50

"""Worker processes over a real Kafka and a real Redis."""

from pathlib import Path

from tests.chaos.installation import Installation
from tests.support.servers import in_one_worker

pytestmark = in_one_worker("kafka")


async def test_a_worker_that_is_killed_is_replaced_and_one_that_is_told_to_end_leaves_no_repeat(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    async with Installation(kafka, redis, tmp_path).open() as here:
        first, second = here.worker(), here.worker()
        await first.assigned()
        await second.assigned()
        await here.publish(150)
        first.kill()
        await here.publish(150)
        before = await here.judge()
        assert before.changes > 100
        assert before.rejected > 0

        third = here.worker()
        await third.assigned()
        await here.publish(150)
        assert await second.stop() == 0
        await here.publish(50)
        after = await here.judge()
        assert after.changes > before.changes
        assert after.repeats == before.repeats, "a shard that was handed over in order repeats nothing"


async def test_each_hop_can_be_a_process_of_its_own_and_other_rules_halt_with_a_reason(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    async with Installation(kafka, redis, tmp_path).open() as here:
        intake, frontier = here.worker("intake"), here.worker("frontier")
        await intake.assigned(2)
        await frontier.assigned(3)
        await here.publish(60)
        verdict = await here.judge()
        assert verdict.changes > 20
        assert verdict.repeats == 0
        assert await intake.stop() == 0
        assert await frontier.stop() == 0

        stranger = here.worker("frontier", rules="incident")
        assert await stranger.ended() == 3
        assert {(one["hop"], one["code"]) for one in stranger.said("halted")} == {("frontier", "generation")}

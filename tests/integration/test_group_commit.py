"""How much a publisher applies at once: what takes some milliseconds, and less while somebody asks."""

from stream_car.codec import encode
from stream_car.local import group_commit
from stream_car.local.service import EmbeddedService
from tests.support.engines import document, engine


def some(name: str, count: int) -> list[bytes]:
    return [encode(document(f"{name}{n}", topic=f"t{n}", text="word " * 50)) for n in range(count)]


async def test_single_documents_say_nothing_of_how_long_many_take() -> None:
    with engine() as here:
        async with EmbeddedService(here) as service:
            for n in range(20):
                await service.publish(some(f"single{n}-", 1))

            assert service.publisher._step == group_commit.STEP_MIN


async def test_steps_grow_while_nobody_asks_and_shrink_for_whoever_does() -> None:
    with engine() as here:
        async with EmbeddedService(here) as service:
            await service.publish(some("first", 2000))
            quiet = service.publisher._step
            await service.query("word")
            assert service.publisher.is_asked
            await service.publish(some("second", 1000))

            assert quiet > service.publisher._step
            assert here.header().documents == 3000

"""How many documents are applied at once: what takes some milliseconds, and less while there are questions."""

from stream_car.api.requests import Publish, Query
from stream_car.codec import encode
from stream_car.local import group_commit
from stream_car.local.concurrent_service import ConcurrentService
from tests.support.engines import document, engine


def publication(name: str, count: int) -> Publish:
    documents = (document(f"{name}{n}", topic=f"t{n}", text="word " * 50) for n in range(count))
    return Publish(documents=tuple(map(encode, documents)))


async def test_single_documents_tell_nothing_about_how_long_many_take() -> None:
    with engine() as car:
        async with ConcurrentService(car.directory) as service:
            for n in range(20):
                await service.call(publication(f"single{n}-", 1))

            assert service.group_commit._step == group_commit.STEP_MIN


async def test_steps_grow_without_questions_and_shrink_after_one() -> None:
    with engine() as car:
        async with ConcurrentService(car.directory) as service:
            await service.call(publication("first", 2000))
            quiet_step = service.group_commit._step
            for _ in range(2):  # the first one waits for the index, so it may count as a long one
                await service.call(Query(text="word"))
            assert service.group_commit.has_questions
            await service.call(publication("second", 1000))

            assert quiet_step > service.group_commit._step
            assert car.status().documents == 3000

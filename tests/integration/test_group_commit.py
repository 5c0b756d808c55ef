"""How many documents are applied at once: what takes some milliseconds, and less while there are questions."""

import msgspec
import pytest

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


async def test_a_step_of_documents_with_many_scopes_is_one_document(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    with engine() as car:
        advance = car.directory.advance

        def note(limit: int) -> bool:
            steps.append(limit)
            return advance(limit)

        monkeypatch.setattr(car.directory, "advance", note)
        async with ConcurrentService(car.directory) as service:
            scope = {"topic": [f"topic {n}" for n in range(1000)]}
            wide = [{"id": f"w{n}", "type": "claim", "time": "2024-01-01T00:00:00Z", "scope": scope} for n in range(20)]
            await service.call(Publish(documents=tuple(map(msgspec.json.encode, wide))))

    assert steps == [1] * 20

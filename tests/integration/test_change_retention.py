"""A service deletes changes that are older than what it keeps, also after its disk has failed once."""

import asyncio

import pytest

from stream_car.api.requests import Publish
from stream_car.codec import encode
from stream_car.errors import StreamCarError
from stream_car.local import concurrent_service
from stream_car.local.concurrent_service import ConcurrentService
from tests.support.engines import document, engine


async def test_a_disk_that_is_busy_once_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrent_service, "DELETE_S", 0.0)
    with engine() as car:
        directory = car.directory
        delete = directory.delete_changes
        failures_left = [StreamCarError("the database is locked")]
        has_deleted = asyncio.Event()

        def delete_changes(keep: int, limit: int) -> bool:
            if failures_left and directory.last_change() > keep:
                raise failures_left.pop()
            more = delete(keep, limit)
            if directory.changes_deleted_up_to():
                has_deleted.set()
            return more

        monkeypatch.setattr(directory, "delete_changes", delete_changes)
        async with ConcurrentService(directory, changes_kept=5) as service:
            documents = tuple(encode(document(f"c{n}", topic=str(n))) for n in range(20))
            await service.call(Publish(documents=documents))
            await asyncio.wait_for(has_deleted.wait(), 10)

        assert not failures_left
        assert directory.changes_deleted_up_to() == directory.last_change() - 5

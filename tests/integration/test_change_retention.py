"""A service lets go of changes that are older than what it keeps, whatever a disk said to it in between."""

import asyncio

import pytest

from stream_car.codec import encode
from stream_car.errors import StreamCarError
from stream_car.local import service as services
from stream_car.local.service import EmbeddedService
from tests.support.engines import document, engine


async def test_a_disk_that_is_busy_once_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "FORGET_S", 0.0)
    with engine() as here:
        forget = here.forget_changes
        is_busy = [True]
        has_forgotten = asyncio.Event()

        def forget_changes(keep: int, limit: int) -> bool:
            if is_busy and here.last_change() > keep:
                is_busy.pop()
                raise StreamCarError("the database is locked")
            more = forget(keep, limit)
            if here.deleted_up_to():
                has_forgotten.set()
            return more

        monkeypatch.setattr(here, "forget_changes", forget_changes)
        async with EmbeddedService(here, changes_kept=5) as service:
            await service.publish([encode(document(f"c{n}", topic=str(n))) for n in range(20)])
            await asyncio.wait_for(has_forgotten.wait(), 10)

        assert not is_busy
        assert here.deleted_up_to() == here.last_change() - 5

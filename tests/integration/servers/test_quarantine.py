"""Quarantine over Kafka and Redis: a shard of either hop goes on, and answers say what they may lack."""

from collections.abc import Iterator

import pytest

from stream_car.core.changes import FrontierChange
from stream_car.core.frontier import place
from stream_car.core.revisions import Placement
from stream_car.core.rules import Ruleset
from stream_car.core.stored import EditablePages, Scope
from stream_car.errors import InvalidRequest
from stream_car.processing import fold
from tests.support.cluster import installed
from tests.support.engines import document
from tests.support.poison import POISON, fail_on_poison
from tests.support.servers import in_one_worker

pytestmark = in_one_worker(__name__)

DOCUMENTS = [document("a", topic="rain"), document(POISON, topic="rain"), document("b", topic="sun")]
QUARANTINED = ("quarantined",)


@pytest.fixture
def patched() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patched:
        yield patched


async def test_an_intake_shard_goes_on_and_the_record_can_be_retried(
    kafka: str, redis: str, patched: pytest.MonkeyPatch
) -> None:
    fail_on_poison(patched)
    async with installed(kafka, redis) as cluster:
        calls = cluster.calls
        published = await calls.publish(DOCUMENTS)
        await cluster.rest()
        [item] = await calls.quarantine()
        [rain], [sun] = await calls.frontier({"topic": "rain"}), await calls.frontier({"topic": "sun"})
        shown = await calls.quarantined(item.name)
        await cluster.lose_redis()
        await cluster.rest()
        replayed = await calls.quarantine()
        patched.undo()
        receipt = await calls.retry_quarantined(item.name)
        await cluster.rest()
        [complete] = await calls.frontier({"topic": "rain"})

        assert [receipt.outcome for receipt in published.receipts] == ["accepted", "quarantined", "accepted"]
        assert (item.hop, item.id, item.scopes, rain.reasons, sun.reasons) == (
            "intake", POISON, ("topic=rain",), QUARANTINED, (),
        )  # fmt: skip
        assert POISON in str(shown.content)
        assert replayed == (item,)
        assert receipt.outcome == "accepted"
        assert (complete.reasons, {each.id for each in complete.in_force}) == ((), {"a", POISON})
        assert await calls.quarantine() == ()


async def test_a_frontier_shard_goes_on_and_the_record_can_be_dropped(
    kafka: str, redis: str, patched: pytest.MonkeyPatch
) -> None:
    def fail(
        scope: Scope, pages: EditablePages, placement: Placement, ruleset: Ruleset, *, shard: int
    ) -> tuple[FrontierChange | None, list[bytes]]:
        if placement.id == POISON:
            raise OverflowError("too large")
        return place(scope, pages, placement, ruleset, shard=shard)

    patched.setattr(fold, "place", fail)
    async with installed(kafka, redis) as cluster:
        calls = cluster.calls
        await calls.publish(DOCUMENTS)
        await cluster.rest()
        [item] = await calls.quarantine()
        status = await calls.status()
        [rain], [sun] = await calls.frontier({"topic": "rain"}), await calls.frontier({"topic": "sun"})
        with pytest.raises(InvalidRequest):
            await calls.retry_quarantined(item.name)
        patched.undo()
        await calls.publish([document(POISON, revision=2, topic="sun")])  # leaves a scope that it never joined
        await cluster.rest()
        followers = await calls.quarantine()
        for each in followers:
            await calls.drop_quarantined(each.name)
        await calls.publish([document("c", topic="rain")])
        await cluster.rest()
        [complete] = await calls.frontier({"topic": "rain"})

        assert (item.hop, item.scopes, rain.reasons, sun.reasons) == ("frontier", ("topic=rain",), QUARANTINED, ())
        assert (status.quarantined, status.reasons) == (1, QUARANTINED)
        assert [each.scopes for each in followers] == [("topic=rain",)] * 2
        assert (complete.reasons, {each.id for each in complete.in_force}) == ((), {"a", "c"})
        assert await calls.quarantine() == ()

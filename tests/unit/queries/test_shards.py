"""Questions to many shards: exact at their cut, or marked as in flight."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from stream_car.core.revisions import document_key
from stream_car.core.scope_names import link_scope
from stream_car.core.stored import StoredDocument
from stream_car.core.timeline import all_members
from stream_car.core.walk import pages_of
from stream_car.errors import ClaimLost, Halted, InvalidRequest
from stream_car.local.run_sync import run_sync
from stream_car.ports import Emission, IndexedDocument
from stream_car.queries.answers import Resolution
from stream_car.queries.queries import Queries
from stream_car.queries.read_options import ImmediateRetries, MinRevision, ReadOptions
from stream_car.queries.shards import DECODED_AT_ONCE, ManyShards, OneShard
from stream_car.queries.snapshot import Snapshot
from tests.support.engines import DAY, NOW, RULESET, document
from tests.support.plain_index import PlainIndex
from tests.support.two_hop_folds import TWO
from tests.support.two_hops import TwoHops, opened_two_hops, topic_in


@pytest.fixture
def hops(tmp_path: Path) -> Iterator[TwoHops]:
    with opened_two_hops(tmp_path) as hops:
        yield hops


def controlling(resolution: Resolution) -> list[str]:
    return [control.document.id for group in resolution.groups for control in group.controlling]


def test_an_answer_at_rest_is_exact_at_the_ends_of_the_inputs(hops: TwoHops) -> None:
    hops.publish(document("c", topic=topic_in(0)), document("d", "denial", 1, topic=topic_in(0)))
    hops.emit_watermarks()
    hops.apply(0, 1)
    resolution = hops.resolve("c")

    assert (controlling(resolution), resolution.status, resolution.reasons) == (["d"], "superseded", ())


def test_what_was_said_but_not_marked_yet_is_in_flight(hops: TwoHops) -> None:
    hops.publish(document("c", topic=topic_in(0)))
    hops.apply(0, 1)

    assert hops.resolve("c").reasons == ("in_flight",)


def test_no_answer_mixes_a_revision_of_the_state_with_the_text_of_another_in_the_index(hops: TwoHops) -> None:
    async def index(text: str) -> None:
        content = document("c", topic=topic_in(0), text=text, revision=1 if text == "first" else 2)
        await hops.queries.index.apply([IndexedDocument(document=content)], (), 0)

    hops.publish(document("c", topic=topic_in(0), text="first"))
    run_sync(index("first"))
    hops.publish(document("c", topic=topic_in(0), text="second", revision=2))
    hops.emit_watermarks()
    hops.apply(0, 1)
    lagging = hops.resolve("c")
    run_sync(index("second"))
    current = hops.resolve("c")

    def shown(resolution: Resolution) -> list[tuple[int, str]]:
        return [(group.anchor.revision, group.anchor.text) for group in resolution.groups]

    assert (shown(lagging), lagging.reasons) == ([(2, "")], ("in_flight",))
    assert (shown(current), current.reasons) == ([(2, "second")], ())


def test_a_shard_that_lags_does_not_concern_an_answer_that_does_not_read_it(hops: TwoHops) -> None:
    hops.publish(document("c", topic=topic_in(0)), document("e", topic=topic_in(1)))
    hops.emit_watermarks()
    hops.apply(0, 1)
    hops.publish(document("d", "denial", 1, topic=topic_in(0)), document("f", "denial", 1, topic=topic_in(1)))
    hops.emit_watermarks()
    hops.apply(0)
    after = hops.resolve("c", MinRevision(id="d"))

    assert (controlling(after), after.reasons) == (["d"], ())
    assert controlling(hops.resolve("e")) == ["e"]
    with pytest.raises(InvalidRequest) as caught:
        hops.resolve("e", MinRevision(id="f"))

    assert caught.value.code == "not_visible"


def test_a_lagging_shard_may_hold_the_first_link_so_it_concerns_every_answer(hops: TwoHops) -> None:
    target = next(name for name in map(str, range(40)) if TWO.of_scope(link_scope(name).encode()) == 1)
    hops.publish(document(target, topic=topic_in(0)))
    hops.emit_watermarks()
    hops.apply(0, 1)
    hops.publish(document("linking", at=1, supersedes=(target,)))
    hops.emit_watermarks()
    hops.apply(0)
    with pytest.raises(InvalidRequest) as caught:
        hops.resolve(target, MinRevision(id="linking"))
    hops.apply(1)

    assert caught.value.code == "not_visible"
    assert controlling(hops.resolve(target, MinRevision(id="linking"))) == ["linking"]


def test_an_answer_that_lacks_required_input_is_in_flight(hops: TwoHops) -> None:
    hops.publish(document("c", topic=topic_in(0)))
    hops.emit_watermarks()
    hops.apply(0, 1)
    shards = hops.queries.shards
    assert isinstance(shards, ManyShards)
    shards.required = tuple(2 for _ in range(2))

    assert hops.resolve("c").reasons == ("in_flight",)
    assert hops.resolve("nobody").reasons == ("in_flight",)


@pytest.mark.parametrize("hop", [0, 1])
def test_answers_from_state_that_was_lost_are_in_flight_until_it_is_back(hops: TwoHops, hop: int) -> None:
    hops.publish(document("c", topic=topic_in(0)))
    hops.emit_watermarks()
    hops.apply(0, 1)
    before = hops.resolve("c")
    hops.lose_state(hop)
    during = [hops.resolve("c"), hops.resolve("nobody")]

    assert before.reasons == ()
    assert during[0].reasons == ("in_flight",)
    assert during[1].reasons == ("in_flight",)

    hops.publish()
    hops.emit_watermarks()
    hops.apply(0, 1)

    assert hops.resolve("c") == before


def test_a_question_that_cannot_say_so_is_not_answered_in_flight(hops: TwoHops) -> None:
    scope = f"topic={topic_in(0)}"
    hops.publish(document("c", topic=topic_in(0)))
    hops.apply(0, 1)
    with pytest.raises(InvalidRequest) as caught:
        run_sync(hops.queries.read_consistently(None, lambda snapshot: snapshot.scope(scope)))

    assert caught.value.code == "in_flight"


def test_an_answer_after_a_statement_waits_until_every_shard_has_heard(hops: TwoHops) -> None:
    hops.publish(document("c", topic=topic_in(0)))
    hops.emit_watermarks()
    hops.apply(0, 1)
    hops.publish(document("d", "denial", 1, topic=topic_in(0)))
    hops.apply(0, 1)
    with pytest.raises(InvalidRequest) as caught:
        hops.resolve("c", MinRevision(id="d"))

    assert caught.value.code == "not_visible"

    hops.emit_watermarks()
    hops.apply(0, 1)

    assert controlling(hops.resolve("c", MinRevision(id="d"))) == ["d"]


def test_an_answer_after_a_statement_that_was_never_made_says_so(hops: TwoHops) -> None:
    with pytest.raises(InvalidRequest) as caught:
        hops.resolve("c", MinRevision(id="d", revision=2))

    assert caught.value.code == "not_visible"


def test_an_answer_not_compared_with_the_revisions_it_must_have_seen_is_not_given(hops: TwoHops) -> None:
    """On every attempt the shard moves after the answer was read and before the revisions are looked up."""
    queries = Queries(shards=OneShard(hops.stores[0]), index=PlainIndex(), ruleset=RULESET, generation="g")
    names = (name for name in map(str, range(40)) if TWO.of_id(name) == 0)

    async def read(snapshot: Snapshot) -> tuple[Resolution, ...]:
        await snapshot.document("c")
        hops.publish(document(next(names)))
        return (Resolution(name="c", status="in_force"),)

    options = ReadOptions(min_revisions=[MinRevision(id="d")], retry=ImmediateRetries(2))
    with pytest.raises(InvalidRequest) as caught:
        run_sync(queries.read_consistently(None, read, options))

    assert caught.value.code == "not_visible"


def test_an_answer_after_a_document_that_waits_for_its_time_says_so(hops: TwoHops) -> None:
    hops.publish(document("late", at=1000 + 5, topic=topic_in(0)))
    hops.emit_watermarks()
    hops.apply(0, 1)
    with pytest.raises(InvalidRequest) as caught:
        hops.resolve("late", MinRevision(id="late"))

    assert caught.value.code == "pending"


def test_a_released_document_is_not_exact_before_the_record_that_released_it(hops: TwoHops) -> None:
    hops.publish(document("late", at=1000 + 5, topic=topic_in(0)))
    hops.emit_watermarks()
    hops.apply(0, 1)
    hops.clock.time = NOW + 6 * DAY
    tick = next(name for name in map(str, range(40)) if TWO.of_id(name) == TWO.of_id("late"))
    hops.publish(document(tick))
    hops.apply(0, 1)

    assert hops.resolve("late").reasons == ("in_flight",)

    hops.emit_watermarks()
    hops.apply(0, 1)

    assert (hops.resolve("late").status, hops.resolve("late").reasons) == ("in_force", ())


def test_a_page_that_is_gone_while_its_header_names_it_halts(hops: TwoHops) -> None:
    topic = topic_in(0)
    hops.publish(*(document(f"c{n}", at=n, topic=topic) for n in range(100)))
    hops.emit_watermarks()
    hops.apply(0, 1)
    snapshot = hops.queries.snapshot()
    scope = run_sync(snapshot.scope(f"topic={topic}"))
    hops.files[1].connection.execute("DELETE FROM entries WHERE substr(key, 1, 2) = ?", (b"p:",))
    with pytest.raises(Halted) as caught:
        run_sync(snapshot.with_pages(lambda: list(all_members(scope, pages_of(snapshot.values)))))

    assert caught.value.code == "damaged"


class EventList:
    """Implements `ports.EventSink`: changes that outlive the store."""

    def __init__(self) -> None:
        self.events: list[Emission] = []

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        """Keep all events, repeats too."""
        self.events += events

    async def last(self, shard: int) -> int:
        """The number of the last event."""
        return len(self.events)


def test_a_frontier_shard_that_lost_its_state_emits_no_change_twice(hops: TwoHops) -> None:
    changes = EventList()
    hops.frontier[0].event_sink = changes
    hops.publish(document("c", topic=topic_in(0)), document("d", "denial", 1, topic=topic_in(0)))
    hops.apply(0)
    hops.files[1].reset()
    run_sync(hops.frontier[0].start())
    hops.publish(document("e", at=2, topic=topic_in(0)))
    hops.apply(0)

    assert [event.oseq for event in changes.events] == [1, 2, 3]


def test_a_quiet_shard_notices_that_somebody_else_has_it(hops: TwoHops) -> None:
    mine = hops.frontier[0]
    run_sync(mine.start())
    run_sync(mine.check_claim())
    run_sync(hops.stores[1].claim(0))
    with pytest.raises(ClaimLost):
        run_sync(mine.check_claim())

    assert mine.published_offset is None


def test_a_shard_says_how_far_behind_its_log_it_is(hops: TwoHops) -> None:
    hops.publish(document("c", topic=topic_in(0)), document("d", "denial", 1, topic=topic_in(0)))

    assert run_sync(hops.frontier[0].lag()) == 2

    hops.apply(0)

    assert (run_sync(hops.frontier[0].lag()), hops.frontier[0].published_offset) == (0, 2)


def test_other_work_runs_between_the_values_of_wide_documents(hops: TwoHops) -> None:
    wide = "x" * 900
    names = [name for name in map(str, range(400)) if TWO.of_id(name) == 0]
    hops.publish(*(document(name, topic=f"{wide}{name}") for name in names))
    rests: list[int] = []

    async def rest() -> None:
        rests.append(1)

    for source in (OneShard(hops.stores[0]).source(), hops.queries.shards.source()):
        rests.clear()
        values = run_sync(source.read([document_key(name) for name in names], rest))

        assert all(isinstance(value, StoredDocument) for value in values.values())
        assert len(rests) >= len(names) * len(wide) // DECODED_AT_ONCE > 1

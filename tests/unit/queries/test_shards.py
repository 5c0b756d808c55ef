"""Questions to many shards: exact at their cut, or they say that they are not."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from stream_car.adapters.sqlite.journal import SqliteJournal
from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.adapters.sqlite.state_file import StateFile
from stream_car.adapters.sqlite.store import SqliteStore
from stream_car.codec import encode
from stream_car.core.documents import Document
from stream_car.core.timeline import all_members
from stream_car.core.walk import pages_of
from stream_car.errors import ClaimLost, Halted, InvalidRequest
from stream_car.local.run_sync import at_once
from stream_car.ports import Emission, Message
from stream_car.processing.outbox import IntakeOutbox, WatermarkEmitter
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import Shard
from stream_car.processing.two_hop import FrontierFold, IntakeFold
from stream_car.queries.answers import After, Resolution
from stream_car.queries.queries import Queries
from stream_car.queries.read_options import ImmediateRetries, ReadOptions
from stream_car.queries.shards import ManyShards, StoreViews
from tests.support.engines import DAY, NOW, RULESET, StoppedClock, document
from tests.support.plain_index import PlainIndex

TWO = Partitions(intakes=2, frontiers=2)


class Hops:
    """Both hops over SQLite; each shard goes on only when it is told to."""

    def __init__(self, folder: Path) -> None:
        self.files = [StateFile(folder / name) for name in ("intake.sqlite", "frontier.sqlite")]
        self.clock = StoppedClock()
        self.logs = [
            SqliteLog(folder / f"{name}.sqlite", self.clock, 2) for name in ("documents", "placements", "rejected")
        ]
        self.documents, self.placements, rejected = self.logs
        self.outlet = IntakeOutbox(TWO, placements=self.placements, documents=self.documents, rejected=rejected)
        self.stores = [SqliteStore(file) for file in self.files]
        self.intake = [
            Shard(
                shard=q,
                log=self.documents,
                store=self.stores[0],
                event_sink=self.outlet,
                fold=IntakeFold(RULESET, TWO, shard=q),
            )
            for q in range(2)
        ]
        self.marks = [WatermarkEmitter(shard, self.outlet) for shard in self.intake]
        self.frontier = [
            Shard(
                shard=p,
                log=self.placements,
                store=self.stores[1],
                event_sink=SqliteJournal(self.files[1]),
                fold=FrontierFold(RULESET, TWO, shard=p),
            )
            for p in range(2)
        ]
        views = StoreViews(intake=self.stores[0], frontier=self.stores[1])
        self.queries = Queries(shards=ManyShards(views, TWO), index=PlainIndex(), ruleset=RULESET, generation="g")

    def publish(self, *said: Document) -> None:
        """Append and take in; the frontier shards do not move."""
        for one in said:
            at_once(self.documents.append(TWO.of_id(one.id), [Message(value=encode(one))]))
        for shard in self.intake:
            while at_once(shard.run_once()):
                pass

    def apply(self, *shards: int) -> None:
        """Let frontier shards come to the end of their placements."""
        for shard in shards:
            while at_once(self.frontier[shard].run_once()):
                pass

    def mark(self) -> None:
        """Let both intake shards say how far they are."""
        for marks in self.marks:
            at_once(marks.emit())

    def resolve(self, name: str, *after: After) -> Resolution:
        """What controls a document, with three attempts."""
        waiting = ReadOptions(min_revisions=after, retry=ImmediateRetries(3))
        [found] = at_once(self.queries.resolve([name], options=waiting))
        return found

    def close(self) -> None:
        """Let the files go."""
        for log in self.logs:
            log.close()
        for file in self.files:
            file.close()


@pytest.fixture
def hops(tmp_path: Path) -> Iterator[Hops]:
    opened = Hops(tmp_path)
    yield opened
    opened.close()


def topic_in(shard: int) -> str:
    return next(name for name in map(str, range(40)) if TWO.of_scope(f"topic={name}".encode()) == shard)


def controlling(found: Resolution) -> list[str]:
    return [one.document.id for group in found.groups for one in group.controlling]


def test_an_answer_at_rest_is_exact_at_the_ends_of_the_inputs(hops: Hops) -> None:
    hops.publish(document("c", topic=topic_in(0)), document("d", "denial", 1, topic=topic_in(0)))
    hops.mark()
    hops.apply(0, 1)
    found = hops.resolve("c")

    assert (controlling(found), found.status, found.reasons) == (["d"], "void", ())


def test_what_was_said_but_not_marked_yet_is_in_flight(hops: Hops) -> None:
    hops.publish(document("c", topic=topic_in(0)))
    hops.apply(0, 1)

    assert hops.resolve("c").reasons == ("in_flight",)


def test_a_shard_that_is_behind_makes_the_answer_say_in_flight(hops: Hops) -> None:
    hops.publish(document("c", topic=topic_in(0)))
    hops.mark()
    hops.apply(0, 1)
    hops.publish(document("d", "denial", 1, topic=topic_in(0)))
    hops.mark()
    hops.apply(0)
    found = hops.resolve("c")

    assert (controlling(found), found.reasons) == (["d"], ("in_flight",))


def test_a_question_that_cannot_say_so_is_not_answered_in_flight(hops: Hops) -> None:
    hops.publish(document("c", topic=topic_in(0)))
    hops.apply(0, 1)
    with pytest.raises(InvalidRequest) as caught:
        at_once(hops.queries.read_consistently(None, lambda reader: reader.document("c")))

    assert caught.value.code == "in_flight"


def test_an_answer_after_a_statement_waits_until_every_shard_has_heard(hops: Hops) -> None:
    hops.publish(document("c", topic=topic_in(0)))
    hops.mark()
    hops.apply(0, 1)
    hops.publish(document("d", "denial", 1, topic=topic_in(0)))
    hops.apply(0, 1)
    with pytest.raises(InvalidRequest) as caught:
        hops.resolve("c", After(id="d"))

    assert caught.value.code == "not_visible"

    hops.mark()
    hops.apply(0, 1)

    assert controlling(hops.resolve("c", After(id="d"))) == ["d"]


def test_an_answer_after_a_statement_that_was_never_made_says_so(hops: Hops) -> None:
    with pytest.raises(InvalidRequest) as caught:
        hops.resolve("c", After(id="d", revision=2))

    assert caught.value.code == "not_visible"


def test_an_answer_after_a_document_that_waits_for_its_time_says_so(hops: Hops) -> None:
    hops.publish(document("late", at=1000 + 5, topic=topic_in(0)))
    hops.mark()
    hops.apply(0, 1)
    with pytest.raises(InvalidRequest) as caught:
        hops.resolve("late", After(id="late"))

    assert caught.value.code == "pending"


def test_a_released_document_is_not_exact_before_the_record_that_released_it(hops: Hops) -> None:
    hops.publish(document("late", at=1000 + 5, topic=topic_in(0)))
    hops.mark()
    hops.apply(0, 1)
    hops.clock.time = NOW + 6 * DAY
    tick = next(name for name in map(str, range(40)) if TWO.of_id(name) == TWO.of_id("late"))
    hops.publish(document(tick))
    hops.apply(0, 1)

    assert hops.resolve("late").reasons == ("in_flight",)

    hops.mark()
    hops.apply(0, 1)

    assert (hops.resolve("late").status, hops.resolve("late").reasons) == ("active", ())


def test_a_page_that_is_gone_while_its_header_names_it_halts(hops: Hops) -> None:
    topic = topic_in(0)
    hops.publish(*(document(f"c{n}", at=n, topic=topic) for n in range(100)))
    hops.mark()
    hops.apply(0, 1)
    reader = hops.queries.reader()
    scope = at_once(reader.scope(f"topic={topic}"))
    hops.files[1].connection.execute("DELETE FROM entries WHERE substr(key, 1, 2) = ?", (b"p:",))
    with pytest.raises(Halted) as caught:
        at_once(reader.with_pages(lambda: list(all_members(scope, pages_of(reader.values)))))

    assert caught.value.code == "damaged"


class Told:
    """Implements `ports.EventSink`: changes that outlive the store."""

    def __init__(self) -> None:
        self.events: list[Emission] = []

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        """Keep them all, repeats too."""
        self.events += events

    async def last(self, shard: int) -> int:
        """The number of the last one."""
        return len(self.events)


def test_a_frontier_shard_that_lost_its_state_does_not_tell_again_what_was_told(hops: Hops) -> None:
    told = Told()
    hops.frontier[0].change_log = told
    hops.publish(document("c", topic=topic_in(0)), document("d", "denial", 1, topic=topic_in(0)))
    hops.apply(0)
    hops.files[1].reset()
    at_once(hops.frontier[0].start())
    hops.publish(document("e", at=2, topic=topic_in(0)))
    hops.apply(0)

    assert [event.oseq for event in told.events] == [1, 2, 3]


def test_a_quiet_shard_notices_that_somebody_else_has_it(hops: Hops) -> None:
    mine = hops.frontier[0]
    at_once(mine.start())
    at_once(mine.beat())
    at_once(hops.stores[1].claim(0))
    with pytest.raises(ClaimLost):
        at_once(mine.beat())

    assert (mine.is_started, mine.settled) == (False, None)


def test_a_shard_says_how_far_behind_its_log_it_is(hops: Hops) -> None:
    hops.publish(document("c", topic=topic_in(0)), document("d", "denial", 1, topic=topic_in(0)))

    assert at_once(hops.frontier[0].lag()) == 2

    hops.apply(0)

    assert (at_once(hops.frontier[0].lag()), hops.frontier[0].settled) == (0, 2)

"""Both hops over SQLite in one process. Each shard moves only when a test lets it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stream_car.adapters.sqlite.journal import SqliteJournal
from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.adapters.sqlite.state_file import StateFile
from stream_car.adapters.sqlite.store import SqliteStore
from stream_car.codec import encode
from stream_car.core.documents import Document
from stream_car.local.run_sync import run_sync
from stream_car.ports import Message
from stream_car.processing.outbox import IntakeOutbox, WatermarkEmitter, emit_watermarks
from stream_car.processing.shard import Shard
from stream_car.processing.two_hop import FrontierFold, IntakeFold
from stream_car.queries.answers import Resolution
from stream_car.queries.queries import Queries
from stream_car.queries.read_options import ImmediateRetries, MinRevision, ReadOptions
from stream_car.queries.shards import ManyShards
from tests.support.engines import RULESET, StoppedClock
from tests.support.plain_index import PlainIndex
from tests.support.store_views import StoreViews
from tests.support.two_hop_folds import SIGNATURES, TWO


class TwoHops:
    """Two intake shards, two frontier shards, and questions to them."""

    def __init__(self, folder: Path) -> None:
        self.files = [StateFile(folder / name) for name in ("intake.sqlite", "frontier.sqlite")]
        self.clock = StoppedClock()
        self.logs = [
            SqliteLog(folder / f"{name}.sqlite", self.clock, 2) for name in ("documents", "placements", "rejected")
        ]
        self.documents, self.placements, rejected = self.logs
        self.outbox = IntakeOutbox(
            TWO, signatures=SIGNATURES, placements=self.placements, documents=self.documents, rejected=rejected
        )
        self.stores = [SqliteStore(file) for file in self.files]
        self.intake = [
            Shard(
                shard=number,
                log=self.documents,
                store=self.stores[0],
                event_sink=self.outbox,
                fold=IntakeFold(RULESET, TWO, shard=number, signatures=SIGNATURES),
            )
            for number in range(2)
        ]
        self.emitters = [WatermarkEmitter(shard, self.outbox) for shard in self.intake]
        self.frontier = [
            Shard(
                shard=number,
                log=self.placements,
                store=self.stores[1],
                event_sink=SqliteJournal(self.files[1]),
                fold=FrontierFold(RULESET, TWO, shard=number, signatures=SIGNATURES),
            )
            for number in range(2)
        ]
        views = StoreViews(intake=self.stores[0], frontier=self.stores[1])
        self.queries = Queries(shards=ManyShards(views, TWO), index=PlainIndex(), ruleset=RULESET, generation="g")

    def publish(self, *documents: Document) -> None:
        """Append documents and run intake. The frontier shards do not move."""
        for document in documents:
            run_sync(self.documents.append(TWO.of_id(document.id), [Message(value=encode(document))]))
        for shard in self.intake:
            while run_sync(shard.run_once()):
                pass

    def apply(self, *shards: int) -> None:
        """Let these frontier shards apply all their placements."""
        for shard in shards:
            while run_sync(self.frontier[shard].run_once()):
                pass

    def lose_state(self, hop: int) -> None:
        """Delete the state of a hop, 0 or 1. Its shards start again when they are run."""
        self.files[hop].reset()
        for shard in (self.intake, self.frontier)[hop]:
            shard._release()

    def emit_watermarks(self) -> None:
        """Let both intake shards report how far they are."""
        run_sync(emit_watermarks(self.emitters))

    def resolve(self, name: str, *min_revisions: MinRevision) -> Resolution:
        """What controls a document, after at most three attempts."""
        options = ReadOptions(min_revisions=min_revisions, retry=ImmediateRetries(3))
        [resolution] = run_sync(self.queries.resolve([name], options=options))
        return resolution

    def close(self) -> None:
        for log in self.logs:
            log.close()
        for file in self.files:
            file.close()


@contextmanager
def opened_two_hops(folder: Path) -> Iterator[TwoHops]:
    """Both hops in a folder, closed in the end."""
    hops = TwoHops(folder)
    try:
        yield hops
    finally:
        hops.close()


def topic_in(shard: int) -> str:
    """A topic whose scope belongs to this frontier shard."""
    return next(name for name in map(str, range(40)) if TWO.of_scope(f"topic={name}".encode()) == shard)

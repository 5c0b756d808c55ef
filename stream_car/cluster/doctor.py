"""Checks an installation over Kafka and Redis: its topics and rights, the state of both hops against a replay, the
changes against the same replay, a stored text index, quarantine and clocks.

Promise: nothing is written to Kafka or Redis, and nothing has to be stopped. Each value of the state is compared with a
replay of exactly the records that its shard had applied when it was read. Cost: the topics are read and folded
once, one shard after the other, in a temporary folder.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from stream_car.adapters.kafka import topics
from stream_car.adapters.kafka.topic_layout import KEYS, Layout
from stream_car.adapters.redis.store import READ_MAX, RedisStore
from stream_car.adapters.redis.views import RedisViews
from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.search.index_faults import find_index_fault
from stream_car.adapters.sqlite.journal import SqliteJournal
from stream_car.adapters.sqlite.key_list import SqliteKeys, find_keys_fault
from stream_car.adapters.sqlite.state_file import StateFile
from stream_car.adapters.sqlite.store import SqliteStore
from stream_car.adapters.system_clock import CLOCK_CURE, clock_notice
from stream_car.cluster.connections import TOPICS, Connections, Plan
from stream_car.core.revisions import document_key
from stream_car.core.stored import StoredDocument
from stream_car.errors import Halted, StreamCarError
from stream_car.files.seals import compare_with_seal
from stream_car.ports import Emission, Hop, ShardId
from stream_car.processing.effects import Effects
from stream_car.processing.findings import Finding, damaged, notice, ok
from stream_car.processing.fold import CHANGES
from stream_car.processing.headers import Header
from stream_car.processing.index_feed import is_indexed
from stream_car.processing.quarantine import QUARANTINE, Quarantine
from stream_car.processing.shard import BATCH_MAX, GENERATION, LAST, Shard, digest_of
from stream_car.processing.state import HEADER, decode_value
from stream_car.processing.two_hop import FrontierEffects, FrontierFold, FrontierRecord, IntakeFold, IntakeRecord

PAGE = 500  # keys or changes that are compared at a time
LAST_KEY = b"\xff"
READ_BY_ALL = ("documents", "placements", "changes", KEYS)
RUNBOOK = "deploy/runbook.md, {code}, has the steps to take."
DROP = "Drop that shard (deploy/runbook.md): a worker rebuilds it from the log."
RETENTION = "Set retention.ms and retention.bytes of the topic to -1 at once. " + RUNBOOK.format(code="lost_history")
RIGHTS = "deploy/kafka/acls.sh has the rights of each role. Run this command as a worker or a query worker."
NO_TOPICS = "Check --kafka and --prefix, or create them: stream-car topics apply"
REMOVE_INDEX = "Remove this folder. The query worker builds its index again from Kafka."

MAY_LIST = "Give the user of Redis +scan and +hscan, as the last lines of deploy/redis/redis.conf do."
UNLINK = "If no other program uses them, remove each: redis-cli UNLINK '{KEY}'"
LISTINGS = 3  # of fields that a worker may have written meanwhile
NAMED = 3  # fields or keys in a finding

Progress = Callable[[int, int], None]
AnyShard = Shard[IntakeRecord, Effects] | Shard[FrontierRecord, FrontierEffects]


class NoSink:
    """Implements `ports.EventSink`: a replay of the intake hop publishes nothing."""

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        """Do nothing."""

    async def last(self, shard: int) -> int:
        return 0


async def examine(
    plan: Plan, index: Path | None, progress: Progress = lambda done, total: None
) -> AsyncIterator[Finding]:
    """Yield the finding of each check, as far as the checks before it allow.

    `index` is the folder of a query worker; `progress` is called with the records replayed and their total.
    """
    try:
        layout = await asyncio.to_thread(topics.adopt_partitions, plan.kafka, _layout_of(plan))
        checked = await asyncio.to_thread(topics.check, plan.kafka, layout)
    except StreamCarError as error:
        yield damaged("access", str(error), RIGHTS)
        return
    problems = [problem for topic in checked for problem in topic.problems]
    for problem in problems:
        yield damaged("topics", f"{problem}.", RUNBOOK.format(code="partitions and lost_history"))
    if not all(topic.partitions for topic in checked):
        return
    if not problems:
        yield ok("topics", f"All {len(checked)} have safe settings.")
    async with AsyncExitStack() as opened:
        try:
            connections = await Connections.open(plan, layout)
        except StreamCarError as error:
            yield damaged("redis" if "Redis" in str(error) else "access", str(error), RIGHTS)
            return
        opened.push_async_callback(connections.close)
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="doctor-")))
        doctor = ClusterDoctor(connections, folder, progress)
        opened.callback(doctor.close)
        async for finding in doctor.examine():
            yield finding
        if index is not None and doctor.is_whole:
            yield await doctor.check_index(index)


def _layout_of(plan: Plan) -> Layout:
    return Layout(prefix=plan.prefix, single_broker=plan.single_broker)


class ClusterDoctor:
    """The checks that need connections. `close` it."""

    def __init__(self, connections: Connections, folder: Path, progress: Progress) -> None:
        self.is_whole = True  # whether every intake shard equals its replay
        self._connections = connections
        self._folder = folder
        self._progress = progress
        partitions, plan = connections.partitions, connections.plan
        self._stores: dict[Hop, RedisStore] = {hop: plan.store(connections.client, hop) for hop in TOPICS}
        self._views = RedisViews(intake=self._stores["intake"], frontier=self._stores["frontier"])
        self._places = [ShardId("intake", shard) for shard in range(partitions.intakes)]
        self._places += [ShardId("frontier", shard) for shard in range(partitions.frontiers)]
        self._replays: dict[ShardId, tuple[StateFile, SqliteStore]] = {}
        self._done = self._total = 0
        self._unlisted = ""  # why fields or keys could not be listed

    def close(self) -> None:
        """Close the files of the replays."""
        for file, _ in self._replays.values():
            file.close()

    async def examine(self) -> AsyncIterator[Finding]:
        """Yield what is found of rights, shards, changes, quarantine and clocks."""
        denied = [finding for topic in READ_BY_ALL if (finding := await self._check_access(topic)) is not None]
        for finding in denied or [ok("access", "The topics and Redis can be read.")]:
            yield finding
        if denied:
            return
        for place in self._places:
            self._total += (await self._connections.log(TOPICS[place.hop]).range(place.shard))[1]
        applied, is_sound = 0, True
        for place in self._places:
            try:
                finding, next_offset = await self._check_shard(place)
            except Halted as halted:
                finding, next_offset = damaged("state", f"{_name(place)}: {halted}", DROP), 0
            applied += next_offset
            if finding is not None:
                is_sound = False
                self.is_whole = self.is_whole and place.hop != "intake"
                yield finding
            elif place.hop == "frontier":
                difference = await self._check_changes(place.shard)
                is_sound = is_sound and difference is None
                if difference is not None:
                    yield difference
        if is_sound:
            yield ok("state", f"All {len(self._places)} shards equal a replay of {applied:,} records.")
            yield ok("changes", "They are those of the replay.")
        for finding in [*await self._check_headers(), *await self._check_keys()]:
            yield finding

    async def _check_access(self, topic: str) -> Finding | None:
        log = self._connections.log(topic)
        try:
            first, _ = await log.range(0)
            await log.fetch(0, first, 1)
        except Halted as halted:
            return damaged("topics", f"Topic {topic}: {halted}", RUNBOOK.format(code=halted.code))
        except StreamCarError as error:
            return damaged("access", f"Topic {topic}: {error}", RIGHTS)
        return None

    async def _check_shard(self, place: ShardId) -> tuple[Finding | None, int]:
        """Return what is wrong with a shard, and how many records it has applied."""
        log, name = self._connections.log(TOPICS[place.hop]), _name(place)
        next_offset, values = (await self._views.peek({place: [GENERATION, LAST]}))[place]
        first, end = await log.range(place.shard)
        generation = self._connections.generation
        if first:
            detail = f"{name}: Kafka has deleted the records before {first:,}. "
            lost = next_offset < first
            consequence = "Its state lacks them." if lost else "Its state has them, but could not be rebuilt."
            return damaged("log", detail + consequence, RETENTION), next_offset
        if not next_offset:
            if not end:
                return None, 0
            detail = f"{name} has no state, and {end:,} records wait."
            return notice("state", detail, "A worker builds it. Check that `stream-car worker` is running."), 0
        if values.get(GENERATION) != generation.encode():
            known = values.get(GENERATION, b"").decode()
            detail = f"{name} was built with other rules or for other partitions ({known}, not {generation})."
            return damaged("rules", detail, "Give this command the --rules of the workers. " + _steps("generation")), 0
        if next_offset > end:
            detail = f"{name} has applied {next_offset:,} records, but the topic has {end:,}: it has lost its end."
            return damaged("log", detail, _steps("ahead")), next_offset
        [last] = await log.fetch(place.shard, next_offset - 1, 1)
        if values.get(LAST) != digest_of(last):
            return damaged("log", f"{name} was built from another topic.", _steps("foreign")), next_offset
        difference = await self._compare(place, next_offset)
        return (damaged("state", f"{name}: {difference}", DROP) if difference else None), next_offset

    async def _replay_up_to(self, shard: AnyShard, up_to: int) -> None:
        while shard.next_offset < up_to:
            self._done += len(await shard.run_once(min(BATCH_MAX, up_to - shard.next_offset)))
            self._progress(self._done, self._total)

    async def _find_foreign_fields(self, place: ShardId, shard: AnyShard, store: SqliteStore) -> str:
        """Return that a shard in Redis has values of which a replay has none, or an empty string.

        What a worker writes meanwhile is in the next replay.
        """
        redis = self._stores[place.hop]
        try:
            foreign = await redis.foreign_fields(place.shard, [QUARANTINE, *_keys(store, place)])
        except StreamCarError as error:
            self._unlisted = str(error)
            return ""
        is_cut = len(foreign) > READ_MAX
        for _ in range(LISTINGS):
            if not foreign:
                return ""
            up_to, foreign = await redis.peek_fields(place.shard, foreign)
            await self._replay_up_to(shard, up_to)
            foreign = redis.without_keys(foreign, [QUARANTINE, *_keys(store, place)])
        names = ", ".join(field.hex() for field in foreign[:NAMED])
        count = f"{'At least ' if is_cut else ''}{len(foreign):,}"
        return f"{count} fields have values that no replay gives ({names})." if foreign else ""

    async def _check_keys(self) -> list[Finding]:
        """Return what else is in the namespace, and what could not be listed."""
        keys: list[bytes] = []
        try:
            keys = [
                key
                for hop, store in self._stores.items()
                for key in await store.foreign_keys([place.shard for place in self._places if place.hop == hop])
            ]
        except StreamCarError as error:
            self._unlisted = str(error)
        if self._unlisted:
            return [notice("access", f"Keys that no replay gives were not looked for: {self._unlisted}", MAY_LIST)]
        names = ", ".join(key.decode(errors="replace") for key in keys[:NAMED])
        detail = f"{len(keys):,} keys belong to no shard: {names}."
        return [notice("redis", detail, UNLINK)] if keys else []

    def _replay(self, place: ShardId, file: StateFile, store: SqliteStore) -> AnyShard:
        """Return a shard that has applied nothing, whose state is in a file."""
        connections, number = self._connections, place.shard
        log, ruleset = connections.log(TOPICS[place.hop]), connections.plan.ruleset
        if place.hop == "intake":
            intake = IntakeFold(ruleset, connections.partitions, shard=number, signatures=connections.signatures)
            return Shard(shard=number, log=log, store=store, event_sink=NoSink(), fold=intake)
        frontier = FrontierFold(ruleset, connections.partitions, shard=number, signatures=connections.signatures)
        return Shard(shard=number, log=log, store=store, event_sink=SqliteJournal(file), fold=frontier)

    async def _compare(self, place: ShardId, next_offset: int) -> str:
        """Replay a shard and return the first value that differs, or an empty string."""
        file = StateFile(self._folder / f"{place.hop}-{place.shard}.sqlite")
        store = SqliteStore(file)
        self._replays[place] = file, store
        shard = self._replay(place, file, store)
        await shard.start()
        after, up_to = b"", next_offset
        while True:
            await self._replay_up_to(shard, up_to)
            keys = store.keys_between(place.shard, after, LAST_KEY, PAGE)
            if not keys:
                return await self._find_foreign_fields(place, shard, store)
            up_to, values = (await self._views.peek({place: keys}))[place]
            if up_to < shard.next_offset:
                return "It lost its state while it was compared."
            if up_to > shard.next_offset:
                continue  # the same keys again, as of the records that were applied meanwhile
            _, expected = await store.peek(place.shard, keys)
            if different := [key for key in keys if key != QUARANTINE and values.get(key) != expected.get(key)]:
                return f"The value of {different[0]!r} is not what a replay gives."
            after = keys[-1]

    async def _check_changes(self, shard: int) -> Finding | None:
        """Compare the published changes of a frontier shard with those of its replay."""
        place = ShardId("frontier", shard)
        if place not in self._replays:
            return None
        expected, published = SqliteJournal(self._replays[place][0]), self._connections.journal()
        after = deleted = await published.deleted_up_to(shard)
        while events := await expected.read(shard, CHANGES, after=after, limit=PAGE):
            given = {event.oseq: event for event in await published.read(shard, CHANGES, after=after, limit=PAGE)}
            for event in events:
                if event.oseq not in given and event.oseq > max(given, default=0):
                    detail = f"Changes of frontier shard {shard} from number {event.oseq:,} on are not published yet."
                    return notice("changes", detail, "A worker publishes them. If not, drop that shard.")
                if given.get(event.oseq) != event:
                    what = "differs from what a replay gives" if event.oseq in given else "is missing"
                    return damaged("changes", f"Change {event.oseq:,} of frontier shard {shard} {what}.", DROP)
            after = events[-1].oseq
        if deleted:
            detail = f"Kafka has deleted the changes of frontier shard {shard} up to number {deleted:,}."
            return notice("changes", detail, "Subscribers with older cursors begin again. " + RETENTION)
        return None

    async def _check_headers(self) -> list[Finding]:
        """Return what quarantine and clocks show."""
        findings: list[Finding] = []
        snapshot = await self._views.peek({place: [HEADER, QUARANTINE] for place in self._places})
        for place, (_, raw) in snapshot.items():
            quarantine = decode_value(QUARANTINE, raw.get(QUARANTINE))
            if isinstance(quarantine, Quarantine) and quarantine.records:
                detail = f"{_name(place)} has set {len(quarantine.records):,} records aside."
                findings.append(notice("quarantine", detail, "See `stream-car quarantine list`."))
            header = decode_value(HEADER, raw.get(HEADER)) if place.hop == "intake" else None
            lead = header.clock - time.time_ns() // 1000 if isinstance(header, Header) else 0
            if detail := clock_notice(lead):
                findings.append(notice("clock", f"{_name(place)}: {detail}", CLOCK_CURE))
        return findings

    async def check_index(self, folder: Path) -> Finding:
        """Compare a copy of a query worker's index with the replayed state: every document that it should have."""
        if not folder.is_dir():
            return damaged("index", f"There is nothing in {folder}.", REMOVE_INDEX)
        listed = folder / "keys.sqlite"
        if fault := find_keys_fault(listed, compare_with_seal(listed)):
            fault = f"The file {listed.name} {fault}."
        if fault := find_index_fault(folder) or fault:
            return damaged("index", fault, REMOVE_INDEX)
        copied = self._folder / "index"
        shutil.copytree(folder, copied)
        index = TantivyIndex(copied)
        keys = SqliteKeys(copied / "keys.sqlite", self._connections.index_owner)
        try:
            return await self._compare_index(index, keys.positions_at(await index.position()))
        except StreamCarError as error:
            return damaged("index", str(error), REMOVE_INDEX)
        finally:
            keys.close()
            index.close()

    async def _compare_index(self, index: TantivyIndex, indexed: Sequence[int] | None) -> Finding:
        if indexed is None:
            return damaged("index", "It belongs to other rules or another installation.", REMOVE_INDEX)
        count = 0
        for place, (_, store) in self._replays.items():
            after = document_key("") if place.hop == "intake" else LAST_KEY
            while keys := store.keys_between(place.shard, after, b"d;", PAGE):
                _, values = await store.peek(place.shard, keys)
                documents = await index.documents([key[len(document_key("")) :].decode() for key in keys])
                for key in keys:
                    stored = decode_value(key, values.get(key))
                    name = key[len(document_key("")) :].decode()
                    if not isinstance(stored, StoredDocument) or stored.offset >= indexed[place.shard]:
                        continue
                    if not is_indexed(stored, documents.get(name)):
                        detail = f"It does not have document {name!r} at its current revision."
                        return damaged("index", detail, REMOVE_INDEX)
                    count += not stored.retracted
                after = keys[-1]
        return ok("index", f"It has the current text of {count:,} documents.")


def _keys(store: SqliteStore, place: ShardId) -> Iterator[bytes]:
    """Yield all keys of a shard."""
    after = b""
    while keys := store.keys_between(place.shard, after, LAST_KEY, PAGE):
        yield from keys
        after = keys[-1]


def _name(place: ShardId) -> str:
    return f"Shard {place.shard} of the {place.hop} hop"


def _steps(code: str) -> str:
    return RUNBOOK.format(code=code)

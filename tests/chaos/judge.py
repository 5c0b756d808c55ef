"""The judge of an installation: it reads only topics and the store.

Promise: what publishers sent is given to the definitions; every change is compared with an uninterrupted fold of the
log, byte for byte; every acknowledged record is at the offset that was acknowledged.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.core.definitions import current_documents
from stream_car.core.documents import Document
from stream_car.core.rules import Ruleset
from stream_car.errors import Unavailable
from stream_car.ports import Emission, Log, Message, Record, ShardId, SnapshotReader
from stream_car.processing.fold import CHANGES
from stream_car.processing.partitions import Partitions
from stream_car.processing.signatures import Signatures
from stream_car.processing.two_hop import FrontierFold, generation_of
from stream_car.queries.queries import Queries
from stream_car.queries.scope_members import ALL, active_members
from stream_car.queries.shards import ManyShards
from stream_car.queries.snapshot import Snapshot
from tests.chaos.documents import world_of
from tests.simulation.two_hops.truth import Inputs, Known, events_of, replayed
from tests.simulation.world import Violation
from tests.support.plain_index import PlainIndex

LOOK_S = 0.4


class Verdict(Struct, frozen=True, kw_only=True):
    """How many of each were found to be right."""

    inputs: int
    acknowledged: int
    changes: int
    repeats: int
    rejected: int


async def read_all(log: Log, partition: int) -> list[Record]:
    """Return all records of a partition."""
    records: list[Record] = []
    _, end = await log.range(partition)
    while len(records) < end:
        records += await log.fetch(partition, len(records), 1000)
    return records


class Judge:
    """Examines one installation."""

    def __init__(
        self,
        layout: Layout,
        ruleset: Ruleset,
        signatures: Signatures,
        views: SnapshotReader,
        reader: Reader,
        sender: Sender,
        count_unpublished: Callable[[], Awaitable[int]],
    ) -> None:
        self.ruleset = ruleset
        self.signatures = signatures
        self._count_unpublished = count_unpublished  # emissions that are committed and still in an outbox
        self.partitions = Partitions(intakes=layout.intakes, frontiers=layout.frontiers)
        self.views = views
        names = ("documents", "placements", "changes", "rejected")
        self.logs = {name: KafkaLog(reader, sender, layout.full_name(name)) for name in names}
        self.generation = generation_of(ruleset, self.partitions)

    async def at_rest(self, timeout_s: float) -> None:
        """Return when every shard is at the end of its log, has published everything, and stays there."""
        deadline = time.monotonic() + timeout_s
        earlier_ends: object = None
        while True:
            positions, ends = await self._positions()
            unpublished: int | None = None
            if positions == ends == earlier_ends:
                with suppress(Unavailable):
                    unpublished = await self._count_unpublished()
            if unpublished == 0:
                return
            earlier_ends = ends
            if time.monotonic() > deadline:
                raise Violation(f"the shards are at {positions}, not at {ends}, with {unpublished} unpublished")
            await asyncio.sleep(LOOK_S)

    async def _positions(self) -> tuple[dict[ShardId, int], dict[ShardId, int]]:
        """Return the position of every shard, and the end of its log."""
        ends: dict[ShardId, int] = {}
        for shard in range(self.partitions.intakes):
            ends[ShardId("intake", shard)] = (await self.logs["documents"].range(shard))[1]
        for shard in range(self.partitions.frontiers):
            ends[ShardId("frontier", shard)] = (await self.logs["placements"].range(shard))[1]
        try:
            views = await self.views.peek({shard: [] for shard in ends})
        except Unavailable:
            return {}, ends
        return {shard: view[0] for shard, view in views.items()}, ends

    async def verdict(self, acknowledged: Mapping[tuple[int, int], Message]) -> tuple[Verdict, Inputs]:
        """Compare everything with the definitions; `acknowledged` is by partition and offset. Raises `Violation`."""
        records = [await read_all(self.logs["documents"], shard) for shard in range(self.partitions.intakes)]
        _require_acknowledged(acknowledged, records)
        inputs = Inputs(records, self.partitions, self.ruleset, self.signatures)
        if missing := inputs.unforwarded():
            raise Violation(f"never forwarded: {missing}")
        known = known_by_world(inputs, self.ruleset)
        frontiers: dict[str, set[str]] = {}
        changes = repeats = 0
        for shard in range(self.partitions.frontiers):
            events, repeated = await self._events(shard)
            changes, repeats = changes + len(events), repeats + repeated
            frontiers |= replayed(events)
        names: dict[str, list[str]] = {}
        for name in inputs.ids():
            names.setdefault(world_of(name), []).append(name)
        for world, ids in names.items():
            await self._compare_world(ids, known.get(world) or Known({}, self.ruleset), frontiers)
        verdict = Verdict(
            inputs=sum(map(len, records)),
            acknowledged=len(acknowledged),
            changes=changes,
            repeats=repeats,
            rejected=len(await read_all(self.logs["rejected"], 0)),
        )
        return verdict, inputs

    async def _compare_world(self, ids: Sequence[str], known: Known, frontiers: Mapping[str, set[str]]) -> None:
        """Compare the state and the changes of one world with the definitions."""
        scopes = sorted({scope for document in known.corpus.values() for scope in self.ruleset.scopes(document)})
        for scope in scopes:
            if frontiers.get(scope, set()) != known.frontier(scope):
                raise Violation(f"{scope}: changes lead to {frontiers.get(scope)}, not {known.frontier(scope)}")
        await self._compare_answers(ids, scopes, known)

    async def _compare_answers(self, ids: Sequence[str], scopes: Sequence[str], known: Known) -> None:
        """Compare what the store answers about these ids and scopes with the definitions."""

        async def compare(snapshot: Snapshot) -> None:
            for name, walk in zip(ids, await snapshot.walk(ids), strict=True):
                if (walk is not None) != (name in known.corpus):
                    raise Violation(f"{name} is {'known' if walk is not None else 'unknown'}")
                if walk is not None and {entry.id for entry in walk.controlling} != known.controlling(name):
                    raise Violation(f"{name} is controlled by {walk.controlling}, not {known.controlling(name)}")
                if walk is not None and walk.is_active != (name in known.active):
                    raise Violation(f"{name} is {'in force' if walk.is_active else 'void'}")
            for name in scopes:
                scope = await snapshot.scope(name)
                members = await snapshot.with_pages(lambda scope=scope: active_members(scope, snapshot, ALL))  # type: ignore[misc]
                if {entry.id for entry in members} != known.frontier(name):
                    raise Violation(f"{name}: the frontier is {members}, not {known.frontier(name)}")

        queries = Queries(
            shards=ManyShards(self.views, self.partitions), index=PlainIndex(), ruleset=self.ruleset, generation="g"
        )
        await queries.read_consistently(None, compare)

    async def _events(self, shard: int) -> tuple[list[Emission], int]:
        """Return the changes in order, and how many were repeated. Raises `Violation` if they are not the fold's."""
        fold = FrontierFold(self.ruleset, self.partitions, shard=shard, signatures=self.signatures)
        events = events_of(fold, await read_all(self.logs["placements"], shard))
        last = repeats = 0
        for record in await read_all(self.logs["changes"], shard):
            if not self.signatures.is_genuine(CHANGES, shard, record):
                continue  # another program wrote it
            name = dict(record.headers)["ce_id"].decode()
            generation, named_shard, number = name.split("/")
            oseq = int(number)
            expected = events[oseq - 1] if oseq <= len(events) else None
            if int(named_shard) != shard:
                continue  # a copy from another partition
            if generation != self.generation or expected is None:
                raise Violation(f"change {name} has no cause in the log")
            if (record.key, record.value) != (expected.key, expected.value):
                raise Violation(f"change {name} is {record.value!r}, not {expected.value!r}")
            if oseq > last + 1:
                raise Violation(f"change {name} follows change {last}")
            repeats += oseq <= last
            last = max(last, oseq)
        if last != len(events):
            raise Violation(f"shard {shard} emitted {last} changes, not {len(events)}")
        return events, repeats


def known_by_world(inputs: Inputs, ruleset: Ruleset) -> dict[str, Known]:
    """Return what the definition says of each world of documents."""
    worlds: dict[str, dict[str, Document]] = {}
    for partition, end in enumerate(inputs.end()):
        for name, document in current_documents(inputs.statements(partition, end)).items():
            worlds.setdefault(world_of(name), {})[name] = document
    return {world: Known(corpus, ruleset) for world, corpus in worlds.items()}


def _require_acknowledged(acknowledged: Mapping[tuple[int, int], Message], records: Sequence[Sequence[Record]]) -> None:
    """Raise `Violation` if an acknowledged message is not at its offset."""
    for (partition, offset), message in acknowledged.items():
        record = records[partition][offset]
        if (record.key, record.value, record.headers) != (message.key, message.value, message.headers):
            raise Violation(f"{message} was acknowledged as record {offset} of partition {partition}, not {record}")

"""The judge of what workers leave behind: it reads only topics and store.

Promise: what publishers sent is given to the definitions; every change that was told is compared with an
uninterrupted fold of the log, byte for byte; what was acknowledged lies where it was acknowledged.
"""

import asyncio
import time
from collections.abc import Mapping

from msgspec import Struct

from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.core.rules import Ruleset
from stream_car.errors import Unavailable
from stream_car.ports import Emission, Message, Record, ShardId, SnapshotReader
from stream_car.processing.partitions import Partitions
from stream_car.processing.two_hop import FrontierFold, generation_of
from stream_car.queries.queries import Queries
from stream_car.queries.scopes import holding
from stream_car.queries.shards import ManyShards
from stream_car.queries.snapshot import Snapshot
from tests.simulation.two_hops.truth import Inputs, Reference, replayed
from tests.simulation.world import Violation
from tests.support.plain_index import PlainIndex


class Verdict(Struct, frozen=True, kw_only=True):
    """What was found to be right, by number."""

    inputs: int
    acknowledged: int
    changes: int
    repeats: int
    rejected: int


class Judge:
    """Looks at one installation."""

    def __init__(self, layout: Layout, ruleset: Ruleset, views: SnapshotReader, reader: Reader, sender: Sender) -> None:
        self.ruleset = ruleset
        self.parts = Partitions(intakes=layout.intakes, frontiers=layout.frontiers)
        self.views = views
        names = ("documents", "placements", "changes", "rejected")
        self.logs = {name: KafkaLog(reader, sender, layout.named(name)) for name in names}
        self.generation = generation_of(ruleset, self.parts)

    async def at_rest(self, timeout_s: float) -> None:
        """Returns when every shard stands at the end of its log, marks included, and stays there."""
        deadline = time.monotonic() + timeout_s
        seen: object = None
        while True:
            stands, ends = await self._standing()
            if stands == ends and seen == ends:
                return
            seen = ends
            if time.monotonic() > deadline:
                raise Violation(f"the shards stand at {stands}, not at {ends}")
            await asyncio.sleep(0.4)

    async def _standing(self) -> tuple[dict[ShardId, int], dict[ShardId, int]]:
        ends: dict[ShardId, int] = {}
        for q in range(self.parts.intakes):
            ends[ShardId("intake", q)] = (await self.logs["documents"].range(q))[1]
        for p in range(self.parts.frontiers):
            ends[ShardId("frontier", p)] = (await self.logs["placements"].range(p))[1]
        try:
            found = await self.views.peek({place: [] for place in ends})
        except Unavailable:
            return {}, ends
        return {place: told[0] for place, told in found.items()}, ends

    async def verdict(self, acknowledged: Mapping[tuple[int, int], Message]) -> Verdict:
        """Compare all there is with the definitions; `acknowledged` by partition and offset. Raises `Violation`."""
        records = [await self._all("documents", q) for q in range(self.parts.intakes)]
        for (q, offset), sent in acknowledged.items():
            found = records[q][offset]
            if (found.key, found.value, found.headers) != (sent.key, sent.value, sent.headers):
                raise Violation(f"{sent} was acknowledged as record {offset} of partition {q}, where {found} lies")
        inputs = Inputs(records, self.parts, self.ruleset)
        if left := inputs.unforwarded():
            raise Violation(f"never forwarded: {left}")
        known = inputs.known(inputs.end())
        told: dict[str, set[str]] = {}
        changes = repeats = 0
        for p in range(self.parts.frontiers):
            events, again = await self._events(p)
            changes, repeats = changes + len(events), repeats + again
            told |= replayed(events)
        scopes = sorted({scope for one in known.corpus.values() for scope in self.ruleset.scopes(one)})
        for scope in scopes:
            if told.get(scope, set()) != known.frontier(scope):
                raise Violation(f"{scope}: told {told.get(scope)}, not {known.frontier(scope)}")
        queries = Queries(
            shards=ManyShards(self.views, self.parts), index=PlainIndex(), ruleset=self.ruleset, generation="g"
        )
        ids = inputs.ids()

        async def look(values: Snapshot) -> None:
            for name, walk in zip(ids, await values.walk(ids), strict=True):
                if (walk is not None) != (name in known.corpus):
                    raise Violation(f"{name} is {'here' if walk is not None else 'not here'}")
                if walk is not None and {entry.id for entry in walk.controlling} != known.controlling(name):
                    raise Violation(f"{name} is controlled by {walk.controlling}, not {known.controlling(name)}")
                if walk is not None and walk.is_active != (name in known.active):
                    raise Violation(f"{name} is {'active' if walk.is_active else 'void'}")
            for scope in scopes:
                found = await values.scope(scope)
                held = await values.with_pages(lambda found=found: holding(found, values))  # type: ignore[misc]
                if {entry.id for entry in held} != known.frontier(scope):
                    raise Violation(f"in {scope} hold {held}")

        await queries.read_consistently(None, look)
        return Verdict(
            inputs=sum(map(len, records)),
            acknowledged=len(acknowledged),
            changes=changes,
            repeats=repeats,
            rejected=len(await self._all("rejected", 0)),
        )

    async def _all(self, topic: str, partition: int) -> list[Record]:
        found: list[Record] = []
        _, end = await self.logs[topic].range(partition)
        while len(found) < end:
            found += await self.logs[topic].fetch(partition, len(found), 1000)
        return found

    async def _events(self, p: int) -> tuple[list[Emission], int]:
        """The changes as first told, and how often one was repeated. Raises `Violation` if they are not the fold's."""
        reference = Reference(FrontierFold(self.ruleset, self.parts, shard=p), await self._all("placements", p))
        last = repeats = 0
        for record in await self._all("changes", p):
            name = dict(record.headers)["ce_id"].decode()
            generation, shard, number = name.split("/")
            oseq = int(number)
            expected = reference.event(oseq)
            if (generation, int(shard)) != (self.generation, p) or expected is None:
                raise Violation(f"change {name} has no cause in the log")
            if (record.key, record.value) != (expected.key, expected.value):
                raise Violation(f"change {name} says {record.value!r}, not {expected.value!r}")
            if oseq > last + 1:
                raise Violation(f"change {name} follows change {last}")
            repeats += oseq <= last
            last = max(last, oseq)
        reference.at(len(reference.records))
        if last != len(reference.events):
            raise Violation(f"shard {p} told {last} changes, not {len(reference.events)}")
        return reference.events, repeats

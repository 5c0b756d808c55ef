"""The text index of a query worker, fed from the documents that intake shards have accepted.

Promise: what is in the index is what intake decided: a record is fed once its shard has applied it, and only
if it is the one that stands. The index begins empty with every start, and answers are given when it has
caught up with all that was applied by then. Cost: about 40 us a document, and one read of the heads of all
intake shards every `LOOK_S`.
"""

import asyncio
from collections.abc import Sequence

from stream_car.core.documents import Document
from stream_car.core.intake import Held, held_key
from stream_car.core.rules import Ruleset
from stream_car.engine.hops import IntakeFold
from stream_car.engine.partitions import Partitions
from stream_car.engine.stored import decode_value
from stream_car.ports import AnchorIndex, Log, Place, Posting, Record, Views
from stream_car.runtime.bell import Bell

LOOK_S = 0.03
FEED_MAX = 500


class Feeder:
    """Keeps one index behind the intake shards, at a short distance."""

    def __init__(
        self, index: AnchorIndex, views: Views, documents: Log, ruleset: Ruleset, partitions: Partitions
    ) -> None:
        self.fed = [0] * partitions.intakes  # records of each partition that the index has
        self.bell = Bell()
        self._index = index
        self._views = views
        self._documents = documents
        self._anchor_types = ruleset.anchor_types()
        self._folds = [IntakeFold(ruleset, partitions, shard=q) for q in range(partitions.intakes)]

    async def applied(self) -> list[int]:
        """How many records each intake shard has applied."""
        places = [Place("intake", q) for q in range(len(self.fed))]
        found = await self._views.peek({place: [] for place in places})
        return [found[place][0] for place in places]

    async def catch_up(self) -> bool:
        """Feed what was applied until now; whether there was anything."""
        applied = await self.applied()
        behind = [q for q, upto in enumerate(applied) if self.fed[q] < upto]
        for q in behind:
            while self.fed[q] < applied[q]:
                most = min(FEED_MAX, applied[q] - self.fed[q])
                records = await self._documents.fetch(q, self.fed[q], most)
                if not records:
                    break
                await self._feed(q, records)
                await asyncio.sleep(0)
        if behind:
            self.bell.ring()
        return bool(behind)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self.catch_up()
            await asyncio.sleep(LOOK_S)

    async def _feed(self, q: int, records: Sequence[Record]) -> None:
        fold = self._folds[q]
        said = [(record, read) for record in records if (read := fold.read(record)).is_home]
        names = [read.reading.statement.id for _, read in said if read.reading.statement is not None]
        place = Place("intake", q)
        keys = [held_key(name) for name in dict.fromkeys(names)]
        _, raw = (await self._views.peek({place: keys}))[place]
        postings: dict[str, Posting | None] = {}
        scopes: set[str] = set()
        for record, read in said:
            statement = read.reading.statement
            if statement is None:
                continue
            key = held_key(statement.id)
            held = decode_value(key, raw.get(key))
            scopes.update(read.reading.scopes)
            if isinstance(held, Held) and held.offset == record.offset:
                postings[statement.id] = (
                    Posting(document=statement, scopes=held.scopes, anchor=statement.type in self._anchor_types)
                    if isinstance(statement, Document)
                    else None
                )
        self.fed[q] = records[-1].offset + 1
        kept = [one for one in postings.values() if one is not None]
        dropped = [name for name, one in postings.items() if one is None]
        await self._index.apply(kept, dropped, sum(self.fed), scopes)

"""The text index of a query worker, fed from the documents that intake shards have accepted.

Promise: what is in the index is what intake decided: a record is fed once its shard has applied it, and only
if it is the one that stands. An index that lies where the last one lay is gone on with; one that belongs to
another generation, or is ahead of the topic, is begun anew. State that other rules built is `Halted`
(`generation`). Cost: about 40 us a document, and one read of the heads of all intake shards every `LOOK_S`.
"""

import asyncio
from collections.abc import Sequence

from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.key_list import SqliteKeys
from stream_car.core.documents import Document, Statement
from stream_car.core.revisions import document_key
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import amended_scope, link_scope
from stream_car.core.stored import StoredDocument
from stream_car.core.timeline import scope_key
from stream_car.errors import Halted
from stream_car.ports import IndexedDocument, Log, Record, ShardId, SnapshotReader
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import GENERATION
from stream_car.processing.state import decode_value
from stream_car.processing.two_hop import IntakeFold
from stream_car.queries.shards import ShardMoved
from stream_car.subscriptions.broadcast import Broadcast

LOOK_S = 0.03
FEED_MAX = 500
SETTLE_S = 1.0


class Feeder:
    """Keeps one index, and the list of all keys, behind the intake shards at a short distance."""

    def __init__(
        self,
        index: TantivyIndex,
        keys: SqliteKeys,
        views: SnapshotReader,
        documents: Log,
        ruleset: Ruleset,
        partitions: Partitions,
    ) -> None:
        self.fed = [0] * partitions.intakes  # records of each partition that the index has
        self.is_ahead = False  # of shards that have lost their state and are on their way back
        self.bell = Broadcast()
        self._index = index
        self._keys = keys
        self._views = views
        self._documents = documents
        self._anchor_types = ruleset.anchor_types()
        self._folds = [IntakeFold(ruleset, partitions, shard=q) for q in range(partitions.intakes)]
        self._places = [ShardId("intake", q) for q in range(partitions.intakes)]
        self._is_wanted = asyncio.Event()
        self._begun = self._ended = 0  # looks

    async def begin(self) -> None:
        """Go on with the index that is there, or begin anew. Raises `Halted` (`generation`)."""
        await self.applied()
        total = await self._index.position()
        fed = self._keys.fed(total) if total else None
        if fed is not None and len(fed) == len(self.fed) and not await self._is_beyond_the_log(fed):
            self.fed = fed
            return
        self._index.reset()
        self._keys.reset()

    async def _is_beyond_the_log(self, fed: Sequence[int]) -> bool:
        ends = [(await self._documents.range(q))[1] for q in range(len(fed))]
        return any(map(int.__gt__, fed, ends))

    async def applied(self) -> list[int]:
        """How many records each intake shard has applied. Raises `Halted` where it went by other rules."""
        found = await self._views.peek({place: [GENERATION] for place in self._places})
        for fold, place in zip(self._folds, self._places, strict=True):
            known = found[place][1].get(GENERATION)
            if known is not None and known != fold.generation.encode():
                raise Halted(
                    "generation",
                    f"the state in Redis was built by other rules or for other partitions ({known.decode()}, not "
                    f"{fold.generation}); give this process the --rules, --prefix and --namespace of the workers",
                )
        return [found[place][0] for place in self._places]

    async def catch_up(self) -> bool:
        """Feed what was applied until now; whether there was anything. Raises `ShardMoved` where state was lost."""
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
            self.bell.notify()
        self.is_ahead = any(map(int.__lt__, applied, self.fed))
        if self.is_ahead:
            raise ShardMoved("an intake shard has lost its state and is on its way back; ask again")
        return bool(behind)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._is_wanted.clear()
            self._begun += 1
            try:
                await self.catch_up()
                self._ended = self._begun
            except ShardMoved:
                pass  # whoever waits to be settled waits on
            self.bell.notify()
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._is_wanted.wait()
            except TimeoutError:
                continue

    async def settle(self) -> None:
        """Returns when the index has what had been applied by now. Raises `ShardMoved` where that takes long."""
        wanted = self._begun + 1
        deadline = asyncio.get_running_loop().time() + SETTLE_S
        while self._ended < wanted:
            heard = self.bell.listen()
            self._is_wanted.set()
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                raise ShardMoved("the index is behind; ask again")
            await self.bell.wait(heard, left)

    async def _feed(self, q: int, records: Sequence[Record]) -> None:
        fold = self._folds[q]
        said = [(record, read) for record in records if (read := fold.read(record)).is_home]
        names = dict.fromkeys(read.decoded.statement.id for _, read in said if read.decoded.statement is not None)
        place = self._places[q]
        _, raw = (await self._views.peek({place: [document_key(name) for name in names]}))[place]
        postings: dict[str, IndexedDocument | None] = {}
        scopes: set[str] = set()
        for record, read in said:
            statement = read.decoded.statement
            if statement is None:
                continue
            key = document_key(statement.id)
            held = decode_value(key, raw.get(key))
            scopes.update(read.decoded.scopes)
            if isinstance(held, StoredDocument) and held.offset == record.offset:
                postings[statement.id] = (
                    IndexedDocument(document=statement, scopes=held.scopes, anchor=statement.type in self._anchor_types)
                    if isinstance(statement, Document)
                    else None
                )
        kept = [one for one in postings.values() if one is not None]
        dropped = [name for name, one in postings.items() if one is None]
        fed = [*self.fed[:q], records[-1].offset + 1, *self.fed[q + 1 :]]
        links = {link for _, read in said for link in _links(read.decoded.statement)}
        listed = [*map(document_key, names), *map(scope_key, scopes | links)]
        self._keys.add(listed, fed)  # first: the index must never be ahead of it
        await self._index.apply(kept, dropped, sum(fed), scopes)
        self.fed = fed


def _links(said: Statement | None) -> list[str]:
    """The scopes of those who void or amend by name that a statement may join."""
    if not isinstance(said, Document):
        return []
    voided = (*said.supersedes, *((said.id,) if said.superseded_by else ()))
    return [*map(link_scope, voided), *map(amended_scope, said.amends)]

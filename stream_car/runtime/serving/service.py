"""The service of a query worker: documents go to Kafka, answers come from the index and from Redis.

Promise: calls mean what they mean on the embedded engine. A publication is answered when Kafka has it on all
in-sync replicas and its intake shard has applied it; what Kafka has but nobody applied in `APPLIED_S` is
`Unavailable`: publish it again, repeats change nothing. Every answer is of one cut, or says that it is not.
Changes are told by the topic `changes`; this service does not tell them yet.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

import stream_car
from stream_car.api.messages import PackText, Progress, Rules, Said, Seen, Standing
from stream_car.api.messages import Waiting as Due
from stream_car.codec import decode
from stream_car.core.documents import Document
from stream_car.core.intake import Held, held_key
from stream_car.engine.answers import (
    After,
    Answer,
    Audit,
    Evidence,
    Explanation,
    Frontier,
    History,
    Published,
    Receipt,
    Rejected,
    Resolution,
    Told,
)
from stream_car.engine.fold import Future
from stream_car.engine.hops import IntakeFold
from stream_car.engine.notices import Selection
from stream_car.engine.patience import AT_ONCE, Waiting
from stream_car.engine.query import DEPTH, Queries
from stream_car.engine.reader import Reader
from stream_car.engine.scopes import Scopes
from stream_car.engine.sources import ManyShards, Source
from stream_car.engine.state import HEADER, Header
from stream_car.engine.stored import decode_value
from stream_car.errors import InvalidDocument, InvalidRequest, NotVisible, Unavailable
from stream_car.ports import AnchorIndex, Message, Place, Record, Views
from stream_car.runtime.serving.feeder import Feeder
from stream_car.runtime.worker.wiring import Works

APPLIED_S = 10.0
EXACT_S = 0.5  # how long an answer is read again before it is given with a reservation
PAUSE_S = 0.005

T = TypeVar("T")


class Sleeping:
    """Implements `ports.Patience` by the clock."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    async def wait(self) -> bool:
        """A few milliseconds later."""
        await asyncio.sleep(PAUSE_S)
        return time.monotonic() < self._deadline


class PatientQueries(Queries):
    """Questions to shards that move on their own: without other orders they are asked again for a while."""

    async def steadily(
        self,
        as_of: int | None,
        ask: Callable[[Reader], Awaitable[T]],
        waiting: Waiting = AT_ONCE,
        *,
        source: Callable[[], Source] | None = None,
    ) -> T:
        """As `Queries` does; what could not be seen in time is `NotVisible`."""
        patient = waiting if waiting.patience is not None else Waiting(waiting.after, Sleeping(EXACT_S))
        try:
            return await super().steadily(as_of, ask, patient, source=source)
        except InvalidRequest as refused:
            if refused.code in ("not_visible", "pending"):
                raise NotVisible(refused.code, str(refused)) from refused
            raise


class ServersService:
    """Implements `api.service.Service`. Use it as an asynchronous context manager."""

    def __init__(self, works: Works, index: AnchorIndex, views: Views) -> None:
        self.works = works
        self.index = index
        self.ruleset = works.plan.ruleset
        self.feeder = Feeder(index, views, works.log("documents"), self.ruleset, works.partitions)
        self.queries = PatientQueries(
            shards=ManyShards(views, works.partitions), index=index, ruleset=self.ruleset, generation=works.generation
        )
        self.scopes = Scopes(self.queries, journal=works.journal(), log=works.log("rejected"))
        self.is_ready = False
        self._views = views
        self._folds = [IntakeFold(self.ruleset, works.partitions, shard=q) for q in range(works.partitions.intakes)]
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "ServersService":
        self._tasks = [asyncio.create_task(self._feed())]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _feed(self) -> None:
        """Catch up, then keep up; a server that is away is waited for."""
        while True:
            try:
                while await self.feeder.catch_up():
                    pass
                self.is_ready = True
                await self.feeder.run()
            except Unavailable:
                await asyncio.sleep(PAUSE_S * 100)

    def end(self) -> None:
        """Nobody listens for long."""

    def _require_ready(self) -> None:
        if not self.is_ready:
            done, what = sum(self.feeder.fed), "documents are in the index so far; ask again when it has caught up"
            raise Unavailable(f"{done} {what}", "catching_up")

    async def rebuild(
        self,
        packs: Sequence[str] = (),
        texts: Sequence[PackText] = (),
        *,
        future: Future | None = None,
        dry_run: bool = False,
    ) -> Progress:
        """Not here: many workers share these rules."""
        raise InvalidRequest(
            "not_here",
            "workers over Kafka and Redis do not change their rules while they run; each starts with its own",
        )

    async def rebuilding(self) -> Progress:
        """None is ever begun here."""
        return Progress()

    async def require_ready(self) -> None:
        """Raises `Unavailable` until the index has caught up."""
        self._require_ready()
        await self.status()

    # Publishing

    async def publish(self, documents: Sequence[bytes]) -> Published:
        """Keep documents durably and wait until they are applied; a receipt for each, in order."""
        placed = [self._placed(value) for value in documents]
        batches: dict[int, list[int]] = {}
        for at, (partition, _) in enumerate(placed):
            batches.setdefault(partition, []).append(at)
        topic = self.works.layout.named("documents")
        lists = await asyncio.gather(
            *(
                self.works.sender.send(topic, partition, [placed[at][1] for at in ats])
                for partition, ats in batches.items()
            )
        )
        offsets = {
            at: offset
            for ats, found in zip(batches.values(), lists, strict=True)
            for at, offset in zip(ats, found, strict=True)
        }
        await self._applied({partition: max(offsets[at] for at in ats) for partition, ats in batches.items()})
        receipts = [
            await self._receipt(partition, offsets[at], message) for at, (partition, message) in enumerate(placed)
        ]
        return Published(receipts=tuple(receipts))

    def _placed(self, value: bytes) -> tuple[int, Message]:
        """The partition of a document's id; of one that shows none, the first."""
        try:
            name: str | None = decode(value).id
        except InvalidDocument as invalid:
            name = invalid.document_id
        if name is None:
            return 0, Message(value=value)
        return self.works.partitions.of_id(name), Message(value=value, key=name.encode())

    async def _applied(self, upto: Mapping[int, int]) -> None:
        """Returns when each partition's record is applied, and in the index. Raises `Unavailable`."""
        deadline = time.monotonic() + APPLIED_S
        while True:
            heard = self.feeder.bell.listen()
            if all(self.feeder.fed[q] > offset for q, offset in upto.items()):
                return
            left = deadline - time.monotonic()
            if left <= 0:
                raise Unavailable("Kafka has it, but no worker has applied it; is `stream-car worker` running?")
            await self.feeder.bell.wait(heard, left)

    async def _receipt(self, partition: int, offset: int, message: Message) -> Receipt:
        record = Record(offset=offset, append_time=0, value=message.value, key=message.key)
        reading = self._folds[partition].read(record).reading
        if isinstance(reading.said, InvalidDocument):
            invalid = reading.said
            return Receipt(
                offset=offset, outcome="rejected", id=invalid.document_id, code=invalid.code, reason=invalid.reason
            )
        said = reading.said
        assert said is not None
        held = await self._held(said.id)
        document = said if isinstance(said, Document) else None
        receipt = Receipt(
            offset=offset,
            outcome="duplicate",
            id=said.id,
            revision=said.revision,
            type=document.type if document is not None else None,
        )
        if held is None:
            return replace(receipt, outcome="nothing")
        if held.offset != offset:
            return replace(receipt, outcome="older" if held.revision > (said.revision or 0) else "duplicate")
        if document is None:
            return replace(receipt, outcome="retracted")
        lacking = self.ruleset.lacking(document) if not held.scopes else ()
        outcome = "pending" if held.waiting is not None else "accepted"
        return replace(receipt, outcome=outcome, scopes=len(held.scopes), lacking=lacking)

    async def _held(self, name: str) -> Held | None:
        place, key = Place("intake", self.works.partitions.of_id(name)), held_key(name)
        _, raw = (await self._views.peek({place: [key]}))[place]
        found = decode_value(key, raw.get(key))
        return found if isinstance(found, Held) else None

    # Questions

    async def _waiting(self, after: Sequence[Seen], timeout_ms: int) -> Waiting:
        """What an answer must have seen; the index has it when this returns. Raises `NotVisible`."""
        self._require_ready()
        if not after:
            return AT_ONCE
        seen = [After(id=one.id, revision=one.revision) for one in after]
        waiting = Waiting(seen, Sleeping(timeout_ms / 1000))

        async def look(reader: Reader) -> dict[int, int]:
            found: dict[int, int] = {}
            for one in seen:
                held = await reader.held(one.id)
                home = self.works.partitions.of_id(one.id)
                found[home] = max(found.get(home, 0), held.offset if held is not None else 0)
            return found

        await self._applied(await self.queries.steadily(None, look, waiting))
        return Waiting(seen, Sleeping(timeout_ms / 1000))

    async def query(
        self,
        text: str,
        *,
        k: int = 5,
        depth: int = DEPTH,
        as_of: int | None = None,
        budget: int | None = None,
        after: Sequence[Seen] = (),
        timeout_ms: int = 5000,
    ) -> Answer:
        """The documents in force for a question, best first, each with the path that leads to it."""
        waiting = await self._waiting(after, timeout_ms)
        return await self.queries.query(text, k=k, depth=depth, as_of=as_of, budget=budget, waiting=waiting)

    async def relevance(self, text: str, k: int = 5) -> tuple[Evidence, ...]:
        """What plain search would answer, void or not."""
        self._require_ready()
        return await self.queries.relevance(text, k)

    async def resolve(
        self, names: Sequence[str], *, as_of: int | None = None, after: Sequence[Seen] = (), timeout_ms: int = 5000
    ) -> tuple[Resolution, ...]:
        """What controls these now: document ids, chunk ids or records."""
        waiting = await self._waiting(after, timeout_ms)
        return await self.queries.resolve(names, as_of=as_of, waiting=waiting)

    async def check(
        self,
        ids: Sequence[str],
        *,
        question: str | None = None,
        depth: int = 20,
        as_of: int | None = None,
        after: Sequence[Seen] = (),
        timeout_ms: int = 5000,
    ) -> Audit:
        """Whether a retrieved set is safe by Theorem 4, and what would repair it."""
        waiting = await self._waiting(after, timeout_ms)
        return await self.queries.check(ids, question=question, depth=depth, as_of=as_of, waiting=waiting)

    async def frontier(self, parts: Mapping[str, str], *, as_of: int | None = None) -> tuple[Frontier, ...]:
        """The active members of every scope that has these `key=value` pairs."""
        self._require_ready()
        return await self.scopes.frontier(parts, as_of=as_of)

    async def history(self, parts: Mapping[str, str]) -> tuple[History, ...]:
        """The timeline of every scope that has these pairs."""
        self._require_ready()
        return await self.scopes.history(parts)

    async def explain(self, name: str, *, as_of: int | None = None) -> Explanation:
        """Why a document is or is not active, and what controls it."""
        self._require_ready()
        return await self.scopes.explain(name, as_of=as_of)

    async def changes(
        self, parts: Mapping[str, str] | None = None, *, after: int = 0, limit: int = 1000
    ) -> tuple[Told, ...]:
        """Not here: one number cannot say a place in several shards."""
        raise self._not_told()

    async def subscribe(
        self, selection: Selection, *, after: str | None = None, snapshot: bool | None = None
    ) -> AsyncIterator[Sequence[Said]]:
        """Not here yet."""
        raise self._not_told()

    def _not_told(self) -> InvalidRequest:
        topic = self.works.layout.named("changes")
        return InvalidRequest("not_here", f"changes are told by the Kafka topic {topic}; read it with a consumer")

    async def rejected(self, *, after: int = 0, limit: int = 100) -> tuple[Rejected, ...]:
        """Input that was refused, with its bytes, oldest first; `offset` is its place among the refused."""
        log = self.works.log("rejected")
        first, _ = await log.range(0)
        records = await log.fetch(0, max(first, after), limit)
        return tuple(_refused(record) for record in records)

    async def pending(self) -> tuple[Due, ...]:
        """Documents that wait for their time, the next one due first."""
        return tuple(Due(id=name, revision=revision, time=due) for name, revision, due in await self.scopes.pending())

    async def rules(self) -> Rules:
        """The rules in force."""
        return Rules(generation=self.works.generation, domains=self.ruleset.domains)

    async def status(self) -> Standing:
        """Where the service stands: what all intake shards together have applied. Raises `Unavailable`."""
        self._require_ready()
        places = [Place("intake", q) for q in range(self.works.partitions.intakes)]
        found = await self._views.peek({place: [HEADER] for place in places})
        headers = [decode_value(HEADER, found[place][1].get(HEADER)) for place in places]
        known = [header for header in headers if isinstance(header, Header)]
        counts: dict[str, int] = {}
        for header in known:
            for name, count in header.counts.items():
                counts[name] = counts.get(name, 0) + count
        return Standing(
            version=stream_car.__version__,
            generation=self.works.generation,
            next_offset=sum(found[place][0] for place in places),
            cursor=f"{self.works.generation}:0",
            changes_from=1,
            documents=sum(header.documents for header in known),
            waiting=sum(header.waiting for header in known),
            outcomes=dict(sorted(counts.items())),
        )


def _refused(record: Record) -> Rejected:
    said = {name: value.decode() for name, value in record.headers if name.startswith("stream-car-")}
    return Rejected(
        offset=record.offset,
        code=said.get("stream-car-code", ""),
        reason=said.get("stream-car-reason", ""),
        append_time=record.append_time,
        id=said.get("stream-car-id") or None,
        value=record.value or b"",
        oseq=record.offset + 1,
    )

"""What every back end shares: each request is answered here once, over the queries of the back end.

Promise: a back end decides only how a question runs, how it waits until a revision is visible, and how documents are
published. Cost: about 2 us per request.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from stream_car.api import requests as r
from stream_car.api.replay_plan import ReplayPlan
from stream_car.codec import DEFAULT_LIMITS
from stream_car.codec.times import from_micros, to_micros
from stream_car.core.rules import Ruleset
from stream_car.errors import InvalidRequest
from stream_car.feeds import guess_format
from stream_car.lockfiles.formats import read_dependencies
from stream_car.ports import Message, Record, ShardId
from stream_car.processing.quarantine import Quarantine, QuarantinedRecord
from stream_car.processing.receipts import Receipt
from stream_car.processing.replay import OWN_HEADERS
from stream_car.processing.strict import require_strict
from stream_car.queries import answers as a
from stream_car.queries.affected import PackageQuestion, parse_packages
from stream_car.queries.findings import PackageFindings
from stream_car.queries.limits import parse_pairs
from stream_car.queries.listed_kinds import ListedKinds
from stream_car.queries.queries import Queries
from stream_car.queries.read_options import DEFAULT_OPTIONS, MinRevision, ReadOptions
from stream_car.queries.scope_values import split_pairs
from stream_car.queries.scopes import ScopeQueries
from stream_car.subscriptions.events import Event, Selection
from stream_car.subscriptions.hub import Subscriber, SubscriptionHub

LISTED_MAX = 10_000  # packages of the files of one request
AT_ONCE_MAX = 50  # packages that are parsed while others wait

A = TypeVar("A")
T = TypeVar("T")
S = TypeVar("S", bound="BaseService")
Q = TypeVar("Q", bound=Struct)
_METHODS: dict[type[Struct], str] = {}


class View(Struct, frozen=True):
    """What a question reads, and how."""

    queries: Queries
    scopes: ScopeQueries
    options: ReadOptions = DEFAULT_OPTIONS


Question = Callable[[View], Awaitable[T]]


def answers(kind: type[r.Request[A]]) -> Callable[[Callable[[S, Q], Awaitable[A]]], Callable[[S, Q], Awaitable[A]]]:
    """Register a method as the one that answers a type of request."""

    def register(method: Callable[[S, Q], Awaitable[A]]) -> Callable[[S, Q], Awaitable[A]]:
        _METHODS[kind] = method.__name__
        return method

    return register


class BaseService(ABC):
    """Implements `Service`."""

    hub: SubscriptionHub

    async def call(self, request: r.Request[A]) -> A:
        handler: Callable[[r.Request[A]], Awaitable[A]] = getattr(self, _METHODS[type(request)])
        return await handler(request)

    # What back ends differ in

    @abstractmethod
    async def read(
        self,
        question: Question[T],
        *,
        min_revisions: Sequence[MinRevision] = (),
        timeout_ms: int = 0,
    ) -> T:
        """Run a question once these revisions are visible."""

    async def compute(self, work: Callable[[], T]) -> T:
        """Do work that takes long and needs nothing of this service. Many callers must not wait for it."""
        return work()

    @property
    @abstractmethod
    def ruleset(self) -> Ruleset:
        """The rules in force."""

    @property
    @abstractmethod
    def generation(self) -> str:
        """The name of the rules and the format that the state was built with."""

    @abstractmethod
    async def require_ready(self) -> str:
        """Raise `StreamCarError` unless it publishes and answers. Return what an operator should look at."""

    @abstractmethod
    async def write(self, messages: Sequence[Message], client: str | None = None) -> Sequence[Receipt]:
        """Store messages durably and apply them, and return their receipts in order.

        A back end may limit what it keeps of the rejected input of a `client`.
        """

    @abstractmethod
    async def publish_feed(self, request: r.Publish) -> a.Published:
        """Publish the contents of files of a publisher's own format."""

    @abstractmethod
    async def plan_replay(self, corrected: Mapping[int, bytes], offsets: Collection[int]) -> ReplayPlan:
        """Return what to send of rejected input. Raises `InvalidRequest` (`offset`) for input that was not rejected."""

    @answers(r.Rebuild)
    @abstractmethod
    async def rebuild(self, request: r.Rebuild) -> a.RebuildStatus: ...

    @answers(r.GetRebuildStatus)
    @abstractmethod
    async def rebuild_status(self, request: r.GetRebuildStatus) -> a.RebuildStatus: ...

    @answers(r.GetStatus)
    @abstractmethod
    async def status(self, request: r.GetStatus) -> a.Status: ...

    @answers(r.GetRejected)
    @abstractmethod
    async def rejected(self, request: r.GetRejected) -> tuple[a.Rejected, ...]: ...

    @abstractmethod
    async def quarantines(self) -> Mapping[ShardId, Quarantine]:
        """Return what each shard has set aside."""

    @abstractmethod
    async def logged_record(self, shard_id: ShardId, offset: int) -> Record:
        """Return a record of the log that a shard reads."""

    @abstractmethod
    async def require_droppable(self, shard_id: ShardId) -> None:
        """Raise an error if nothing can be dropped from the quarantine of a shard now."""

    @abstractmethod
    async def drop_from_quarantine(self, shard_id: ShardId, offset: int) -> None:
        """Drop a record from the quarantine of a shard."""

    # What they share

    @answers(r.GetQuarantine)
    async def quarantine(self, request: r.GetQuarantine) -> tuple[a.Quarantined, ...]:
        quarantines = await self.quarantines()
        return tuple(_listed(shard, record) for shard, of_shard in quarantines.items() for record in of_shard.records)

    async def quarantined_count(self) -> int:
        """Return how many records are set aside now."""
        return sum(len(quarantine.records) for quarantine in (await self.quarantines()).values())

    @answers(r.GetQuarantined)
    async def quarantined(self, request: r.GetQuarantined) -> a.Quarantined:
        shard_id, item = await self._quarantined(request.name)
        record = await self.logged_record(shard_id, item.offset)
        return replace(item, content=a.text_or_base64(record.value) if record.value is not None else None)

    @answers(r.RetryQuarantined)
    async def retry_quarantined(self, request: r.RetryQuarantined) -> Receipt:
        shard_id, item = await self._quarantined(request.name)
        if shard_id.hop != "intake":
            reason = "A placement cannot be sent again. Run a release that applies it, and drop the state of its shard."
            raise InvalidRequest("name", reason)
        await self.require_droppable(shard_id)  # or the record would be sent again at every try
        record = await self.logged_record(shard_id, item.offset)
        headers = tuple(header for header in record.headers if not header[0].startswith(OWN_HEADERS))
        [receipt] = await self.write([Message(value=record.value, key=record.key, headers=headers)])
        await self.drop_from_quarantine(shard_id, item.offset)
        return receipt

    @answers(r.DropQuarantined)
    async def drop_quarantined(self, request: r.DropQuarantined) -> a.Quarantined:
        shard_id, item = await self._quarantined(request.name)
        await self.drop_from_quarantine(shard_id, item.offset)
        return item

    async def _quarantined(self, name: str) -> tuple[ShardId, a.Quarantined]:
        """Return a record in quarantine. Raises `InvalidRequest` (`name`) if there is none of this name."""
        for item in await self.quarantine(r.GetQuarantine()):
            if item.name == name:
                return ShardId(item.hop, item.shard), item
        raise InvalidRequest("name", f"No record {name} is in quarantine. `quarantine` lists what is.")

    @answers(r.Publish)
    async def publish(self, request: r.Publish) -> a.Published:
        if request.format:
            return await self.publish_feed(request)
        if request.strict:
            require_strict(request.documents, self.ruleset)
        messages = [Message(value=value) for value in request.documents]
        published = a.Published.of(await self.write(messages, request.client))
        return _with_hint(request.documents, published) if "rejected" in published.outcomes else published

    @answers(r.Replay)
    async def replay(self, request: r.Replay) -> tuple[a.Replayed, ...]:
        corrected = {correction.offset: correction.content for correction in request.corrected}
        plan = await self.plan_replay(corrected, request.offsets)
        if request.dry_run or not plan.messages:
            return plan.report({})
        receipts = await self.write(list(plan.messages.values()))
        return plan.report(dict(zip(plan.messages, receipts, strict=True)))

    @answers(r.Query)
    async def query(self, request: r.Query) -> a.Answer:
        as_of, scope = _micros(request.as_of), _single_values(request.scope)
        return await self.read(
            lambda view: view.queries.query(
                request.text,
                k=request.k,
                depth=request.depth,
                as_of=as_of,
                budget=request.budget,
                scope=scope,
                options=view.options.including(request.include),
            ),
            min_revisions=request.min_revisions,
            timeout_ms=request.timeout_ms,
        )

    @answers(r.Search)
    async def search(self, request: r.Search) -> tuple[a.Evidence, ...]:
        scope = _single_values(request.scope)
        return await self.read(
            lambda view: view.queries.search(
                request.text, request.k, scope=scope, options=view.options.including(request.include)
            ),
        )

    @answers(r.Resolve)
    async def resolve(self, request: r.Resolve) -> tuple[a.Resolution, ...]:
        as_of = _micros(request.as_of)
        return await self.read(
            lambda view: view.queries.resolve(
                request.names, as_of=as_of, options=view.options.including(request.include)
            ),
            min_revisions=request.min_revisions,
            timeout_ms=request.timeout_ms,
        )

    @answers(r.GetDocuments)
    async def documents(self, request: r.GetDocuments) -> tuple[a.Lookup, ...]:
        return await self.read(
            lambda view: view.scopes.documents(request.names, options=view.options),
            min_revisions=request.min_revisions,
            timeout_ms=request.timeout_ms,
        )

    @answers(r.GetAffected)
    async def affected(self, request: r.GetAffected) -> tuple[PackageFindings, ...]:
        if request.files or len(request.packages) > AT_ONCE_MAX:
            question = await self.compute(lambda: _package_question(request))
        else:
            question = _package_question(request)
        as_of = _micros(request.as_of)
        return await self.read(
            lambda view: view.queries.affected(question, as_of=as_of, options=view.options),
            min_revisions=request.min_revisions,
            timeout_ms=request.timeout_ms,
        )

    @answers(r.Check)
    async def check(self, request: r.Check) -> a.Audit:
        as_of = _micros(request.as_of)
        return await self.read(
            lambda view: view.queries.check(
                request.ids,
                question=request.question,
                depth=request.depth,
                as_of=as_of,
                options=view.options,
            ),
            min_revisions=request.min_revisions,
            timeout_ms=request.timeout_ms,
        )

    @answers(r.GetFrontier)
    async def frontier(self, request: r.GetFrontier) -> tuple[a.Frontier, ...]:
        pairs = parse_pairs(request.scope)
        if pairs is None:
            return ()
        as_of, kinds = _micros(request.as_of), self._kinds(request.types, request.states)
        return await self.read(
            lambda view: view.scopes.frontier(
                pairs,
                as_of=as_of,
                kinds=kinds,
                after=request.after,
                limit=request.limit,
                options=view.options.including(request.include),
            )
        )

    @answers(r.GetHistory)
    async def history(self, request: r.GetHistory) -> tuple[a.History, ...]:
        pairs = parse_pairs(request.scope)
        if pairs is None:
            return ()
        kinds = self._kinds(request.types, request.states)
        return await self.read(
            lambda view: view.scopes.history(
                pairs, kinds=kinds, after=request.after, limit=request.limit, options=view.options
            )
        )

    @answers(r.GetChanges)
    async def changes(self, request: r.GetChanges) -> tuple[a.Change, ...]:
        kinds = self._kinds(request.types, request.states, only=request.only, material=request.material)
        return await self.read(
            lambda view: view.scopes.changes(
                split_pairs(request.scope),
                kinds=kinds,
                after=request.after,
                since=_micros(request.since),
                limit=request.limit,
                options=view.options,
            )
        )

    def _kinds(
        self, types: Sequence[str], states: Sequence[str], *, only: Sequence[str] = (), material: bool = False
    ) -> ListedKinds:
        return ListedKinds.of(self.ruleset, types=types, states=states, only=only, material=material)

    @answers(r.Explain)
    async def explain(self, request: r.Explain) -> a.Explanation:
        as_of = _micros(request.as_of)
        return await self.read(
            lambda view: view.scopes.explain(request.name, as_of=as_of, options=view.options.including(request.include))
        )

    @answers(r.GetPending)
    async def pending(self, request: r.GetPending) -> tuple[a.PendingDocument, ...]:
        return await self.read(lambda view: view.scopes.pending(after=request.after, limit=request.limit))

    @answers(r.GetRules)
    async def rules(self, request: r.GetRules) -> a.Rules:
        return a.Rules(generation=self.generation, packs=self.ruleset.packs)

    async def subscribe(self, request: r.Subscribe, client: str = "") -> AsyncIterator[Sequence[Event]]:
        return (await self.open_subscription(request, client)).batches()

    async def open_subscription(self, request: r.Subscribe, client: str = "") -> Subscriber:
        """Let a subscriber in. Raises as `subscribe` does."""
        selection = Selection(
            view=request.view,
            ids=frozenset(request.ids),
            types=frozenset(request.types),
            rules=frozenset(request.rules),
            scope=split_pairs(request.scope),
            only=frozenset(request.only),
            material=request.view == "record" if request.material is None else request.material,
            since=_micros(request.since),
            attributes=bool(request.include),
        )
        return await self.hub.subscribe(selection, request.after, request.snapshot, client)


def _single_values(scope: Sequence[str]) -> dict[str, str]:
    """Return the pairs of a scope. Raises `InvalidRequest` (`scope`) if a key has two values."""
    pairs = parse_pairs(scope) if scope else {}
    if pairs is None:
        raise InvalidRequest("scope", "One key cannot have two values. Send one request for each value.")
    return pairs


def _package_question(request: r.GetAffected) -> PackageQuestion:
    """Return what is asked. Raises `InvalidRequest` (`packages`, `files`, `product`)."""
    listed = read_dependencies(request.files)
    if len(listed.packages) > LISTED_MAX:
        reason = f"The files list {len(listed.packages):,} packages; send at most {LISTED_MAX:,} at a time."
        raise InvalidRequest("files", reason)
    product = request.product or listed.product
    parse_packages([product] if product else [], field="product")
    packages = (*parse_packages(request.packages), *parse_packages(listed.packages, field="files"))
    return PackageQuestion(
        packages=tuple({package.text: package for package in packages}.values()),
        product=product,
        vex_authors=request.vex_authors,
        all=request.all,
    )


def _listed(shard_id: ShardId, record: QuarantinedRecord) -> a.Quarantined:
    hop, shard = shard_id
    return a.Quarantined(
        name=f"{hop}:{shard}:{record.offset}",
        hop=hop,
        shard=shard,
        offset=record.offset,
        append_time=from_micros(record.append_time),
        error=record.error,
        id=record.id,
        scopes=record.scopes,
    )


def _with_hint(documents: Sequence[bytes], published: a.Published) -> a.Published:
    """Return receipts of which the first rejected one says so if its document looks like a publisher's own format."""
    receipts = published.receipts
    at = next(at for at, receipt in enumerate(receipts) if receipt.outcome == "rejected")
    guess = guess_format(documents[at]) if len(documents[at]) <= DEFAULT_LIMITS.document else None
    if guess is None:
        return published
    cure = f"publish its file with `stream-car publish --format {guess.name} FILE`"
    hint = f"The document may be in the format {guess.name}: {guess.about}. If so, {cure}."
    hinted = replace(receipts[at], reason=f"{receipts[at].reason} {hint}")
    return replace(published, receipts=(*receipts[:at], hinted, *receipts[at + 1 :]))


def _micros(time: datetime | None) -> int | None:
    return to_micros(time) if time is not None else None

"""The asynchronous client: `stream_car.connect_async(url)`.

Promise: the synchronous client awaited; see there. Belongs to one event loop.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import httpx

from stream_car.api import messages as m
from stream_car.client import operations, subscription, transport
from stream_car.client.operations import Parts, Seen
from stream_car.client.publishing import publish
from stream_car.client.retries import Ask, Conversation, Heard, Lost, Patience, Plan, patient
from stream_car.codec import Publishables
from stream_car.core.documents import Retraction
from stream_car.processing.receipts import Receipt
from stream_car.queries import answers as a
from stream_car.queries.limits import DEPTH
from stream_car.subscriptions.events import Event

T = TypeVar("T")


class AsyncClient:
    """A service at an address. Use it as a context manager, or `close` it.

    Calls that take `min_revisions` are answered only when these revisions are visible, else `NotVisible`.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout_s: float = transport.TIMEOUT_S, retries: int = 4):
        address = transport.address(url, token)
        self.url = address.url
        self._patience = Patience(retries=retries)
        self._http = httpx.AsyncClient(
            base_url=address.url, headers=address.headers, timeout=timeout_s, trust_env=not address.is_near
        )

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let the connections go; again is harmless."""
        await self._http.aclose()

    async def publish(self, documents: Publishables) -> a.Published:
        """Keep documents durably and apply them; a receipt for each, in order. One alone, or any number in batches.

        After a connection broke, a receipt may say `duplicate` of a document that had arrived just before.
        """
        return await self._carried_out(publish(documents))

    async def retract(self, name: str, revision: int | None = None) -> Receipt:
        """Say that a document should never have been said: its revision, or the one now stored."""
        return (await self.publish([Retraction(id=name, revision=revision)])).receipts[0]

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
    ) -> a.Answer:
        """The documents in force for a question, best first, each with the path that leads to it.

        Once it has read `budget` keys it looks at no further anchor; the certificate says what was left out.
        """
        return await self._carried_out(operations.query(text, k, depth, as_of, budget, after, timeout_ms))

    async def relevance(self, text: str, k: int = 5) -> tuple[a.Evidence, ...]:
        """What plain search would answer, void or not."""
        return await self._carried_out(operations.relevance(text, k))

    async def resolve(
        self, names: Sequence[str], *, as_of: int | None = None, after: Sequence[Seen] = (), timeout_ms: int = 5000
    ) -> tuple[a.Resolution, ...]:
        """What controls these now: document ids, chunk ids (`doc#chunk`) or records."""
        return await self._carried_out(operations.resolve(names, as_of, after, timeout_ms))

    async def check(
        self,
        ids: Sequence[str],
        *,
        question: str | None = None,
        depth: int = 20,
        as_of: int | None = None,
        after: Sequence[Seen] = (),
        timeout_ms: int = 5000,
    ) -> a.Audit:
        """Whether a retrieved set is safe by Theorem 4, and what would repair it."""
        return await self._carried_out(operations.check(ids, question, depth, as_of, after, timeout_ms))

    async def frontier(self, parts: Parts, *, as_of: int | None = None) -> tuple[a.Frontier, ...]:
        """The active members of every scope that has these `key=value` pairs."""
        return await self._carried_out(operations.frontier(parts, as_of))

    async def history(self, parts: Parts) -> tuple[a.History, ...]:
        """The timeline of every scope that has these pairs."""
        return await self._carried_out(operations.history(parts))

    async def changes(
        self, parts: Parts | None = None, *, after: int = 0, limit: int = 1000, behind: str = ""
    ) -> tuple[a.Told, ...]:
        """Frontier changes in the order in which they happened, from the one after `min_revisions` on.

        Where many shards tell them, one shard after the other; `behind` is the position of a change to go on from.
        """
        return await self._carried_out(operations.changes(parts, after, limit, behind))

    async def explain(self, name: str, *, as_of: int | None = None) -> a.Explanation:
        """Why a document is or is not active, and what controls it."""
        return await self._carried_out(operations.explain(name, as_of))

    async def rejected(self, *, after: int = 0, limit: int = 100) -> tuple[a.Rejected, ...]:
        """Input that was refused, with its bytes, oldest first."""
        return await self._carried_out(operations.rejected(after, limit))

    async def replay(
        self, mended: Mapping[int, bytes] | None = None, *, only: Collection[int] = (), trial: bool = False
    ) -> tuple[a.Replayed, ...]:
        """Send refused input again, each at most once: as it came, or with mended bytes by offset.

        Without `mended` or `only` all refused input is meant. What would be refused again is not sent, and
        neither is anything in a `trial`.
        """
        return await self._carried_out(operations.replay(mended or {}, only, trial=trial))

    async def rebuild(
        self,
        packs: Sequence[str | Path] = (),
        *,
        future: Literal["wait", "apply"] | None = None,
        dry_run: bool = False,
    ) -> m.Progress:
        """Begin to build under other rules: shipped packs by name, others as files, or those of now read again.

        It goes on in the service, which needs a token for that; see `rebuilding`.
        """
        return await self._carried_out(operations.rebuild(packs, future, dry_run=dry_run))

    async def rebuilding(self) -> m.Progress:
        """How far a rebuild is, or how the last one ended."""
        return await self._carried_out(operations.rebuilding())

    async def pending(self) -> tuple[m.Waiting, ...]:
        """Documents that wait for their time, the next one due first."""
        return await self._carried_out(operations.pending())

    async def rules(self) -> m.Rules:
        """The rules in force."""
        return await self._carried_out(operations.rules())

    async def status(self) -> m.Standing:
        """Where the service stands."""
        return await self._carried_out(operations.status())

    def subscribe(
        self,
        *,
        view: Literal["document", "scope"] = "document",
        ids: Sequence[str] = (),
        types: Sequence[str] = (),
        domains: Sequence[str] = (),
        parts: Parts | None = None,
        snapshot: bool | None = None,
        after: str | None = None,
        cursor_file: Path | str | None = None,
    ) -> "AsyncSubscription":
        """What is in force now and then every change of it, for ever: iterate over it.

        From a cursor on (`min_revisions`, or that of `cursor_file`) only changes. See `AsyncSubscription`.
        """
        place = subscription.Place(after, Path(cursor_file) if cursor_file is not None else None)
        starts_now = snapshot is False and place.cursor is None
        ask = operations.subscription(view, ids, types, domains, parts, None if starts_now else snapshot)
        state = subscription.Following(ask, view, place, self._patience, self.url)
        return AsyncSubscription(self._http, state, self.status if starts_now else None)

    async def _carried_out(self, plan: Plan[T]) -> T:
        return await self._converse(patient(plan, self._patience, self.url))

    async def _converse(self, conversation: Conversation[T]) -> T:
        reply: Heard | Lost | None = None
        while True:
            try:
                step = conversation.send(reply)
            except StopIteration as stop:
                result: T = stop.value
                return result
            if isinstance(step, Ask):
                reply = await self._reply(step)
            else:
                await asyncio.sleep(step.seconds)
                reply = None

    async def _reply(self, ask: Ask) -> Heard | Lost:
        try:
            response = await self._http.request(
                ask.method, ask.path, params=ask.parameters, content=ask.body, headers=transport.head(ask)
            )
        except httpx.TransportError as error:
            return transport.lost(error)
        return transport.heard(response)


class AsyncSubscription:
    """Events for ever, over any number of connections; iterate once. See `Subscription`.

    Without a snapshot it begins where the service stands when it is entered, or first asked for an event.
    """

    def __init__(
        self,
        http: httpx.AsyncClient,
        state: subscription.Following,
        where: Callable[[], Awaitable[m.Standing]] | None = None,
    ) -> None:
        self._http = http
        self._following = state
        self._where = where
        self._ended: Heard | Lost | None = None
        self._stream = self._streamed()

    @property
    def cursor(self) -> str | None:
        """Behind the last event that was dealt with."""
        return self._following.place.cursor

    def __aiter__(self) -> "AsyncSubscription":
        return self

    async def __anext__(self) -> Event:
        self._following.settle()
        return await anext(self._stream)

    async def __aenter__(self) -> "AsyncSubscription":
        await self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def keep(self) -> None:
        """The last event has been dealt with: move the cursor and its file."""
        self._following.settle()
        self._following.place.save()

    async def close(self) -> None:
        """Stop listening. The event that was handed out last counts as not dealt with, unless `keep` said so."""
        await self._stream.aclose()
        self._following.place.save()

    async def _begin(self) -> None:
        if self._where is not None:
            self._following.place.cursor, self._where = (await self._where()).cursor, None

    async def _streamed(self) -> AsyncGenerator[Event, None]:
        await self._begin()
        while True:
            self._ended = None
            async for said in self._connection():
                yield said
            await asyncio.sleep(self._following.pause(self._ended))

    async def _connection(self) -> AsyncGenerator[Event, None]:
        """The events of one connection; why it ended is noted."""
        state = self._following
        try:
            async with self._http.stream(
                "GET", state.path, params=state.parameters, headers=state.headers, timeout=transport.STREAM_TIMEOUT
            ) as response:
                if response.status_code != httpx.codes.OK:
                    await response.aread()
                    self._ended = transport.heard(response)
                    return
                state.opened()
                async for chunk in response.aiter_bytes():
                    for said in state.taken(chunk):
                        yield said
                    state.place.save()
        except httpx.TransportError as error:
            self._ended = transport.lost(error)

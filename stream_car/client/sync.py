"""The synchronous client: `stream_car.connect(url)`.

Promise: the calls, values and errors of `stream_car.open`; see `exchange` for what is sent again. May be used
from several threads. Cost over the embedded engine: about a millisecond a call.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from pathlib import Path
from time import sleep
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


class Client:
    """A service at an address. Use it as a context manager, or `close` it.

    Calls that take `min_revisions` are answered only when these revisions are visible, else `NotVisible`.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout_s: float = transport.TIMEOUT_S, retries: int = 4):
        address = transport.address(url, token)
        self.url = address.url
        self._patience = Patience(retries=retries)
        self._http = httpx.Client(
            base_url=address.url, headers=address.headers, timeout=timeout_s, trust_env=not address.is_near
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the connections go; again is harmless."""
        self._http.close()

    def publish(self, documents: Publishables) -> a.Published:
        """Keep documents durably and apply them; a receipt for each, in order. One alone, or any number in batches.

        After a connection broke, a receipt may say `duplicate` of a document that had arrived just before.
        """
        return self._carried_out(publish(documents))

    def retract(self, name: str, revision: int | None = None) -> Receipt:
        """Say that a document should never have been said: its revision, or the one now stored."""
        return self.publish([Retraction(id=name, revision=revision)]).receipts[0]

    def query(
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
        return self._carried_out(operations.query(text, k, depth, as_of, budget, after, timeout_ms))

    def relevance(self, text: str, k: int = 5) -> tuple[a.Evidence, ...]:
        """What plain search would answer, void or not."""
        return self._carried_out(operations.relevance(text, k))

    def resolve(
        self, names: Sequence[str], *, as_of: int | None = None, after: Sequence[Seen] = (), timeout_ms: int = 5000
    ) -> tuple[a.Resolution, ...]:
        """What controls these now: document ids, chunk ids (`doc#chunk`) or records."""
        return self._carried_out(operations.resolve(names, as_of, after, timeout_ms))

    def check(
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
        return self._carried_out(operations.check(ids, question, depth, as_of, after, timeout_ms))

    def frontier(self, parts: Parts, *, as_of: int | None = None) -> tuple[a.Frontier, ...]:
        """The active members of every scope that has these `key=value` pairs."""
        return self._carried_out(operations.frontier(parts, as_of))

    def history(self, parts: Parts) -> tuple[a.History, ...]:
        """The timeline of every scope that has these pairs."""
        return self._carried_out(operations.history(parts))

    def changes(
        self, parts: Parts | None = None, *, after: int = 0, limit: int = 1000, behind: str = ""
    ) -> tuple[a.Told, ...]:
        """Frontier changes in the order in which they happened, from the one after `min_revisions` on.

        Where many shards tell them, one shard after the other; `behind` is the position of a change to go on from.
        """
        return self._carried_out(operations.changes(parts, after, limit, behind))

    def explain(self, name: str, *, as_of: int | None = None) -> a.Explanation:
        """Why a document is or is not active, and what controls it."""
        return self._carried_out(operations.explain(name, as_of))

    def rejected(self, *, after: int = 0, limit: int = 100) -> tuple[a.Rejected, ...]:
        """Input that was refused, with its bytes, oldest first."""
        return self._carried_out(operations.rejected(after, limit))

    def replay(
        self, mended: Mapping[int, bytes] | None = None, *, only: Collection[int] = (), trial: bool = False
    ) -> tuple[a.Replayed, ...]:
        """Send refused input again, each at most once: as it came, or with mended bytes by offset.

        Without `mended` or `only` all refused input is meant. What would be refused again is not sent, and
        neither is anything in a `trial`.
        """
        return self._carried_out(operations.replay(mended or {}, only, trial=trial))

    def rebuild(
        self,
        packs: Sequence[str | Path] = (),
        *,
        future: Literal["wait", "apply"] | None = None,
        dry_run: bool = False,
    ) -> m.Progress:
        """Begin to build under other rules: shipped packs by name, others as files, or those of now read again.

        It goes on in the service, which needs a token for that; see `rebuilding`.
        """
        return self._carried_out(operations.rebuild(packs, future, dry_run=dry_run))

    def rebuilding(self) -> m.Progress:
        """How far a rebuild is, or how the last one ended."""
        return self._carried_out(operations.rebuilding())

    def pending(self) -> tuple[m.Waiting, ...]:
        """Documents that wait for their time, the next one due first."""
        return self._carried_out(operations.pending())

    def rules(self) -> m.Rules:
        """The rules in force."""
        return self._carried_out(operations.rules())

    def status(self) -> m.Standing:
        """Where the service stands."""
        return self._carried_out(operations.status())

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
    ) -> "Subscription":
        """What is in force now and then every change of it, for ever: iterate over it.

        From a cursor on (`min_revisions`, or that of `cursor_file`) only changes. See `Subscription`.
        """
        place = subscription.Place(after, Path(cursor_file) if cursor_file is not None else None)
        if snapshot is False and place.cursor is None:
            place.cursor, snapshot = self.status().cursor, None
        ask = operations.subscription(view, ids, types, domains, parts, snapshot)
        return Subscription(self._http, subscription.Following(ask, view, place, self._patience, self.url))

    def _carried_out(self, plan: Plan[T]) -> T:
        return self._converse(patient(plan, self._patience, self.url))

    def _converse(self, conversation: Conversation[T]) -> T:
        reply: Heard | Lost | None = None
        while True:
            try:
                step = conversation.send(reply)
            except StopIteration as stop:
                result: T = stop.value
                return result
            if isinstance(step, Ask):
                reply = self._reply(step)
            else:
                sleep(step.seconds)
                reply = None

    def _reply(self, ask: Ask) -> Heard | Lost:
        try:
            response = self._http.request(
                ask.method, ask.path, params=ask.parameters, content=ask.body, headers=transport.head(ask)
            )
        except httpx.TransportError as error:
            return transport.lost(error)
        return transport.heard(response)


class Subscription:
    """Events for ever, over any number of connections; iterate once.

    Asking for the next event says that the last one has been dealt with: then `cursor` moves behind it, and the
    file of the cursor follows. `keep` does both at once. End it with `close`, or use it as a context manager.
    Raises `Unavailable` where the service does not answer at first; later it is waited for.
    """

    def __init__(self, http: httpx.Client, state: subscription.Following) -> None:
        self._http = http
        self._following = state
        self._stream = self._streamed()

    @property
    def cursor(self) -> str | None:
        """Behind the last event that was dealt with."""
        return self._following.place.cursor

    def __iter__(self) -> "Subscription":
        return self

    def __next__(self) -> Event:
        self._following.settle()
        return next(self._stream)

    def __enter__(self) -> "Subscription":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def keep(self) -> None:
        """The last event has been dealt with: move the cursor and its file."""
        self._following.settle()
        self._following.place.save()

    def close(self) -> None:
        """Stop listening. The event that was handed out last counts as not dealt with, unless `keep` said so."""
        self._stream.close()
        self._following.place.save()

    def _streamed(self) -> Generator[Event, None, None]:
        while True:
            sleep(self._following.pause((yield from self._connection())))

    def _connection(self) -> Generator[Event, None, Heard | Lost | None]:
        """The events of one connection; why it ended."""
        state = self._following
        try:
            with self._http.stream(
                "GET", state.path, params=state.parameters, headers=state.headers, timeout=transport.STREAM_TIMEOUT
            ) as response:
                if response.status_code != httpx.codes.OK:
                    response.read()
                    return transport.heard(response)
                state.opened()
                for chunk in response.iter_bytes():
                    yield from state.taken(chunk)
                    state.place.save()
        except httpx.TransportError as error:
            return transport.lost(error)
        return None

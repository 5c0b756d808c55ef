"""What Stream-CAR does, as one protocol that every back end implements.

Promise: a request means the same whether one process answers it, a service over HTTP or a cluster. What a back end
cannot do raises `Unsupported`; docs/reference/back-ends.md lists it.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol, TypeVar

from stream_car.api.requests import Request, Subscribe
from stream_car.subscriptions.events import Event

A = TypeVar("A")


class Service(Protocol):
    """Publish documents and ask what is in force."""

    async def call(self, request: Request[A]) -> A:
        """Carry out a request.

        Raises:
            InvalidRequest: the request can never be answered as written.
            NotVisible: a revision of `min_revisions` did not become visible in time.
            Overloaded: too much at once; nothing was done.
            Unsupported: this back end cannot do it.
            Unavailable, Halted: try again later, or repair what the message names.
        """
        ...

    async def subscribe(self, request: Subscribe, client: str = "") -> AsyncIterator[Sequence[Event]]:
        """Return the events of a subscription, several at a time. Close the iterator when done.

        A `client` with a name may have only a share of all subscriptions.

        Raises `InvalidRequest` (`cursor`, `cursor_ahead`, `scope`) and `Overloaded`.
        """
        ...

    async def require_ready(self) -> str:
        """Raise `StreamCarError` unless the service publishes and answers.

        Return what an operator should look at all the same, as a sentence, or an empty string.
        """
        ...

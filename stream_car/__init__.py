"""Stream-CAR: a streaming supersession engine, so that nobody acts on a document that was voided.

`open` gives an engine over a folder of files, in this process, without any server; `connect` and
`connect_async` give the same calls to a service that `stream-car up` started.
"""

import typing as _typing
from collections.abc import Sequence as _Sequence
from importlib import import_module as _import_module
from pathlib import Path as _Path

from stream_car.core.documents import Document, Retraction
from stream_car.errors import (
    ClaimLost,
    Halted,
    InvalidDocument,
    InvalidRequest,
    InvalidRules,
    NotVisible,
    StreamCarError,
    TooMuch,
    Unavailable,
)
from stream_car.version import __version__

if _typing.TYPE_CHECKING:
    from stream_car.client import AsyncClient as AsyncClient
    from stream_car.client import Client as Client
    from stream_car.local.engine import Engine as Engine
    from stream_car.ports import Encoder
    from stream_car.ranking.settings import Settings
    from stream_car.subscriptions.events import Event as Event


def open(
    path: _Path | str | None = None,
    *,
    domains: _Sequence[str | _Path] = (),
    future: _typing.Literal["wait", "apply"] | None = None,
    ranking: "Settings | None" = None,
    encoder: "Encoder | str | _Path | None" = None,
) -> "Engine":
    """An engine over a folder, which is made if need be; without a path a temporary one.

    `packs` are names of shipped rule packs or paths of pack files. `future="apply"` makes documents count
    whatever their date, as a closed collection needs it; with "wait" they wait for it. A folder opens with
    what it was built with unless these say otherwise; a new one has all shipped packs and waits.
    `ranking` holds the numbers that Stage 1 and the order of groups go by. With an `encoder` Stage 1 also
    compares meanings, by vectors that are made in the background: an object with the two members of
    `ports.Encoder`, or the folder of a model (`stream-car[dense]`, `stream-car[sentence-transformers]`).
    """
    from stream_car.local.engine import open_engine
    from stream_car.ranking.settings import SETTINGS

    return open_engine(path, domains=domains, future=future, ranking=ranking or SETTINGS, encoder=encoder)


def connect(url: str, *, token: str | None = None) -> "Client":
    """The service at an address, with the calls of the engine and `subscribe`."""
    from stream_car.client import Client

    return Client(url, token=token)


def connect_async(url: str, *, token: str | None = None) -> "AsyncClient":
    """The service at an address, with calls to await."""
    from stream_car.client import AsyncClient

    return AsyncClient(url, token=token)


_LATER = {
    "AsyncClient": "client",
    "Client": "client",
    "Engine": "local.engine",
    "Event": "subscriptions.events",
}


def __getattr__(name: str) -> object:
    """Some classes are looked up when they are first asked for, so that importing this package loads no driver."""
    if name in _LATER:
        found: object = getattr(_import_module(f"stream_car.{_LATER[name]}"), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AsyncClient",
    "ClaimLost",
    "Client",
    "Document",
    "Engine",
    "Event",
    "Halted",
    "InvalidDocument",
    "InvalidRequest",
    "InvalidRules",
    "NotVisible",
    "Retraction",
    "StreamCarError",
    "TooMuch",
    "Unavailable",
    "__version__",
    "connect",
    "connect_async",
    "open",
]

"""Stream-CAR: a streaming supersession engine, so that nobody acts on a document that was voided.

`open` gives an engine over a folder of files, in this process, without any server.
"""

import typing as _typing
from collections.abc import Sequence as _Sequence
from pathlib import Path as _Path

from stream_car.core.documents import Document, Retraction
from stream_car.errors import (
    ClaimLost,
    Halted,
    InvalidDocument,
    InvalidRequest,
    InvalidRules,
    StreamCarError,
)

if _typing.TYPE_CHECKING:
    from stream_car.ports import Encoder
    from stream_car.ranking.settings import Settings
    from stream_car.runtime.embedded import Engine as Engine

__version__ = "0.1.0"


def open(
    path: _Path | str | None = None,
    *,
    domains: _Sequence[str | _Path] = (),
    future: _typing.Literal["wait", "apply"] = "wait",
    ranking: "Settings | None" = None,
    encoder: "Encoder | None" = None,
) -> "Engine":
    """An engine over a folder, which is made if need be; without a path a temporary one.

    `domains` are names of shipped rule packs or paths of pack files; none means all shipped packs.
    `future="apply"` makes documents count whatever their date, as a closed collection needs it.
    `ranking` holds the numbers that Stage 1 and the order of groups go by. With an `encoder` Stage 1 also
    compares meanings, by vectors that are made in the background.
    """
    from stream_car.ranking.settings import SETTINGS
    from stream_car.runtime.embedded import open_engine

    return open_engine(path, domains=domains, future=future, ranking=ranking or SETTINGS, encoder=encoder)


def __getattr__(name: str) -> object:
    """`Engine` is looked up when it is first asked for, so that importing this package loads no driver."""
    if name == "Engine":
        from stream_car.runtime.embedded import Engine

        return Engine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ClaimLost",
    "Document",
    "Engine",
    "Halted",
    "InvalidDocument",
    "InvalidRequest",
    "InvalidRules",
    "Retraction",
    "StreamCarError",
    "open",
]

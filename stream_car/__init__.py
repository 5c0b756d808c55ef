"""Stream-CAR answers from the documents that are in force now, and never from those that were voided.

`open` gives an engine over a data directory, in this process, without any server. `connect` and `connect_async` make
the same calls to a service that `stream-car serve` runs.
"""

import typing as _typing
from collections.abc import Sequence as _Sequence
from importlib import import_module as _import_module
from pathlib import Path as _Path
from types import ModuleType as _ModuleType

from stream_car.codec.publishable import NewDocument as NewDocument
from stream_car.core.documents import Retraction as Retraction
from stream_car.core.rule_pack import RulePack as RulePack
from stream_car.errors import (
    Busy as Busy,
    DocumentsRejected as DocumentsRejected,
    Halted as Halted,
    InvalidDocument as InvalidDocument,
    InvalidRequest as InvalidRequest,
    InvalidRules as InvalidRules,
    NotVisible as NotVisible,
    Overloaded as Overloaded,
    StreamCarError as StreamCarError,
    Unavailable as Unavailable,
    UnsafeSettings as UnsafeSettings,
    Unsupported as Unsupported,
)
from stream_car.lockfiles.dependencies import DependencyFile as DependencyFile
from stream_car.processing.effects import Outcome as Outcome
from stream_car.processing.receipts import (
    HiddenCharacter as HiddenCharacter,
    LikelyTypo as LikelyTypo,
    Receipt as Receipt,
    UnknownKey as UnknownKey,
)
from stream_car.queries.answers import (
    Amendment as Amendment,
    Answer as Answer,
    Audit as Audit,
    Blocked as Blocked,
    Certificate as Certificate,
    Change as Change,
    ChangeCause as ChangeCause,
    ChangedMember as ChangedMember,
    ChangedRun as ChangedRun,
    Controlling as Controlling,
    Converted as Converted,
    Difference as Difference,
    DocumentStatus as DocumentStatus,
    Ending as Ending,
    Evidence as Evidence,
    Explanation as Explanation,
    Frontier as Frontier,
    Group as Group,
    History as History,
    Incomplete as Incomplete,
    Lookup as Lookup,
    Membership as Membership,
    OriginalDocument as OriginalDocument,
    PendingDocument as PendingDocument,
    PlausibleScope as PlausibleScope,
    Published as Published,
    PublishedDocument as PublishedDocument,
    RebuildStatus as RebuildStatus,
    Rejected as Rejected,
    Replayed as Replayed,
    Resolution as Resolution,
    Rules as Rules,
    Status as Status,
    StatusCount as StatusCount,
    Step as Step,
    TimelineMember as TimelineMember,
    UnreadablePiece as UnreadablePiece,
    Violation as Violation,
)
from stream_car.queries.findings import (
    Exploitation as Exploitation,
    PackageFindings as PackageFindings,
    RecordFinding as RecordFinding,
    Statement as Statement,
    Succession as Succession,
)
from stream_car.subscriptions.events import (
    DocumentChange as DocumentChange,
    Event as Event,
    Heartbeat as Heartbeat,
    RecordChange as RecordChange,
    RecordDocument as RecordDocument,
    Reset as Reset,
    ScopeChange as ScopeChange,
    SnapshotBegin as SnapshotBegin,
    SnapshotDocument as SnapshotDocument,
    SnapshotEnd as SnapshotEnd,
    SnapshotRecord as SnapshotRecord,
    SnapshotScope as SnapshotScope,
)
from stream_car.version import __version__ as __version__

if _typing.TYPE_CHECKING:
    from stream_car.api.subscription import Subscription as Subscription
    from stream_car.api.subscription_aio import AsyncSubscription as AsyncSubscription
    from stream_car.client.aio import AsyncClient as AsyncClient
    from stream_car.client.consumer import Consumer as Consumer
    from stream_car.client.sync import Client as Client
    from stream_car.local.engine import Engine as Engine
    from stream_car.ports import Encoder as Encoder
    from stream_car.ranking.settings import Settings as Settings

_LATER = {  # what loads drivers, or is rarely used
    "AsyncClient": "client.aio",
    "AsyncSubscription": "api.subscription_aio",
    "Client": "client.sync",
    "Consumer": "client.consumer",
    "Encoder": "ports",
    "Engine": "local.engine",
    "Settings": "ranking.settings",
    "Subscription": "api.subscription",
}


def open(
    path: _Path | str | None = None,
    *,
    rules: "str | _Path | _Sequence[str | _Path]" = (),
    future: _typing.Literal["wait", "apply"] | None = None,
    ranking: "Settings | None" = None,
    encoder: "Encoder | str | _Path | None" = None,
) -> "Engine":
    """Open a data directory, which is created if necessary, and return the engine over it.

    Args:
        path: the folder; without one, a temporary folder that `close` removes.
        rules: names of shipped rule packs, or paths of your own pack files. A new folder has all shipped packs by
            default, and an existing one keeps the rules that it was built with.
        future: `"wait"` if documents that take effect in the future wait until then, `"apply"` if all count at once, as
            a closed collection needs it. A new folder waits by default; an existing one does what it was built with.
        ranking: the numbers that determine relevance and the order of groups.
        encoder: also find documents by meaning, with vectors that are computed in the background: the folder of a model
            (`stream-car[dense]`, `stream-car[sentence-transformers]`), or an object like `Encoder`.

    Raises:
        InvalidRequest: the folder was built with other rules (`rules`) or cannot be used (`path`), or an argument is
            wrong.
        InvalidRules: a rule pack cannot be loaded.
        Busy: another process has the folder open.
    """
    from stream_car.local.engine import Engine
    from stream_car.ranking.settings import SETTINGS

    return Engine(path, rules=rules, future=future, ranking=ranking or SETTINGS, encoder=encoder)


def connect(url: str, *, token: str | None = None) -> "Client":
    """Return a client of the service at a URL. It has the calls of an engine.

    Raises:
        InvalidRequest: the URL or the token is not valid (`url`, `token`). Nothing is sent yet.
    """
    from stream_car.client.sync import Client

    return Client(url, token=token)


def connect_async(url: str, *, token: str | None = None) -> "AsyncClient":
    """Return an asynchronous client of the service at a URL. Raises as `connect` does."""
    from stream_car.client.aio import AsyncClient

    return AsyncClient(url, token=token)


def __getattr__(name: str) -> object:
    """Import a class when it is first used, so that importing the package loads no driver."""
    if name in _LATER:
        return getattr(_import_module(f"stream_car.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


_PUBLIC = {name for name, value in globals().items() if name[0] != "_" and not isinstance(value, _ModuleType)}
__all__ = sorted(_PUBLIC | _LATER.keys())  # noqa: PLE0605  a list

"""The audit log: who published, retracted, replayed or rebuilt, from where, and what became of it.

Promise: a record is written under the logger `stream_car.audit` for every request that may have changed something,
before its answer is sent; a long publication has several. Records name token, address, documents and offsets. They hold
no document and no token. Cost: about 0.5 us per receipt.
"""

import logging
from collections import Counter
from typing import TypeVar

from msgspec import Struct
from starlette.types import Scope

from stream_car.api import requests as r
from stream_car.api.service import Service
from stream_car.errors import StreamCarError
from stream_car.http.access_log import LogFacts, name_of_token
from stream_car.http.problems import as_http_error
from stream_car.processing.receipts import Receipt
from stream_car.queries.answers import Published, RebuildStatus, Replayed

log = logging.getLogger("stream_car.audit")
A = TypeVar("A")


class AuditedReceipt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a document. `replayed` is the offset of the rejected input that was to be sent again.

    Rejected input that is not kept is counted by its `code`, as it is in the log.
    """

    outcome: str
    offset: int | None = None
    id: str | None = None
    revision: int | None = None
    code: str | None = None
    replayed: int | None = None
    not_kept: int = 0


class AuditRecord(LogFacts, frozen=True, kw_only=True):
    """A request that may have changed something. `token` is a name; `error` is the code of a failure."""

    operation: str
    address: str
    token: str = ""
    dry_run: bool = False
    rules: tuple[str, ...] = ()
    state: str = ""
    receipts: tuple[AuditedReceipt, ...] = ()
    error: str = ""


async def call_audited(service: Service, request: r.Request[A], *, operation: str, scope: Scope) -> A:
    """Carry out a request and record what became of it, also if it fails."""
    answer, error = None, "internal"
    try:
        answer = await service.call(request)
        error = ""
    except StreamCarError as failure:
        error = as_http_error(failure).code
        raise
    finally:
        if log.isEnabledFor(logging.INFO):
            log.info(_record(request, answer, operation=operation, scope=scope, error=error))
    return answer


def _record(request: object, answer: object, *, operation: str, scope: Scope, error: str) -> AuditRecord:
    packs = request.rules if isinstance(request, r.Rebuild) else ()
    return AuditRecord(
        operation=operation,
        address=scope["address"],
        token=name_of_token(scope),
        dry_run=isinstance(request, r.Replay | r.Rebuild) and request.dry_run,
        rules=tuple(pack.name if isinstance(pack, r.RuleText) else pack for pack in packs),
        state=answer.state if isinstance(answer, RebuildStatus) else "",
        receipts=_receipts(answer),
        error=error,
    )


def _receipts(answer: object) -> tuple[AuditedReceipt, ...]:
    if isinstance(answer, Published):
        counts = Counter((receipt.offset, receipt.code) for receipt in answer.receipts if not receipt.kept)
        kept = (_published(receipt) for receipt in answer.receipts if receipt.kept)
        return (*kept, *(_counted(offset, code, count) for (offset, code), count in counts.items()))
    return tuple(map(_replayed, answer)) if isinstance(answer, tuple) else ()


def _published(receipt: Receipt) -> AuditedReceipt:
    return AuditedReceipt(
        outcome=receipt.outcome, offset=receipt.offset, id=receipt.id, revision=receipt.revision, code=receipt.code
    )


def _counted(offset: int, code: str | None, count: int) -> AuditedReceipt:
    return AuditedReceipt(outcome="rejected", offset=offset, code=code, not_kept=count)


def _replayed(item: Replayed) -> AuditedReceipt:
    receipt = item.receipt
    return AuditedReceipt(
        outcome=receipt.outcome if receipt is not None else item.outcome,
        offset=receipt.offset if receipt is not None else item.at,
        id=receipt.id if receipt is not None else None,
        revision=receipt.revision if receipt is not None else None,
        code=receipt.code if receipt is not None else item.code,
        replayed=item.offset,
    )

"""Refused input sent again, as it came or mended.

Promise: each refused input is replayed at most once, whoever asks and whatever crashed: the new record
names the old one in a header, in the same write. What would only be refused again is not sent, so the
log does not fill with it. Cost: one look at each input, one append for all.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec
from msgspec import Struct

from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.core.changes import Rejection
from stream_car.core.stored import StoredDocument
from stream_car.errors import InvalidRequest
from stream_car.local.run_sync import at_once
from stream_car.ports import ChangeLog, Emission, Message
from stream_car.processing.fold import REJECTED, Fold
from stream_car.processing.receipts import Receipt
from stream_car.processing.replay import REPLAY_OF, message_of, rejection_of
from stream_car.queries.answers import Replayed

ALL = 1 << 60


async def refused_among(journal: ChangeLog, named: Collection[int]) -> list[int]:
    """Those of the named offsets whose input was refused, or all where none is named; in order.

    It is told in the order of the log, so each is searched for by halves and the others are not read.
    """
    if not named:
        return [_offset(event) for event in await journal.read(0, REJECTED, limit=ALL)]

    def following(oseq: int) -> int:
        return next((_offset(event) for event in at_once(journal.read(0, REJECTED, after=oseq, limit=1))), ALL)

    told = range(await journal.last(0) + 1)
    found = []
    behind = 0
    for offset in sorted(named):
        behind = bisect_left(told, offset, lo=behind, key=following)
        if behind in told and following(behind) == offset:
            found.append(offset)
    return found


def _offset(event: Emission) -> int:
    return msgspec.json.decode(event.value, type=Rejection).offset


class Plan(Struct):
    """What is to be sent, by the offset of the refused input, and what else there is to say of each."""

    answers: dict[int, Replayed]
    sent: dict[int, Message]

    def told(self, receipts: Mapping[int, Receipt]) -> tuple[Replayed, ...]:
        """The answers, with the receipts of what was sent."""
        for offset, receipt in receipts.items():
            self.answers[offset] = Replayed(offset=offset, outcome="replayed", at=receipt.offset, receipt=receipt)
        return tuple(self.answers.values())


def planned(
    log: SqliteLog,
    fold: Fold,
    held: Callable[[str], StoredDocument | None],
    rejected: Sequence[int],
    mended: Mapping[int, bytes],
    only: Collection[int],
) -> Plan:
    """What to send of the refused inputs that are meant: those mended or named, or else all.

    Raises `InvalidRequest` where one of them was not refused.
    """
    named = {*only, *mended}
    if unknown := named - set(rejected):
        raise InvalidRequest("offset", f"input {min(unknown)} was not rejected; `rejected` lists what was")
    before = log.marked(REPLAY_OF)
    plan = Plan({}, {})
    for offset in sorted(named or rejected):
        [record] = at_once(log.fetch(0, offset, 1))
        message = message_of(record, mended.get(offset))
        refused = rejection_of(message, fold=fold, stored=held, at=record)
        if offset in before:
            plan.answers[offset] = Replayed(offset=offset, outcome="before", at=before[offset])
        elif refused is not None:
            code, reason = refused.code, refused.reason
            plan.answers[offset] = Replayed(offset=offset, outcome="refused", code=code, reason=reason)
        else:
            plan.answers[offset] = Replayed(offset=offset, outcome="replayed")
            plan.sent[offset] = message
    return plan

"""Rejected input of a data directory sent again, as it was sent or corrected.

Promise: each rejected input is replayed at most once, whoever asks and whatever crashed: the new record names the old
one in a header, in the same write. Input that would only be rejected again is not sent, so the log does not fill with
it. Cost: one look at each input, one append for all.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.api.replay_plan import ReplayPlan
from stream_car.core.changes import Rejection
from stream_car.core.stored import StoredDocument
from stream_car.errors import InvalidRequest
from stream_car.local.run_sync import run_sync
from stream_car.ports import ChangeLogReader, Emission
from stream_car.processing.fold import REJECTED, Fold
from stream_car.processing.replay import REPLAY_OF, decode_replay, rejection_of, replay_message

END = 1 << 60


def rejected_offsets(change_log: ChangeLogReader, offsets: Collection[int]) -> list[int]:
    """Return those of the offsets whose input was rejected, in order.

    Rejections are in the order of the log, so each is found by bisection and the others are not read.
    """

    def offset_after(oseq: int) -> int:
        emissions = run_sync(change_log.read(0, REJECTED, after=oseq, limit=1))
        return _offset(emissions[0]) if emissions else END

    places = range(run_sync(change_log.last(0)) + 1)
    rejected = []
    place = 0
    for offset in sorted(offsets):
        place = bisect_left(places, offset, lo=place, key=offset_after)
        if place in places and offset_after(place) == offset:
            rejected.append(offset)
    return rejected


def _offset(emission: Emission) -> int:
    return msgspec.json.decode(emission.value, type=Rejection).offset


def plan_replay(
    log: SqliteLog,
    fold: Fold,
    stored: Callable[[str], StoredDocument | None],
    rejected: Sequence[int],
    corrected: Mapping[int, bytes],
    offsets: Collection[int],
) -> ReplayPlan:
    """Return what to send of these inputs. Raises `InvalidRequest` (`offset`) if one was not rejected."""
    named = {*offsets, *corrected}
    if unknown := named - set(rejected):
        raise InvalidRequest("offset", f"Input {min(unknown)} was not rejected. `rejected` lists what was.")
    replayed_before = log.offsets_by_header(REPLAY_OF)
    plan = ReplayPlan()
    for offset in sorted(named):
        [record] = run_sync(log.fetch(0, offset, 1))
        message = replay_message(record, corrected.get(offset), origin=str(offset))
        decoded = decode_replay(fold, message, record)
        rejection = rejection_of(decoded, stored(decoded.name) if decoded.name is not None else None, fold)
        plan.add(offset, message, rejection, replayed_before.get(offset))
    return plan

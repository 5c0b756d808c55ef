"""What lies in the topic `rejected`, each input once.

Promise: an input has the offset under which it was first refused there; a worker that lost its state refuses it
again, and that is not listed twice. Cost: the topic is read once from its beginning, a month of it, and what is
new when it is asked for; some 200 bytes of memory for each input.
"""

import sys
from collections.abc import Mapping

from msgspec import Struct

from stream_car.ports import Log, Record
from stream_car.queries.answers import Rejected

OURS = "stream-car-"  # how the names of our headers begin
FETCH = 500
SAID = frozenset({"code", "reason", "id", "partition", "offset"})


class Refusal(Struct, frozen=True):
    """A record of `rejected`, and where the input lies in `documents`."""

    record: Record
    told: Mapping[str, str]

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset."""
        return int(self.told["partition"]), int(self.told["offset"])

    def shown(self) -> Rejected:
        """As it is listed."""
        return Rejected(
            offset=self.record.offset,
            code=self.told["code"],
            reason=self.told["reason"],
            append_time=self.record.append_time,
            id=self.told["id"] or None,
            value=self.record.value or b"",
            oseq=self.record.offset + 1,
        )


class Refusals:
    """Reads the topic, and remembers where each input was refused first."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._firsts: dict[tuple[int, int], int] = {}  # by place, among the records before `_next`
        self._next = 0

    async def listed(self, *, after: int = 0, limit: int = sys.maxsize) -> list[Refusal]:
        """The first refusal of each input, oldest first, from this offset on."""
        first, end = await self._log.range(0)
        offset = max(first, min(after, self._next))
        found: list[Refusal] = []
        while offset < end and len(found) < limit:
            most = FETCH if offset < after else min(FETCH, limit - len(found))
            records = await self._log.fetch(0, offset, most)
            found += [one for record in records if (one := self._new(record)) is not None and record.offset >= after]
            offset = records[-1].offset + 1 if records else end
            self._next = max(self._next, offset)
        return found[:limit]

    def _new(self, record: Record) -> Refusal | None:
        """A refusal that is the first of its input; `None` for any other record."""
        ours = ((name.removeprefix(OURS), value) for name, value in record.headers if name.startswith(OURS))
        told = {name: value.decode() for name, value in ours if name in SAID}
        if told.keys() != SAID:
            return None
        one = Refusal(record, told)
        return one if self._firsts.setdefault(one.place, record.offset) == record.offset else None

"""How many bytes of rejected input are kept, per client and day.

Promise: what is kept of a client's rejected input takes at most `FREE` bytes of disk plus `FACTOR` times its size, and
at most `DAY_MAX` bytes a day; of all clients together, `ALL_MAX` bytes a day; each plus one part of a publication. A
client below its limits pays nothing: its input is judged once, after it is stored. The accounts are in memory, so a
restart opens new ones. Cost: constant per rejected input.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import time

from msgspec import Struct

RECORD_BYTES = 224  # that a rejected input takes on disk in log and state, beyond its own
FREE = 256 << 10
FACTOR = 2
DAY_MAX = 64 << 20
ALL_MAX = 512 << 20
CLIENTS_MAX = 10_000  # further ones share an account
DAY_S = 86_400
_OTHERS = "others"


class Account(Struct):
    """What one client sent that was rejected: the bytes sent, and the bytes of disk that what was kept of it takes.

    `in_flight` is what the messages that are not judged yet take beyond their own bytes if all of them are rejected.
    """

    sent: int = 0
    kept: int = 0
    in_flight: int = 0

    @property
    def is_overdrawn(self) -> bool:
        """Whether no more is kept now."""
        return self.kept + self.in_flight > min(FREE + FACTOR * self.sent, DAY_MAX)


class RejectedQuota:
    """The accounts of today."""

    def __init__(self, now: Callable[[], float] = time) -> None:
        self._now = now
        self._day = 0
        self._accounts: dict[str, Account] = {}
        self._kept = 0

    def is_exhausted(self, client: str) -> bool:
        """Whether rejected input of this client is not kept now."""
        return self._account(client).is_overdrawn or self._kept > ALL_MAX

    @contextmanager
    def judging_later(self, client: str, count: int) -> Iterator[None]:
        """Expect within the block that all of `count` messages could be rejected."""
        account = self._account(client)
        account.in_flight += RECORD_BYTES * count
        try:
            yield
        finally:
            account.in_flight -= RECORD_BYTES * count

    def count(self, client: str, size: int, *, is_kept: bool) -> None:
        """Count a rejected input of `size` bytes."""
        account = self._account(client)
        account.sent += size
        if is_kept:
            account.kept += size + RECORD_BYTES
            self._kept += size + RECORD_BYTES

    def _account(self, client: str) -> Account:
        day = int(self._now() // DAY_S)
        if day != self._day:
            self._day, self._accounts, self._kept = day, {}, 0
        account = self._accounts.get(client)
        if account is None:
            name = client if len(self._accounts) < CLIENTS_MAX else _OTHERS
            account = self._accounts.setdefault(name, Account())
        return account

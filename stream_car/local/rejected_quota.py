"""How many bytes of rejected input are kept, per client and day.

Promise: what is kept of a client's rejected input takes at most `FREE` bytes of disk plus `FACTOR` times its size, and
at most `DAY_MAX` bytes a day; of all clients together, `ALL_MAX` bytes a day; each plus one part of a publication. A
client below its limits pays nothing: its input is judged once, after it is stored. The accounts survive a restart: a
file holds them, which a process that was killed leaves behind by at most `UNSAVED_MAX` bytes, or by its own size if
that is more. A file that is missing or damaged opens new accounts.
Cost: constant per rejected input, and the file is written once for as many bytes as it may lack.
"""

import logging
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time

import msgspec
from msgspec import Struct

from stream_car.files.atomic import replace_file

_log = logging.getLogger(__name__)

FILE = "rejected_quota.json"
RECORD_BYTES = 224  # that a rejected input takes on disk in log and state, beyond its own
FREE = 256 << 10
FACTOR = 2
DAY_MAX = 64 << 20
ALL_MAX = 512 << 20
CLIENTS_MAX = 10_000  # further ones share an account
DAY_S = 86_400
UNSAVED_MAX = 64 << 10  # bytes kept of rejected input before the file is written again
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


class _Day(Struct):
    """What the file holds: for each client, the bytes sent and the bytes of disk."""

    day: int = 0
    accounts: dict[str, tuple[int, int]] = {}


class RejectedQuota:
    """The accounts of today, in a file of this folder."""

    def __init__(self, folder: Path, now: Callable[[], float] = time) -> None:
        self._path = folder / FILE
        self._now = now
        stored = _read(self._path)
        self._day = stored.day
        self._accounts = {name: Account(sent, kept) for name, (sent, kept) in stored.accounts.items()}
        self._kept = sum(account.kept for account in self._accounts.values())
        self._unsaved = 0
        self._unsaved_max = UNSAVED_MAX

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
            self._unsaved += size + RECORD_BYTES
            if self._unsaved >= self._unsaved_max:
                self.save()

    def save(self) -> None:
        """Write the file, if there is anything that it lacks. If the disk cannot take it, go on without."""
        if not self._unsaved:
            return
        accounts = {name: (account.sent, account.kept) for name, account in self._accounts.items()}
        content = msgspec.json.encode(_Day(self._day, accounts))
        self._unsaved, self._unsaved_max = 0, max(UNSAVED_MAX, len(content))
        try:
            replace_file(self._path, b"%08x\n%b" % (zlib.crc32(content), content), is_durable=False)
        except OSError as error:
            _log.warning("%s cannot be written: %s.", FILE, error.strerror)

    def _account(self, client: str) -> Account:
        day = int(self._now() // DAY_S)
        if day != self._day:
            self._day, self._accounts, self._kept = day, {}, 0
        account = self._accounts.get(client)
        if account is None:
            name = client if len(self._accounts) < CLIENTS_MAX else _OTHERS
            account = self._accounts.setdefault(name, Account())
        return account


def _read(path: Path) -> _Day:
    """Return what the file holds, or nothing if it is missing or damaged."""
    try:
        checksum, _, content = path.read_bytes().partition(b"\n")
        if checksum == b"%08x" % zlib.crc32(content):
            return msgspec.json.decode(content, type=_Day)
    except FileNotFoundError:
        return _Day()
    except (OSError, msgspec.DecodeError) as error:
        _log.warning("%s cannot be read: %s.", FILE, error)
        return _Day()
    _log.warning("%s is damaged. Its accounts begin again.", FILE)
    return _Day()

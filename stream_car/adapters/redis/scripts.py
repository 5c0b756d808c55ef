"""The Lua scripts in this folder, and the one way to call them.

Promise: a reply is used only if it echoes the number of its own call. Any other reply means that the connection has
mixed up its replies (a cancelled command leaves its reply unread), so all connections are dropped. The client's retries
may execute a command twice; every script allows that. Driver errors become `Unavailable` (try again later) or a
`StreamCarError` that says what to change. Cost: one exchange with the server per call.
"""

import hashlib
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import Protocol, cast

from redis import exceptions

from stream_car.errors import Overloaded, StreamCarError, Unavailable

SCAN_COUNT = 500  # fields of a hash that are read at a time
ARGUMENTS_MAX = 7900  # Lua passes at most 8000 values to a command


class RedisClient(Protocol):
    """What redis-py's `Redis` and `RedisCluster` have in common, as far as it is used."""

    async def execute_command(self, *args: str | bytes | int) -> object:
        """Send a command and return its reply."""
        ...

    async def aclose(self) -> None:
        """Drop all connections. The next command makes new ones."""
        ...

    def pipeline(self, transaction: bool = False) -> "Pipeline":
        """Return an empty pipeline."""
        ...

    def scan_iter(self, match: bytes) -> AsyncIterator[bytes]:
        """Return the keys that match a pattern, of all nodes."""
        ...

    def hscan_iter(self, name: bytes, *, count: int) -> AsyncIterator[tuple[bytes, bytes]]:
        """Return the fields of a hash and their values, a few at a time."""
        ...


class Pipeline(Protocol):
    """Commands that are sent together and answered in order."""

    def execute_command(self, *args: str | bytes | int) -> object:
        """Add a command."""
        ...

    async def execute(self, raise_on_error: bool = True) -> list[object]:
        """Send the commands and return their replies. Unless they are raised, errors are among the replies."""
        ...


HashFields = tuple[bytes, Sequence[bytes]]  # the key of a hash, and fields of it


class Script:
    """A script that the server caches under its hash."""

    def __init__(self, file: str) -> None:
        self.text = resources.files(__package__).joinpath(file).read_text(encoding="utf-8")
        self.hash = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


# Each script has one key and at most one command that writes. Redis wraps several in a transaction in the append-only
# file, and a torn tail of that can be executed by half. With the shebang a full server rejects a script as a whole.
READ = Script("read.lua")
SWAP = Script("swap.lua")
SWEEP = Script("sweep.lua")


class ScriptCalls:
    """Calls scripts through one client."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._numbers = itertools.count(1)

    async def read(self, key: bytes, fields: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of these fields of a hash, all as of one moment."""
        (values,) = await self._call(READ, key, fields)
        return cast(list[bytes | None], values)

    async def read_all(self, requests: Sequence[HashFields]) -> list[list[bytes | None]]:
        """Read fields of many hashes in one exchange. The values of each hash are as of one moment of its own."""
        numbers = [b"%d" % next(self._numbers) for _ in requests]
        pipeline = self._client.pipeline(transaction=False)
        for number, (key, fields) in zip(numbers, requests, strict=True):
            pipeline.execute_command("EVALSHA", READ.hash, 1, key, number, *fields)
        with translate_errors():
            replies = await pipeline.execute(raise_on_error=False)
            results: list[list[bytes | None]] = []
            for reply, number, request in zip(replies, numbers, requests, strict=True):
                if isinstance(reply, exceptions.NoScriptError):
                    results.append(await self.read(*request))
                elif isinstance(reply, Exception):
                    raise reply
                else:
                    (values,) = await self._check_number(reply, number)
                    results.append(cast(list[bytes | None], values))
        return results

    async def swap(self, key: bytes, expected: bytes, pairs: Sequence[bytes]) -> tuple[bool, bytes]:
        """Write field, value, field, value ... if the value of the first field starts with `expected`.

        Returns whether it wrote, and the former value of the first field. If `expected` is empty, that must be missing.
        """
        is_written, former = await self._call(SWAP, key, (expected, *pairs))
        return is_written == 1, cast(bytes, former)

    async def sweep(self, key: bytes, fields: Sequence[bytes]) -> int:
        """Delete those of the fields that are empty, and return how many were."""
        (count,) = await self._call(SWEEP, key, fields)
        return cast(int, count)

    async def unlink(self, keys: Sequence[bytes]) -> None:
        """Delete whole hashes."""
        with translate_errors():
            for key in keys:
                await self._client.execute_command("UNLINK", key)

    async def keys(self, match: bytes) -> list[bytes]:
        """Return the keys that match a pattern."""
        with translate_errors():
            return [key async for key in self._client.scan_iter(match)]

    async def filled_fields(self, key: bytes) -> AsyncIterator[bytes]:
        """Yield the fields of a hash that have a value, some perhaps twice."""
        with translate_errors():
            async for field, value in self._client.hscan_iter(key, count=SCAN_COUNT):
                if value:
                    yield field

    async def _call(self, script: Script, key: bytes, arguments: Sequence[bytes]) -> list[object]:
        if len(arguments) > ARGUMENTS_MAX:
            count = f"{len(arguments):,} values"
            raise Overloaded(f"{count} are more than one Redis command takes ({ARGUMENTS_MAX:,}). Use smaller batches.")
        number = b"%d" % next(self._numbers)
        with translate_errors():
            try:
                reply = await self._client.execute_command("EVALSHA", script.hash, 1, key, number, *arguments)
            except exceptions.NoScriptError:
                reply = await self._client.execute_command("EVAL", script.text, 1, key, number, *arguments)
        return await self._check_number(reply, number)

    async def _check_number(self, reply: object, number: bytes) -> list[object]:
        """Return what follows the number that a reply echoes. If it is not this one, drop all connections."""
        if not isinstance(reply, list) or not reply or reply[0] != number:
            await self._client.aclose()
            raise Unavailable("The Redis client mixed up its replies. Its connections were dropped; try again.")
        return reply[1:]


_TEMPORARY = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.OutOfMemoryError,
    exceptions.ReadOnlyError,
    exceptions.ClusterError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
    exceptions.MasterDownError,
    OSError,
)
_TEMPORARY_CODES = ("NOREPLICAS", "MISCONF", "LOADING", "BUSY", "UNBLOCKED", "OOM")
_DENIED_IN_SCRIPT = "The user executing the script can't"
_DENIED = (exceptions.AuthenticationError, exceptions.NoPermissionError, exceptions.AuthorizationError)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise the errors of redis-py as ours."""
    try:
        yield
    except _DENIED as error:
        raise _denied(error) from error
    except _TEMPORARY as error:
        raise Unavailable(f"Redis cannot be used now ({error}). Try again later.") from error
    except exceptions.RedisError as error:
        if str(error).startswith(_DENIED_IN_SCRIPT):
            raise _denied(error) from error
        if str(error).startswith(_TEMPORARY_CODES):
            raise Unavailable(f"Redis cannot be used now ({error}). Try again later.") from error
        cure = "See the log of the Redis server."
        raise StreamCarError(f"Redis failed with {type(error).__name__} ({error}). {cure}") from error


def _denied(error: exceptions.RedisError) -> StreamCarError:
    cure = "Check the user, the password and the permissions of the user."
    return StreamCarError(f"Redis denied access ({error}). {cure}")

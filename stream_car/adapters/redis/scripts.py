"""The scripts, and the one way to call them.

Promise: a reply is used only if it echoes the question's own number; another one means that the
connection has mixed up its replies (a cancelled command leaves its reply behind), so all connections are
dropped. A command may be executed twice by the client's retries: every script allows it. Driver errors
become `Unavailable` (try again later) or a `StreamCarError` that says what to change.
"""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, cast

from redis import exceptions

from stream_car.errors import StreamCarError, TooMuch, Unavailable

ARGUMENTS_MAX = 7900  # Lua hands at most 8000 values to a command


class Client(Protocol):
    """What is asked of redis-py's `Redis` and `RedisCluster` alike."""

    async def execute_command(self, *args: str | bytes | int) -> object:
        """The reply of a command."""
        ...

    async def aclose(self) -> None:
        """Drop all connections; the next command makes new ones."""
        ...

    def pipeline(self, transaction: bool = False) -> "Pipeline":  # redis-py's own
        """Commands that go together."""
        ...


class Pipeline(Protocol):
    """Commands that are sent at once and answered in order, each by itself."""

    def execute_command(self, *args: str | bytes | int) -> object:
        """One more."""
        ...

    async def execute(self, raise_on_error: bool = True) -> list[object]:  # redis-py's own
        """The replies; errors too, if they are not to be raised."""
        ...


Question = tuple[bytes, Sequence[bytes]]  # a hash and fields of it


class Script:
    """A program that the server keeps under its hash."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.hash = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


# Each has one key and at most one command that writes: several would be wrapped as a transaction in the
# append-only file, of which a torn tail can execute half. The shebang has a full server refuse it whole.

READ = Script("""#!lua flags=no-writes
return {ARGV[1], redis.call('HMGET', KEYS[1], unpack(ARGV, 2))}
""")

SWAP = Script("""#!lua
-- Writes pairs of fields and values if the first field's value starts with ARGV[2] ('': if there is none).
local held = redis.call('HGET', KEYS[1], ARGV[3]) or ''
local is_expected = string.sub(held, 1, #ARGV[2]) == ARGV[2] and (#ARGV[2] > 0 or #held == 0)
if is_expected then redis.call('HSET', KEYS[1], unpack(ARGV, 3)) end
return {ARGV[1], is_expected and 1 or 0, held}
""")

SWEEP = Script("""#!lua
-- Deletes those of the fields whose value is empty.
local empty = {}
for at, value in ipairs(redis.call('HMGET', KEYS[1], unpack(ARGV, 2))) do
  if value == '' then empty[#empty + 1] = ARGV[at + 1] end
end
if #empty > 0 then redis.call('HDEL', KEYS[1], unpack(empty)) end
return {ARGV[1], #empty}
""")


class Calls:
    """Scripts on one client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._numbers = itertools.count(1)

    async def read(self, key: bytes, fields: Sequence[bytes]) -> list[bytes | None]:
        """The values of these fields of a hash, all as of one moment."""
        (values,) = await self._call(READ, key, fields)
        return cast(list[bytes | None], values)

    async def read_all(self, questions: Sequence[Question]) -> list[list[bytes | None]]:
        """As `read`, for many hashes in one exchange; each is of one moment of its own."""
        numbers = [b"%d" % next(self._numbers) for _ in questions]
        pipeline = self._client.pipeline(transaction=False)
        for number, (key, fields) in zip(numbers, questions, strict=True):
            pipeline.execute_command("EVALSHA", READ.hash, 1, key, number, *fields)
        with translated():
            replies = await pipeline.execute(raise_on_error=False)
            told: list[list[bytes | None]] = []
            for reply, number, question in zip(replies, numbers, questions, strict=True):
                if isinstance(reply, exceptions.NoScriptError):
                    told.append(await self.read(*question))
                elif isinstance(reply, Exception):
                    raise reply
                else:
                    (values,) = await self._answered(reply, number)
                    told.append(cast(list[bytes | None], values))
        return told

    async def swap(self, key: bytes, expected: bytes, pairs: Sequence[bytes]) -> tuple[bool, bytes]:
        """Write field, value, field, value ... if the first field starts so; whether it did, and what it held."""
        is_done, held = await self._call(SWAP, key, (expected, *pairs))
        return is_done == 1, cast(bytes, held)

    async def sweep(self, key: bytes, fields: Sequence[bytes]) -> int:
        """Delete those of the fields that are empty; how many were."""
        (count,) = await self._call(SWEEP, key, fields)
        return cast(int, count)

    async def unlink(self, keys: Sequence[bytes]) -> None:
        """Forget whole hashes."""
        with translated():
            for key in keys:
                await self._client.execute_command("UNLINK", key)

    async def _call(self, script: Script, key: bytes, arguments: Sequence[bytes]) -> list[object]:
        if len(arguments) > ARGUMENTS_MAX:
            raise TooMuch(f"{len(arguments)} values are more than one command takes; use smaller batches")
        number = b"%d" % next(self._numbers)
        with translated():
            try:
                reply = await self._client.execute_command("EVALSHA", script.hash, 1, key, number, *arguments)
            except exceptions.NoScriptError:
                reply = await self._client.execute_command("EVAL", script.text, 1, key, number, *arguments)
        return await self._answered(reply, number)

    async def _answered(self, reply: object, number: bytes) -> list[object]:
        """What a reply says behind the number that it echoes."""
        if not isinstance(reply, list) or not reply or reply[0] != number:
            await self._client.aclose()
            raise Unavailable("Redis' client gave the reply to another command; its connections were dropped")
        return reply[1:]


_PASSING = (
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
_PASSING_WORDS = ("NOREPLICAS", "MISCONF", "LOADING", "BUSY", "UNBLOCKED", "OOM")
_REFUSED = (exceptions.AuthenticationError, exceptions.NoPermissionError, exceptions.AuthorizationError)


@contextmanager
def translated() -> Iterator[None]:
    """Turns driver errors within into ours."""
    try:
        yield
    except _REFUSED as error:
        raise StreamCarError(f"Redis refuses this user or password: {error}") from error
    except _PASSING as error:
        raise Unavailable(f"Redis cannot be used now: {error}") from error
    except exceptions.RedisError as error:
        if str(error).startswith(_PASSING_WORDS):
            raise Unavailable(f"Redis cannot be used now: {error}") from error
        raise StreamCarError(f"Redis answers {type(error).__name__}: {error}") from error

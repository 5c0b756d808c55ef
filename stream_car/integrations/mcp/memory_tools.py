"""The tools by which an agent remembers, on the same log and rules as every other document."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from inspect import cleandoc
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from stream_car.api import requests as r
from stream_car.api.calls_aio import AsyncCalls
from stream_car.integrations.mcp.mcp_tools import Tool, with_budget
from stream_car.memory.calls_aio import AsyncMemoryCalls
from stream_car.memory.documents import require_pack
from stream_car.memory.keys import owner
from stream_car.memory.shapes import Forgotten, Memorized, MemoryItem

MemoryKeyText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=1_100,
        description="What it is about, as subject::relation. Another value of the same key supersedes the former.",
        examples=["staging::database"],
    ),
]
OwnerId = Annotated[str, Meta(min_length=1, max_length=500, description="Whose memory it is; owners never mix.")]
M = TypeVar("M", bound="MemoryArguments")


class MemoryArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose memory a tool uses. Without any id, it is the one that nobody in particular owns."""

    user_id: OwnerId | None = None
    agent_id: OwnerId | None = None
    run_id: OwnerId | None = None

    def memory(self, calls: AsyncCalls) -> AsyncMemoryCalls:
        """Return the memory of this owner."""
        return AsyncMemoryCalls(calls, owner(self.user_id, self.agent_id, self.run_id))


class RememberArguments(MemoryArguments, frozen=True, kw_only=True):
    """Remember a sentence. With a key, it replaces what held there; its history stays."""

    text: Annotated[str, Meta(min_length=1, max_length=100_000, description="A sentence that can stand alone.")]
    key: MemoryKeyText | None = None
    object: Annotated[str, Meta(description="The value, if it is not the whole text.")] | None = None
    valid_from: Annotated[datetime, Meta(tz=True, description="Since when it holds; now by default.")] | None = None
    source: Annotated[str, Meta(max_length=4_096, description="Where it is from.")] = ""


class RecallArguments(MemoryArguments, frozen=True, kw_only=True):
    """Find memories that hold, best first. Superseded values are only returned beside what replaced them."""

    query: r.Text
    k: r.Count = 5
    include_superseded: bool = False
    as_of: r.Time | None = None


class ForgetArguments(MemoryArguments, frozen=True, kw_only=True):
    """Retract all that a key ever was, so that no tool returns it. Its bytes stay in the log until it is erased."""

    key: MemoryKeyText
    before: Annotated[datetime, Meta(tz=True, description="Spare what has held only since then.")] | None = None


async def _remember(calls: AsyncCalls, given: RememberArguments) -> Memorized:
    memory = given.memory(calls)
    return await memory.remember(given.text, given.key, given.object, valid_from=given.valid_from, source=given.source)


async def _recall(calls: AsyncCalls, given: RecallArguments) -> list[MemoryItem]:
    memory = given.memory(calls)
    return await memory.recall(given.query, given.k, include_superseded=given.include_superseded, as_of=given.as_of)


async def _forget(calls: AsyncCalls, given: ForgetArguments) -> Forgotten:
    return await given.memory(calls).forget(given.key, before=given.before)


def _tool(
    name: str, kind: type[M], call: Callable[[AsyncCalls, M], Awaitable[object]], answer: object, *, writes: bool
) -> Tool:
    fields = kind.__struct_fields__

    async def call_with(calls: AsyncCalls, arguments: Struct) -> object:
        require_pack(await calls.rules())
        return await call(calls, kind(**{field: getattr(arguments, field) for field in fields}))

    return Tool(
        name=name,
        description=cleandoc(kind.__doc__ or ""),
        arguments=with_budget(kind, f"{name}_arguments", fields),
        answer=answer,
        call=call_with,
        roles=("read", "publish") if writes else ("read",),
        destructive=kind is ForgetArguments,
    )


MEMORY_TOOLS = (
    _tool("remember", RememberArguments, _remember, Memorized, writes=True),
    _tool("recall", RecallArguments, _recall, list[MemoryItem], writes=False),
    _tool("forget", ForgetArguments, _forget, Forgotten, writes=True),
)

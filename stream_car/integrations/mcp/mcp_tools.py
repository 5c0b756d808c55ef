"""The tools that an agent sees: requests of the service under short names, with the fields that an agent needs.

Promise: arguments have the types and limits of the service's requests, so that a wrong one gets the same error. A
result fits into `budget_tokens`: first texts are cut, then the last items are left out, and `note` says so.
"""

from collections.abc import Awaitable, Callable, Mapping
from inspect import cleandoc
from typing import Annotated, Generic, TypeVar, get_type_hints

import msgspec
from msgspec import Meta, Struct

from stream_car.api import requests as r
from stream_car.api.calls_aio import AsyncCalls
from stream_car.api.operations import Role
from stream_car.codec import read_request
from stream_car.queries import answers as a

BUDGET_TOKENS = 4_000
BUDGET_TOKENS_MIN, BUDGET_TOKENS_MAX = 200, 100_000

T = TypeVar("T")
BudgetTokens = Annotated[
    int,
    Meta(ge=BUDGET_TOKENS_MIN, le=BUDGET_TOKENS_MAX, description="The result has at most about this many tokens."),
]


class AnswerGroups(Struct, frozen=True, kw_only=True):
    """The groups of an answer, best first: each has the anchor that was found, and what controls it now."""

    groups: tuple[a.Group, ...]
    certificate: a.Certificate
    pending: int = 0


class ToolResult(Struct, Generic[T], frozen=True, kw_only=True):
    """What a tool returns. Empty fields are left out.

    `omitted` counts the items that did not fit into `budget_tokens`, and `note` says what to do about it.
    """

    answer: T
    omitted: int = 0
    note: str = ""


class Tool(Struct, frozen=True, kw_only=True):
    """A tool: what it is for, its arguments, the type of its answer, and how it is carried out."""

    name: str
    description: str
    arguments: type[Struct]
    answer: object
    call: Callable[[AsyncCalls, Struct], Awaitable[object]]
    roles: tuple[Role, ...] = ("read",)  # a client needs all of them
    destructive: bool = False

    def read(self, arguments: Mapping[str, object]) -> tuple[Struct, int]:
        """Return the arguments, and the budget of tokens.

        Raises `InvalidRequest`, with the name of an argument as its code.
        """
        values = read_request(msgspec.json.encode(arguments), self.arguments)
        budget: int = getattr(values, "budget_tokens")  # noqa: B009  every tool has it
        return values, budget


def with_budget(kind: type[Struct], name: str, fields: tuple[str, ...]) -> type[Struct]:
    """Return a type with some fields of another, and `budget_tokens`."""
    hints = get_type_hints(kind, include_extras=True)
    defaults = {field.name: field.default for field in msgspec.structs.fields(kind)}
    required = [(field, hints[field]) for field in fields if defaults[field] is msgspec.NODEFAULT]
    others = [(field, hints[field], defaults[field]) for field in fields if defaults[field] is not msgspec.NODEFAULT]
    budget = ("budget_tokens", BudgetTokens, BUDGET_TOKENS)
    return msgspec.defstruct(name, [*required, *others, budget], kw_only=True, frozen=True, forbid_unknown_fields=True)


def _of_request(
    name: str, request: type[r.Request[object]], *fields: str, title: str, answer: object = None, **fixed: object
) -> Tool:
    """Return the tool that makes a request, with these fields as arguments."""

    async def call(calls: AsyncCalls, arguments: Struct) -> object:
        values = {field: getattr(arguments, field) for field in fields}
        answered = await calls.call(request(**values, **fixed))
        if isinstance(answered, a.Answer):
            return AnswerGroups(groups=answered.groups, certificate=answered.certificate, pending=answered.pending)
        return answered

    return Tool(
        name=name,
        description=f"{title} {cleandoc(request.__doc__ or '')}",
        arguments=with_budget(request, f"{name}_arguments", fields),
        answer=answer or r.answer_type(request),
        call=call,
    )


TOOLS: tuple[Tool, ...] = (
    _of_request(
        "ask",
        r.Query,
        *("text", "k", "as_of", "scope"),
        title="Use this before you rely on a document.",
        answer=AnswerGroups,
    ),
    _of_request("resolve", r.Resolve, "names", "as_of", title="Use this for ids that another search found."),
    _of_request("check", r.Check, "ids", "question", "as_of", title="Use this before you answer from documents."),
    _of_request("explain", r.Explain, "name", "as_of", title="Use this to say why."),
    _of_request("history", r.GetHistory, "scope", "after", title="Use this to see what was in force when."),
    _of_request(
        "changes",
        r.GetChanges,
        *("scope", "since", "after", "limit"),
        title="Use this to learn what changed since you looked: pass the last `position` as `after`.",
    ),
)

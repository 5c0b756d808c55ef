"""The local engine over the same documents, against which the answers of every query worker are compared.

Promise: after `require_equal`, a query worker has given the same answers about every document and every scope, and
about a sample of questions; it lists every rejected input, and nothing that was not rejected.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

from msgspec.structs import replace

import stream_car
from stream_car import AsyncClient
from stream_car.codec import decode
from stream_car.core.documents import Document
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import scope_parts
from stream_car.errors import InvalidDocument
from stream_car.ports import Record
from stream_car.processing.fold import TICK
from stream_car.queries import answers as a
from tests.simulation.two_hops.truth import Inputs
from tests.simulation.world import Violation, bytes_of

RESOLVED_AT_ONCE = 200
AT_ONCE = 4  # requests
QUESTIONS = 60
LISTED_MAX = 1_000_000
SMALL = 1000  # bytes of rejected input that is surely listed as it was sent

T = TypeVar("T")


class Twin:
    """A data directory that is given what the topics have."""

    def __init__(self, folder: Path, rules: Sequence[str], ruleset: Ruleset, random: Random) -> None:
        self.engine = stream_car.open(folder, rules=list(rules))
        self._ruleset = ruleset
        self._random = random
        self._fed: dict[int, int] = {}
        self._scopes: dict[str, None] = {}
        self._names: dict[str, None] = {}
        self._titles: dict[str, None] = {}

    def feed(self, inputs: Inputs) -> None:
        """Publish what is new in each partition, in order."""
        for partition, end in enumerate(inputs.end()):
            statements = inputs.statements(partition, end)
            new = statements[self._fed.get(partition, 0) :]
            self._fed[partition] = len(statements)
            for statement in new:
                self._names[statement.id] = None
                if isinstance(statement, Document):
                    self._scopes |= dict.fromkeys(self._ruleset.scopes(statement))
                    self._titles[statement.title] = None
            self.engine.publish([bytes_of(statement) for statement in new])

    async def require_equal(self, client: AsyncClient, who: str, inputs: Inputs) -> int:
        """Compare, and return the number of answers. Raises `Violation`."""
        status, mine = await client.status(), self.engine.status()
        if (status.documents, status.pending, status.reasons) != (mine.documents, mine.pending, ()):
            raise Violation(f"{who} has {status.documents} documents {status.reasons}, not {mine.documents}")
        names = list(self._names)
        chunks = [names[at : at + RESOLVED_AT_ONCE] for at in range(0, len(names), RESOLVED_AT_ONCE)]
        pairs = list({pair for scope in self._scopes for pair in scope_parts(scope)})
        titles = self._random.sample(list(self._titles), min(QUESTIONS, len(self._titles)))

        async def resolve(chunk: Sequence[str]) -> None:
            _require_equal(who, await client.resolve(chunk), self.engine.resolve(chunk))
            _require_equal(who, await client.get(chunk), self.engine.get(chunk))

        async def frontier(pair: tuple[str, str]) -> None:
            scope = dict([pair])
            _require_equal(who, map(_members, await client.frontier(scope)), map(_members, self.engine.frontier(scope)))

        async def query(title: str) -> None:
            _require_equal(who, [_groups(await client.query(title))], [_groups(self.engine.query(title))])

        await _each(resolve, chunks)
        await _each(frontier, pairs)
        await _each(query, titles)
        await _require_rejected(client, who, inputs)
        return 2 * len(names) + len(pairs) + len(titles)


async def _each(function: Callable[[T], Awaitable[None]], items: Sequence[T]) -> None:
    """Call the function with every item, a few at a time."""
    remaining = iter(items)

    async def work() -> None:
        for item in remaining:
            await function(item)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


def _require_equal(who: str, given: Iterable[object], wanted: Iterable[object]) -> None:
    answers, definitions = list(given), list(wanted)
    for answer, definition in zip(answers, definitions, strict=False):
        if answer != definition:
            raise Violation(f"{who} answers\n{answer}\nand the local engine\n{definition}")
    if len(answers) != len(definitions):
        raise Violation(f"{who} gives {len(answers)} answers, and the local engine {len(definitions)}")


def _members(frontier: a.Frontier) -> a.Frontier:
    return replace(frontier, seq=0)  # the order of arrival decides how many changes there were


def _groups(answer: a.Answer) -> tuple[object, ...]:
    groups = [
        (group.anchor.id, group.reasons, [each.document.id for each in group.controlling]) for group in answer.groups
    ]
    certificate = answer.certificate
    return (
        [(each.id, each.revision, each.title) for each in answer.results],
        groups,
        (certificate.covered, certificate.complete, certificate.reasons),
    )


def _is_nameless(record: Record) -> bool:
    if TICK in record.headers or len(record.value or b"") > SMALL:
        return False
    try:
        decode(record.value, key=record.key, headers=record.headers)
    except InvalidDocument as error:
        return error.document_id is None
    return False


async def _require_rejected(client: AsyncClient, who: str, inputs: Inputs) -> None:
    """Compare the input in which not even an id can be read, by its bytes, with what is listed."""
    values = [record.value or b"" for records in inputs.records for record in records]
    nameless = Counter(record.value or b"" for records in inputs.records for record in records if _is_nameless(record))
    rejected = await client.rejected(limit=LISTED_MAX)
    listed = Counter(each.value for each in rejected)
    if missing := nameless - listed:
        raise Violation(f"{who} does not list {missing.total()} rejected inputs, such as {next(iter(missing))!r}")
    if invented := Counter({value: count for value, count in listed.items() if value}) - Counter(values):
        raise Violation(f"{who} lists {invented.total()} inputs that were never sent, such as {next(iter(invented))!r}")

"""Every request of the API has the same answer from every back end, to the byte, except what `normalized` replaces.

The back ends here are the library and the service of one process, through both clients. An installation over Kafka and
Redis joins in tests/integration/servers.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager

import pytest
from msgspec import Struct

from stream_car import connect_async
from stream_car.api.calls import Calls
from stream_car.api.calls_aio import AsyncCalls
from tests.support import engines
from tests.support.background import in_background
from tests.support.contract import NORMALIZED, RULESET, BlockingCalls, Conversation, converse, request_types
from tests.support.either_service import served
from tests.support.http_service import TOKEN, serving


@pytest.fixture(scope="module")
def library() -> Conversation:
    with engines.engine(ruleset=RULESET) as engine:
        return converse(engine)


def synchronous_client() -> AbstractContextManager[Calls]:
    return served(ruleset=RULESET, token=TOKEN)


@contextmanager
def asynchronous_client() -> Iterator[Calls]:
    with in_background(_asynchronous_client()) as client:
        yield BlockingCalls(client)


@asynccontextmanager
async def _asynchronous_client() -> AsyncIterator[AsyncCalls]:
    async with serving(ruleset=RULESET, token=TOKEN) as running, connect_async(running.url, token=TOKEN) as client:
        yield client


@pytest.mark.parametrize("kind", NORMALIZED)
def test_what_is_normalized_exists(kind: type[Struct]) -> None:
    assert set(NORMALIZED[kind]) <= set(kind.__struct_fields__)


def test_the_contract_sends_every_type_of_request(library: Conversation) -> None:
    assert library.types == request_types()


@pytest.mark.parametrize("back_end", [synchronous_client, asynchronous_client])
def test_every_request_has_the_answer_of_the_library(
    back_end: Callable[[], AbstractContextManager[Calls]], library: Conversation
) -> None:
    with back_end() as calls:
        outcomes = converse(calls).outcomes

    assert list(outcomes) == list(library.outcomes)
    for name, outcome in library.outcomes.items():
        assert outcomes[name] == outcome, name


def test_what_becomes_of_a_record_is_the_same_word_in_every_answer(library: Conversation) -> None:
    outcomes = library.outcomes
    resolutions = {each["name"]: each for each in json.loads(outcomes["Resolve: every name"])}
    words = ("status", "state", "state_text", "state_since", "outcome", "outcome_text")

    for name, resolution in resolutions.items():
        explanation = json.loads(outcomes[f"Explain: {name}"])
        assert [explanation[word] for word in words] == [resolution[word] for word in words], name
    for lookup in json.loads(outcomes["GetDocuments: originals"]):
        assert [lookup[word] for word in words] == [resolutions[lookup["name"]][word] for word in words], lookup["name"]
    gone = resolutions["gone"]
    assert [gone[word] for word in words] == [
        "superseded",
        "withdrawn",
        "withdrawn 2019-05-01",
        "2019-05-01T00:00:00Z",
        "withdrawn",
        "withdrawn 2019-05-01",
    ]
    assert (resolutions["gone@2"]["status"], resolutions["gone@2"]["outcome"]) == ("in_force", "withdrawn")
    assert (resolutions["deal"]["status"], resolutions["deal"]["outcome"]) == ("in_force", "")
    [history] = json.loads(outcomes["GetHistory: history of record=deal"])
    assert [member["outcome"] for member in history["members"]] == ["revised", "updated", ""]
    [frontier] = json.loads(outcomes["GetFrontier: record=gone"])
    assert [document["outcome_text"] for document in frontier["in_force"]] == ["withdrawn 2019-05-01"]
    audit = json.loads(outcomes["Check: records"])
    assert not audit["holds"]
    assert [(record["name"], record["outcome_text"]) for record in audit["ended"]] == [("gone", "withdrawn 2019-05-01")]

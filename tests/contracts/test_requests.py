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
from stream_car.client.operations import joined
from tests.support import engines
from tests.support.background import in_background
from tests.support.contract import DOCUMENTS, NORMALIZED, RULESET, BlockingCalls, Conversation, converse, request_types
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


def test_the_contract_has_a_scope_that_comes_in_several_events(library: Conversation) -> None:
    assert '"continued":true' in library.outcomes["Subscribe: scope snapshot"]


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
    deal, changes = (json.loads(outcomes[f"GetChanges: changes of record={name}"]) for name in ("deal", "gone"))
    assert [member["outcome"] for change in deal for member in change["left"]] == ["revised", "updated"]
    assert [member["outcome"] for change in changes for member in change["left"]] == ["withdrawn"]
    entered = [member for change in changes for member in change["entered"] if member["id"] == "gone@2"]
    assert [(member["state"], member["outcome_text"]) for member in entered] == [("withdrawn", "withdrawn 2019-05-01")]
    [frontier] = json.loads(outcomes["GetFrontier: record=gone"])
    assert [document["outcome_text"] for document in frontier["in_force"]] == ["withdrawn 2019-05-01"]
    audit = json.loads(outcomes["Check: records"])
    assert not audit["holds"]
    assert [(record["name"], record["outcome_text"]) for record in audit["ended"]] == [("gone", "withdrawn 2019-05-01")]


def test_a_listing_has_only_the_documents_of_the_states_and_types_that_it_is_for(library: Conversation) -> None:
    outcomes = library.outcomes

    def listed(name: str) -> list[str]:
        answers = json.loads(outcomes[name])
        if "GetHistory" in name:
            return [member["id"] for answer in answers for member in answer["members"]]
        blocked = [item["document"]["id"] for answer in answers for item in answer["blocked"]]
        return blocked + [document["id"] for answer in answers for document in answer["in_force"]]

    assert (
        listed("GetFrontier: in_force frontier of record=gone")
        == listed("GetHistory: in_force history of record=gone")
        == []
    )
    assert listed("GetFrontier: withdrawn frontier of record=gone") == ["gone@2"]
    assert set(listed("GetHistory: ended history of record=gone")) == set(listed("GetHistory: history of record=gone"))
    assert set(listed("GetHistory: in_force history of record=deal")) == set(listed("GetFrontier: record=deal"))
    every = listed("GetHistory: history of record=deal")
    assert sorted(
        listed("GetHistory: in_force history of record=deal") + listed("GetHistory: ended history of record=deal")
    ) == sorted(every)
    assert "denial-1" in listed("GetHistory: denials")
    assert all(name.startswith("denial") for name in listed("GetHistory: denials"))
    for name in ("GetFrontier: no such type", "GetChanges: no such type of changes"):
        assert outcomes[name] == "InvalidRequest types"
    assert outcomes["GetHistory: no such state"] == "InvalidRequest states"
    assert outcomes["GetChanges: no such outcome"] == "InvalidRequest only"
    withdrawals = json.loads(outcomes["GetChanges: withdrawals of record=gone"])
    moved = [
        (member["id"], member["outcome"]) for change in withdrawals for member in change["entered"] + change["left"]
    ]
    assert {outcome for _, outcome in moved} == {"withdrawn"}
    assert "gone@2" in dict(moved)
    material = json.loads(outcomes["GetChanges: material changes of record=deal"])
    assert [(change["entered"], [member["outcome"] for member in change["left"]]) for change in material] == [
        ([], ["updated"])
    ]
    changes = json.loads(outcomes["GetChanges: changes of denials"])
    assert {member["type"] for change in changes for member in change["entered"] + change["left"]} == {"denial"}


def test_pages_of_a_listing_of_one_state_have_together_all_of_it() -> None:
    with engines.engine(ruleset=RULESET) as engine:
        for published in DOCUMENTS:
            engine.publish(published)
        for scope, state in (("topic=tea", "in_force"), ("topic=tea", "ended"), ("record=deal", "revised")):
            frontiers = list(engine.frontier(scope, states=[state], limit=1))
            while frontiers[-1].next:
                frontiers += engine.frontier(scope, states=[state], limit=1, after=frontiers[-1].next)
            assert joined(frontiers) == engine.frontier(scope, states=[state])
            histories = list(engine.history(scope, states=[state], limit=1))
            while histories[-1].next:
                histories += engine.history(scope, states=[state], limit=1, after=histories[-1].next)
            assert joined(histories) == engine.history(scope, states=[state])

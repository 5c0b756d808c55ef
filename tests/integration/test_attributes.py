"""Answers and events carry scope as data, and the attributes of documents if these are asked for."""

from collections.abc import Iterable, Iterator, Sequence

import pytest

from stream_car.api.calls import Calls
from stream_car.api.requests import Part
from stream_car.core.documents import Document
from stream_car.queries.answers import Change, Evidence, Frontier, History
from stream_car.subscriptions.events import DocumentChange, Event, ScopeChange, SnapshotDocument, SnapshotScope
from tests.support.back_ends import on_both
from tests.support.engines import day
from tests.support.question_sets import engine

pytestmark = on_both

SCOPE = ({"subject": ("a, b",), "colour": ("green", "blue")},)
ATTRIBUTES = {"value": "hot", "pages": [1, {"two": 2.5}]}
PAIRS = {"subject": "a, b"}
OLD = Document(id="old", type="fact", time=day(1), scope=SCOPE, attributes=ATTRIBUTES, text="the kettle is hot")
NEW = Document(id="new", type="fact", time=day(2), scope=SCOPE, attributes={"value": "cold"}, text="it is cold now")


@pytest.fixture
def car() -> Iterator[Calls]:
    with engine() as calls:
        calls.publish([OLD, NEW])
        yield calls


def evidence(calls: Calls, *, include: Sequence[Part]) -> Iterator[Evidence]:
    """Yield the documents in the answers of every request that shows documents."""
    for group in (*calls.query("kettle", include=include).groups, *calls.resolve(["old"], include=include)[0].groups):
        yield from (group.anchor, group.controlling[0].document)
    yield from calls.search("kettle", include=include)
    yield from calls.frontier(PAIRS, include=include)[0].in_force
    explanation = calls.explain("old", include=include)
    assert explanation.document is not None
    yield explanation.document


def test_documents_in_answers_have_their_scope_as_data(car: Calls) -> None:
    documents = list(evidence(car, include=()))

    assert {document.id for document in documents} == {"old", "new"}
    assert all(document.scope == SCOPE and not document.attributes for document in documents)


def test_documents_in_answers_have_their_attributes_if_these_are_asked_for(car: Calls) -> None:
    list(evidence(car, include=()))  # what is cached without attributes does not answer with them
    documents = list(evidence(car, include=["attributes"]))

    for document in documents:
        assert document.attributes == (ATTRIBUTES if document.id == "old" else {"value": "cold"})
    assert not any(document.attributes for document in evidence(car, include=()))


def test_scopes_in_answers_have_their_pairs_as_data(car: Calls) -> None:
    answers: Iterable[Frontier | History | Change] = (*car.frontier(PAIRS), *car.history(PAIRS), *car.changes(PAIRS))

    assert [answer.pairs for answer in answers] == [PAIRS] * 4


def events(calls: Calls, view: str, *, attributes: bool) -> list[Event]:
    """The snapshot of an old document, and the change by a new one."""
    received: list[Event] = []
    with calls.subscribe(
        view="scope" if view == "scope" else "document", snapshot=True, include=["attributes"] if attributes else []
    ) as subscription:
        for event in subscription:
            received.append(event)
            if event.__struct_config__.tag == "snapshot-end":
                break
        calls.publish(Document(id="third", type="fact", time=day(3), scope=SCOPE, attributes={"value": "warm"}))
        while len([event for event in received if isinstance(event, DocumentChange | ScopeChange)]) < 1:
            received.append(next(subscription))
    return received


@pytest.mark.parametrize("attributes", [False, True])
def test_events_of_documents_have_scope_and_attributes_as_data(car: Calls, attributes: bool) -> None:
    received = events(car, "document", attributes=attributes)
    [old] = [event for event in received if isinstance(event, SnapshotDocument)]
    change = received[-1]

    assert isinstance(change, DocumentChange)
    assert (old.scope, change.document_scope, change.pairs) == (SCOPE, SCOPE, PAIRS)
    assert old.attributes == ({"value": "cold"} if attributes else {})
    assert change.attributes == ({"value": "cold" if change.id == "new" else "warm"} if attributes else {})


def test_events_of_scopes_have_their_pairs_as_data(car: Calls) -> None:
    received = events(car, "scope", attributes=False)
    [snapshot] = [event for event in received if isinstance(event, SnapshotScope)]
    change = received[-1]

    assert isinstance(change, ScopeChange)
    assert (snapshot.pairs, change.change.pairs) == (PAIRS, PAIRS)

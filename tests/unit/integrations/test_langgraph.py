"""LangGraph: a store answers what LangGraph's own store in memory does, and what it puts is memories with a history."""

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("langgraph.store.base", reason="the extra `langgraph` is not installed")

from hypothesis import Phase, given, settings, strategies as st
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

import stream_car
from stream_car import NewDocument
from stream_car.errors import InvalidRequest
from stream_car.integrations.langgraph import CarStore
from stream_car.memory import Memory
from tests.support.server_process import Server

NOTES = ("ada", "notes")
DATABASE = {"text": "The staging database is db-7"}


@pytest.fixture
def store() -> Iterator[CarStore]:
    with stream_car.open(rules=["memory"]) as engine:
        yield CarStore(engine)


LABELS = st.sampled_from(["ada", "Ada", "notes", "né", "50%", "a b", "x=y", "::"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=5).map(tuple)
KEYS = st.sampled_from(["k", "K", "k.1", "%6b", " k", "a  b", "ключ"])
VALUES = st.fixed_dictionaries(
    {"n": st.integers(-3, 3)},
    optional={
        "text": st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=5),
        "deep": st.lists(st.none() | st.booleans()),
    },
)
FILTERS = st.none() | st.sampled_from([{"n": 1}, {"n": {"$gt": 0}}, {"n": {"$ne": 2, "$lte": 1}}, {"deep": [None]}])
PATHS = st.lists(LABELS | st.just("*"), min_size=1, max_size=2).map(tuple)
CONDITIONS = st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), PATHS)
OPERATIONS = st.one_of(
    st.builds(PutOp, NAMESPACES, KEYS, VALUES | st.none(), index=st.none(), ttl=st.none()),
    st.builds(GetOp, NAMESPACES, KEYS),
    st.builds(SearchOp, st.just(()) | NAMESPACES, FILTERS, st.just(1000), st.just(0), st.none()),
    st.builds(
        ListNamespacesOp,
        st.lists(CONDITIONS, max_size=2).map(tuple),
        st.none() | st.integers(1, 4),
        st.just(1000),
        st.just(0),
    ),
)


class StoreInMemory(InMemoryStore):
    """LangGraph's store in memory without its habit of listing namespaces that hold nothing, but were read."""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        operations, results = list(ops), []
        for operation in operations:
            is_put = isinstance(operation, PutOp)
            results.append(None if is_put else super().batch([operation])[0])
            self._tidy()
        super().batch([operation for operation in operations if isinstance(operation, PutOp)])
        self._tidy()
        return results

    def _tidy(self) -> None:
        for namespace in [namespace for namespace, items in self._data.items() if not items]:
            del self._data[namespace]


def shown(result: Result) -> object:
    """Return a result without its times, which two stores cannot share, and in one order."""
    if isinstance(result, list):
        return sorted((shown(item) if isinstance(item, Item) else item for item in result), key=repr)
    return (result.namespace, result.key, result.value) if result is not None else None


@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(batches=st.lists(st.lists(OPERATIONS, max_size=6), max_size=6))
def test_a_store_answers_what_the_store_in_memory_answers(batches: list[list[Op]]) -> None:
    with stream_car.open(rules=["memory"]) as engine:
        ours, theirs = CarStore(engine), StoreInMemory()
        for batch in batches:
            assert list(map(shown, ours.batch(batch))) == list(map(shown, theirs.batch(batch)))
        for item in theirs.search((), limit=1000):
            ours.delete(item.namespace, item.key)

        assert ours.search((), limit=1000) == []
        assert ours.list_namespaces() == []


def test_search_finds_an_item_of_a_deep_namespace_beside_many_others_of_its_owner(store: CarStore) -> None:
    noise = [PutOp(("u", "a", "s", "noise"), f"n{n}", {"text": f"port {n} of a port of a port"}) for n in range(120)]
    store.batch([*noise, PutOp(("u", "a", "s", "mine"), "mine", {"text": "one port among many other words here"})])

    assert [item.key for item in store.search(("u", "a", "s", "mine"), query="port")] == ["mine"]


def test_search_finds_items_by_their_words_and_only_below_the_prefix(store: CarStore) -> None:
    store.put(NOTES, "db", DATABASE)
    store.put((*NOTES, "s1", "deep"), "db", {"text": "The staging database is db-9"})
    store.put(("bob", "notes"), "db", {"text": "The staging database is db-1"})
    store.put(NOTES, "lunch", {"text": "Lunch is at noon"})
    items = store.search(NOTES, query="which database is staging")

    assert {(item.namespace, item.key) for item in items} == {(NOTES, "db"), ((*NOTES, "s1", "deep"), "db")}
    assert items[0].score is not None and items[0].score > 0
    assert [item.key for item in store.search((*NOTES, "s1", "deep"), query="staging database")] == ["db"]


def test_only_what_is_indexed_is_found_by_words(store: CarStore) -> None:
    store.put(NOTES, "hidden", {"text": "zebra"}, index=False)
    store.put(NOTES, "part", {"title": "zebra", "text": "giraffe"}, index=["text"])

    assert store.search(NOTES, query="zebra") == []
    assert [item.key for item in store.search(NOTES, query="giraffe")] == ["part"]
    assert store.get(NOTES, "hidden") is not None


def test_a_put_supersedes_and_its_history_stays(store: CarStore) -> None:
    store.put(NOTES, "db", {"text": "db-3"})
    first = store.get(NOTES, "db")
    store.put(NOTES, "db", {"text": "db-7"})
    item = store.get(NOTES, "db")

    assert item is not None and first is not None
    assert (item.value, item.created_at, item.updated_at > first.updated_at) == (
        {"text": "db-7"},
        first.created_at,
        True,
    )
    assert [(entry["event"], entry["outcome"]) for entry in store.history(NOTES, "db")] == [
        ("ADD", "changed"),
        ("UPDATE", ""),
    ]
    assert store.search(NOTES, query="db-3") == [] or store.search(NOTES, query="db-3")[0].value == {"text": "db-7"}


def test_a_deletion_retracts_and_a_later_put_begins_anew(store: CarStore) -> None:
    store.put(NOTES, "db", DATABASE)
    store.delete(NOTES, "db")
    assert (store.get(NOTES, "db"), store.history(NOTES, "db"), store.search(NOTES, query="staging")) == (None, [], [])

    before = datetime.now(UTC)
    store.put(NOTES, "db", DATABASE)
    item = store.get(NOTES, "db")
    assert item is not None and item.created_at >= before


def test_items_are_memories_and_memories_are_items(store: CarStore) -> None:
    engine = store._calls
    assert isinstance(engine, stream_car.Engine)
    store.put(NOTES, "database", DATABASE)
    memory = Memory(engine=engine, user_id="ada", agent_id="notes")
    [item_in_memory] = memory.search("staging database")["results"]
    assert item_in_memory["memory"] == DATABASE["text"]

    scope = {"user": "ada", "agent": "notes", "session": "*", "subject": "*", "relation": "database"}
    later = datetime.now(UTC)
    engine.publish(
        NewDocument(id="x", type="memory", time=later, scope=scope, attributes={"value": "db-9"}, text="It is db-9")
    )
    item = store.get(NOTES, "database")
    assert item is not None and item.value == {"text": "It is db-9", "value": "db-9"}


def test_a_protected_value_is_not_replaced_by_a_put(store: CarStore) -> None:
    engine = store._calls
    assert isinstance(engine, stream_car.Engine)
    memory = Memory(engine=engine, user_id="ada", agent_id="notes", run_id="s1")
    memory.add("Allergic to nuts", key="diet::allergy", protected=True)

    with pytest.raises(InvalidRequest, match="replace_protected"):
        store.put((*NOTES, "s1", "diet"), "allergy", {"text": "none"})
    item = store.get((*NOTES, "s1", "diet"), "allergy")
    assert item is not None and item.value["text"] == "Allergic to nuts"


def test_namespaces_may_begin_with_another_owner() -> None:
    with stream_car.open(rules=["memory"]) as engine:
        CarStore(engine, owners=("agent", "user", "session")).put(("memories", "ada"), "db", DATABASE)

        assert Memory(engine=engine, user_id="ada", agent_id="memories").search("staging")["results"]
        with pytest.raises(InvalidRequest, match="owners"):
            CarStore(engine, owners=("user",))


def test_a_store_needs_the_pack_of_memories() -> None:
    with (
        stream_car.open(rules=["facts"]) as engine,
        pytest.raises(InvalidRequest, match="--rules facts --rules memory"),
    ):
        CarStore(engine)


async def test_tasks_of_one_program_share_a_store(store: CarStore) -> None:
    await store.aput(NOTES, "db", DATABASE)
    item = await store.aget(NOTES, "db")

    assert item is not None and item.value == DATABASE
    assert [item.key for item in await store.asearch(NOTES, query="staging")] == ["db"]
    assert await store.alist_namespaces(prefix=("ada",)) == [NOTES]


def test_a_store_works_over_a_service(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server, stream_car.connect(server.url) as client:
        store = CarStore(client)
        store.put(NOTES, "db", DATABASE)
        store.put(("bob",), "db", DATABASE)
        store.delete(("bob",), "db")

        assert [item.key for item in store.search(NOTES, query="staging")] == ["db"]
        assert [item.namespace for item in store.search(())] == store.list_namespaces() == [NOTES]


@pytest.mark.parametrize(
    ("namespace", "key", "message"),
    [
        (("ada ",), "k", "stored as 'ada'"),
        (("*",), "k", "cannot be stored"),
        (("a\x01",), "k", "cannot be stored"),
        (("ada",), "", "must not be empty"),
        (("ada",), "k" * 501, "too long"),
    ],
    ids=["space", "star", "control", "empty", "long"],
)
def test_a_label_or_a_key_that_cannot_be_stored_is_an_error(
    store: CarStore, namespace: tuple[str, ...], key: str, message: str
) -> None:
    with pytest.raises(stream_car.StreamCarError, match=message):
        store.put(namespace, key, DATABASE)
    assert store.search(()) == []


def test_what_is_not_json_or_not_a_namespace_is_an_error_and_nothing_is_written(store: CarStore) -> None:
    with pytest.raises((stream_car.StreamCarError, TypeError)):
        store.put(NOTES, "bad", {"when": object()})
    with pytest.raises(stream_car.StreamCarError, match="NUL"):
        store.batch([PutOp(NOTES, "good", DATABASE), PutOp(NOTES, "bad", {"text": "\x00"})])
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(NOTES, "good", DATABASE), PutOp(("a.b",), "bad", DATABASE)])
    with pytest.raises(NotImplementedError):
        store.put(NOTES, "short", DATABASE, ttl=5)
    store.put(NOTES, "good", DATABASE)
    with pytest.raises(InvalidRequest, match="operator"):
        store.search(NOTES, filter={"text": {"$like": "db"}})

    assert [item.key for item in store.search(())] == ["good"]


def test_without_the_extra_the_import_of_the_store_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.store.base", None)
    monkeypatch.delitem(sys.modules, "stream_car.integrations.langgraph")

    with pytest.raises(ImportError, match=r"pip install 'stream-car\[langgraph\]'"):
        __import__("stream_car.integrations.langgraph")

"""LangChain: its own suite for retrievers, and what a guard does with each kind of hit."""

import logging
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

import stream_car
from stream_car.errors import InvalidRequest
from stream_car.integrations.langchain import CarGuard, CarIndex, CarRetriever
from tests.support.passwords import CURRENT, QUESTION, SCOPE, SUPERSEDED, engine_with_policies
from tests.support.rule_packs import POLICIES_THAT_FOLLOW, written


def _suite(module_name: str, class_name: str) -> object:
    """Load a suite without its package, which imports suites for models and their plugins for pytest."""
    package = find_spec("langchain_tests")
    assert isinstance(package, ModuleSpec)
    assert package.origin is not None
    path = Path(package.origin).parent / "integration_tests" / f"{module_name}.py"
    spec = spec_from_file_location(f"langchain_{module_name}_suite", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, class_name)


if TYPE_CHECKING:
    from langchain_tests.integration_tests.indexer import AsyncDocumentIndexTestSuite, DocumentIndexerTestSuite
    from langchain_tests.integration_tests.retrievers import RetrieversIntegrationTests
else:
    RetrieversIntegrationTests = _suite("retrievers", "RetrieversIntegrationTests")
    DocumentIndexerTestSuite = _suite("indexer", "DocumentIndexerTestSuite")
    AsyncDocumentIndexTestSuite = _suite("indexer", "AsyncDocumentIndexTestSuite")


@pytest.fixture(scope="module")
def engine() -> Iterator[stream_car.Engine]:
    with engine_with_policies() as engine:
        yield engine


class TestItsOwnSuite(RetrieversIntegrationTests):
    """The suite of LangChain for retrievers."""

    @pytest.fixture(autouse=True)
    def _with_engine(self, engine: stream_car.Engine) -> None:
        self.engine = engine

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return CarRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, object]:
        return {"calls": self.engine}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


class TestTheSuiteForIndexes(DocumentIndexerTestSuite):
    """The suite of LangChain for indexes."""

    @pytest.fixture
    def index(self) -> Iterator[CarIndex]:
        with stream_car.open() as engine:
            yield CarIndex(calls=engine)


class TestTheSuiteForIndexesInCoroutines(AsyncDocumentIndexTestSuite):
    """The same suite for its asynchronous calls."""

    @pytest.fixture
    def index(self) -> Iterator[CarIndex]:
        with stream_car.open() as engine:
            yield CarIndex(calls=engine)


def password(year: int, value: str) -> Document:
    metadata = {**SCOPE, "value": value, "time": f"{year}-01-01", "title": f"Passwords of {year}", "page": 7}
    return Document(id=f"policy-{year}", page_content=f"Passwords expire: {value}", metadata=metadata)


def test_an_index_retrieves_what_is_in_force_of_what_it_was_given() -> None:
    with stream_car.open() as engine:
        index = CarIndex(calls=engine, type="fact", scope_keys=list(SCOPE), k=1)
        index.upsert([password(2022, "90 days"), password(2024, "never")])
        [document] = index.invoke(QUESTION)
        superseded, current = index.get([SUPERSEDED, CURRENT])
        index.delete([CURRENT])
        [again] = index.invoke(QUESTION)

    assert (document.id, document.metadata["status"], document.metadata["page"]) == (CURRENT, "in_force", 7)
    assert document.metadata["certificate"]["complete"]
    assert (superseded, current) == (password(2022, "90 days"), password(2024, "never"))
    assert again.id == SUPERSEDED


def test_a_document_that_was_deleted_can_be_given_again(engine: stream_car.Engine) -> None:
    index = CarIndex(calls=engine)
    for text in ("one", "two"):
        index.upsert([Document(id="again", page_content=text)])
        index.delete(["again"])
    index.upsert([Document(id="again", page_content="three")])

    assert [document.page_content for document in index.get(["again", "again"])] == ["three"]
    index.delete(["again"])


def test_the_indexing_of_langchain_keeps_an_index_up_to_date() -> None:
    from langchain_core.indexing import InMemoryRecordManager, index as keep

    records = InMemoryRecordManager("policies")
    records.create_schema()
    with stream_car.open() as engine:
        target = CarIndex(calls=engine, scope_keys=list(SCOPE))
        first = keep(
            [password(2022, "90 days"), password(2024, "never")], records, target, cleanup="full", key_encoder="sha256"
        )
        second = keep([password(2022, "90 days")], records, target, cleanup="full", key_encoder="sha256")

    assert (first["num_added"], second["num_skipped"], second["num_deleted"]) == (2, 1, 1)


def test_what_cannot_be_published_has_failed(engine: stream_car.Engine, caplog: pytest.LogCaptureFixture) -> None:
    response = CarIndex(calls=engine).upsert(
        [Document(id="good", page_content="x"), Document(id="bad", page_content="x", metadata={"time": "someday"})]
    )

    assert response == {"succeeded": ["good"], "failed": ["bad"]}
    assert "someday" in caplog.text
    assert CarIndex(calls=engine).delete(["good", "bad"])["succeeded"] == ["good"]


def hit(name: str, text: str = "a chunk") -> Document:
    return Document(page_content=text, metadata={"id": name, "page": 7, "source": "intranet"})


def test_a_retriever_passes_on_everything_that_the_answer_says(engine: stream_car.Engine) -> None:
    [document] = CarRetriever(calls=engine, k=1, scope=SCOPE).invoke(QUESTION)
    answer = engine.query(QUESTION, k=1, scope=SCOPE)

    assert (document.id, document.page_content) == (CURRENT, "Passwords expire: never")
    assert document.metadata["status"] == "in_force"
    assert document.metadata["scope"] == [{key: [value] for key, value in SCOPE.items()}]
    assert document.metadata["attributes"] == {"value": "never"}
    assert document.metadata["certificate"]["covered"] == list(answer.certificate.covered)
    assert document.metadata["complete"]
    assert document.model_dump_json()


def test_a_retriever_answers_as_of_another_time(engine: stream_car.Engine) -> None:
    [document] = CarRetriever(calls=engine, k=1, scope=SCOPE, as_of="2023-01-01").invoke(QUESTION)

    assert document.id == SUPERSEDED


async def test_tasks_of_one_program_share_an_engine(engine: stream_car.Engine) -> None:
    answers = await CarRetriever(calls=engine, k=1, scope=SCOPE).abatch([QUESTION] * 20)

    assert [document.id for [document] in answers] == [CURRENT] * 20


def test_a_guard_replaces_a_superseded_hit_and_says_by_which_rule(engine: stream_car.Engine) -> None:
    [document] = CarGuard(calls=engine).compress_documents([hit(f"{SUPERSEDED}#3")], QUESTION)

    assert (document.id, document.page_content) == (CURRENT, "Passwords expire: never")
    assert (document.metadata["anchor"], document.metadata["anchor_status"]) == (SUPERSEDED, "superseded")
    assert [step["id"] for step in document.metadata["path"]] == [CURRENT]
    assert document.metadata["path"][0]["outcome"] == "changed"
    assert document.metadata["certificate"]["complete"]


def test_a_guard_keeps_the_text_and_the_metadata_of_a_hit_in_force(engine: stream_car.Engine) -> None:
    first, second = hit(f"{CURRENT}#1", "never"), hit(f"{CURRENT}#2", "ever")
    kept = CarGuard(calls=engine).compress_documents([first, second], QUESTION)

    assert [document.page_content for document in kept] == ["never", "ever"]
    assert [document.metadata["source"] for document in kept] == ["intranet", "intranet"]
    assert {document.metadata["status"] for document in kept} == {"in_force"}
    assert "status" not in first.metadata


def test_what_a_guard_returns_is_what_check_calls_the_repaired_set(engine: stream_car.Engine) -> None:
    names = [SUPERSEDED, "policy-2020", CURRENT, "policy-2021"]
    repaired = CarGuard(calls=engine).compress_documents(list(map(hit, names)), QUESTION)

    assert [document.metadata["id"] for document in repaired] == ["policy-2020", CURRENT, "policy-2021"]
    assert {document.metadata["id"] for document in repaired} == set(engine.check(names).repaired)


def test_a_hit_that_was_never_published_is_dropped_with_a_warning_or_kept_by_request(
    engine: stream_car.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="stream_car"):
        assert CarGuard(calls=engine).compress_documents([hit("elsewhere")], QUESTION) == []
    [kept] = CarGuard(calls=engine, unknown="keep").compress_documents([hit("elsewhere")], QUESTION)

    assert "'elsewhere' was dropped" in caplog.text
    assert (kept.page_content, kept.metadata["status"], kept.metadata["page"]) == ("a chunk", "unknown", 7)


def test_a_retracted_or_a_pending_hit_is_dropped() -> None:
    with engine_with_policies() as engine:
        engine.publish([{"id": "later", "type": "fact", "time": "2999-01-01", "scope": SCOPE, "value": "x"}])
        engine.retract("policy-2020")

        assert CarGuard(calls=engine).compress_documents([hit("later"), hit("policy-2020")], QUESTION) == []


def test_amendments_follow_in_the_text_of_what_they_amend(tmp_path: Path) -> None:
    leave = {"scope": {"policy": "leave"}, "title": "Leave"}
    with stream_car.open(rules=written(tmp_path, POLICIES_THAT_FOLLOW)) as engine:
        engine.publish([{"id": "leave-7", "type": "policy", "time": "2025-01-01", **leave}])
        engine.publish([{**leave, "id": "note", "type": "policy_amended", "time": "2025-02-01", "text": "Not in May"}])
        [kept] = CarGuard(calls=engine).compress_documents([hit("leave-7#2", "30 days")], QUESTION)
        [retrieved] = CarRetriever(calls=engine, k=1).invoke("leave")

    assert kept.page_content == "30 days\n\nAmended by note: Leave\n\nNot in May"
    assert retrieved.page_content.endswith("Amended by note: Leave\n\nNot in May")
    assert retrieved.metadata["amendments"][0]["document"]["id"] == "note"


def test_a_hit_without_an_id_is_an_error_that_names_the_cure(engine: stream_car.Engine) -> None:
    with pytest.raises(InvalidRequest, match="id_key"):
        CarGuard(calls=engine).compress_documents([Document(page_content="a chunk")], QUESTION)


def test_another_key_may_hold_the_id(engine: stream_car.Engine) -> None:
    document = Document(page_content="a chunk", metadata={"file": SUPERSEDED})

    assert [d.id for d in CarGuard(calls=engine, id_key="file").compress_documents([document], "")] == [CURRENT]


def test_no_hits_are_no_documents(engine: stream_car.Engine) -> None:
    assert CarGuard(calls=engine).compress_documents([], QUESTION) == []


def test_without_the_extra_the_import_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.retrievers", None)
    monkeypatch.delitem(sys.modules, "stream_car.integrations.langchain")

    with pytest.raises(ImportError, match=r"pip install 'stream-car\[langchain\]'"):
        __import__("stream_car.integrations.langchain")

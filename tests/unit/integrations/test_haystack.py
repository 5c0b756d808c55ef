"""Haystack: what its retriever passes on, and what a guard does with each kind of document, inside a pipeline."""

import logging
import os
import sys
from collections.abc import Iterator
from typing import cast

import pytest

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # tests report to nobody
pytest.importorskip("haystack.components", reason="the extra `haystack` is not installed")

from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

import stream_car
from stream_car.errors import InvalidRequest
from stream_car.integrations.haystack import CarDocumentGuard, CarDocumentRetriever
from tests.support.passwords import CURRENT, QUESTION, SCOPE, SUPERSEDED, engine_with_policies


@pytest.fixture(scope="module")
def engine() -> Iterator[stream_car.Engine]:
    with engine_with_policies() as engine:
        yield engine


def part(name: str, text: str = "a part") -> Document:
    return Document(content=text, meta={"source_id": name, "page": 7}, score=0.5)


def documents_of(answer: dict[str, list[Document]]) -> list[Document]:
    return answer["documents"]


def test_a_retriever_passes_on_everything_that_the_answer_says(engine: stream_car.Engine) -> None:
    [document] = documents_of(CarDocumentRetriever(engine, top_k=1, scope=SCOPE).run(QUESTION))

    assert (document.id, document.content) == (CURRENT, "Passwords expire: never")
    assert (document.meta["status"], document.meta["certificate"]["complete"]) == ("in_force", True)
    assert document.score is not None and document.score > 0
    assert Document.from_dict(document.to_dict()) == document


async def test_a_retriever_works_in_an_event_loop_and_at_another_time(engine: stream_car.Engine) -> None:
    retriever = CarDocumentRetriever(engine, scope=SCOPE, as_of="2023-01-01")
    [document] = documents_of(await retriever.run_async(QUESTION, top_k=1))

    assert document.id == SUPERSEDED


def test_in_a_pipeline_a_guard_repairs_what_the_retriever_of_haystack_found(engine: stream_car.Engine) -> None:
    store = InMemoryDocumentStore()
    store.write_documents([part(SUPERSEDED, "passwords expire after 90 days"), part("elsewhere", "lunch is at noon")])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=1))
    pipeline.add_component("guard", CarDocumentGuard(engine))
    pipeline.connect("retriever.documents", "guard.documents")
    answer = cast(dict[str, dict[str, list[Document]]], pipeline.run({"retriever": {"query": QUESTION}}))
    [document] = documents_of(answer["guard"])

    assert (document.id, document.content) == (CURRENT, "Passwords expire: never")
    assert (document.meta["anchor"], document.meta["anchor_status"]) == (SUPERSEDED, "superseded")
    assert document.meta["path"][0]["outcome"] == "changed"


async def test_a_document_in_force_keeps_content_meta_and_score(engine: stream_car.Engine) -> None:
    given = part(f"{CURRENT}#1", "never")
    [document] = documents_of(await CarDocumentGuard(engine).run_async([given]))

    assert (document.id, document.content, document.score) == (given.id, "never", 0.5)
    assert (document.meta["page"], document.meta["status"]) == (7, "in_force")
    assert "status" not in given.meta


def test_a_document_that_was_never_published_is_dropped_with_a_warning_or_kept_by_request(
    engine: stream_car.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="stream_car"):
        assert documents_of(CarDocumentGuard(engine).run([part("elsewhere")])) == []
    [kept] = documents_of(CarDocumentGuard(engine, unknown="keep").run([part("elsewhere")]))

    assert "'elsewhere' was dropped" in caplog.text
    assert (kept.content, kept.meta["status"]) == ("a part", "unknown")


def test_an_id_that_is_no_text_is_an_error_that_names_its_cure(engine: stream_car.Engine) -> None:
    with pytest.raises(InvalidRequest, match="id_key"):
        CarDocumentGuard(engine, id_key="page").run([part(CURRENT)])


def test_without_the_extra_the_import_of_the_component_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "haystack", None)
    monkeypatch.delitem(sys.modules, "stream_car.integrations.haystack")

    with pytest.raises(ImportError, match=r"pip install 'stream-car\[haystack\]'"):
        __import__("stream_car.integrations.haystack")

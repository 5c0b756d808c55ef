"""LlamaIndex: what its retriever passes on, and what a postprocessor does with each kind of node."""

import logging
import sys
from collections.abc import Iterator

import pytest
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

import stream_car
from stream_car.integrations.llama_index import CarNodePostprocessor, CarNodeRetriever
from tests.support.passwords import CURRENT, QUESTION, SCOPE, SUPERSEDED, engine_with_policies


@pytest.fixture(scope="module")
def engine() -> Iterator[stream_car.Engine]:
    with engine_with_policies() as engine:
        yield engine


def hit(name: str, text: str = "a chunk") -> NodeWithScore:
    return NodeWithScore(node=TextNode(text=text, metadata={"id": name, "page": 7}), score=0.5)


def test_a_retriever_passes_on_everything_that_the_answer_says(engine: stream_car.Engine) -> None:
    [node] = CarNodeRetriever(engine, k=1, scope=SCOPE).retrieve(QUESTION)

    assert (node.node.node_id, node.node.metadata["status"]) == (CURRENT, "in_force")
    assert node.node.metadata["certificate"]["complete"]
    assert node.node.get_content(MetadataMode.LLM) == "Passwords expire: never"
    assert node.model_dump_json()


async def test_a_retriever_works_in_an_event_loop_and_as_of_another_time(engine: stream_car.Engine) -> None:
    [node] = await CarNodeRetriever(engine, k=1, scope=SCOPE, as_of="2023-01-01").aretrieve(QUESTION)

    assert node.node.node_id == SUPERSEDED


def test_a_superseded_node_is_replaced_and_hands_on_its_score(engine: stream_car.Engine) -> None:
    [node] = CarNodePostprocessor(calls=engine).postprocess_nodes([hit(f"{SUPERSEDED}#3")], query_str=QUESTION)

    assert (node.node.node_id, node.node.get_content()) == (CURRENT, "Passwords expire: never")
    assert (node.node.metadata["anchor"], node.node.metadata["anchor_status"]) == (SUPERSEDED, "superseded")
    assert node.score == 0.5


def test_a_node_in_force_keeps_its_text_and_metadata(engine: stream_car.Engine) -> None:
    [node] = CarNodePostprocessor(calls=engine).postprocess_nodes([hit(f"{CURRENT}#1", "never")])

    assert (node.node.get_content(), node.node.metadata["page"]) == ("never", 7)
    assert (node.node.metadata["status"], node.score) == ("in_force", 0.5)


def test_a_node_that_was_never_published_is_dropped_with_a_warning_or_kept_by_request(
    engine: stream_car.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="stream_car"):
        assert CarNodePostprocessor(calls=engine).postprocess_nodes([hit("elsewhere")]) == []
    [kept] = CarNodePostprocessor(calls=engine, unknown="keep").postprocess_nodes([hit("elsewhere")])

    assert "'elsewhere' was dropped" in caplog.text
    assert kept.node.metadata["status"] == "unknown"


def test_without_the_extra_the_import_of_the_integration_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_index.core.retrievers", None)
    monkeypatch.delitem(sys.modules, "stream_car.integrations.llama_index")

    with pytest.raises(ImportError, match=r"pip install 'stream-car\[llama-index\]'"):
        __import__("stream_car.integrations.llama_index")

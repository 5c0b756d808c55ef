"""Scores are those of a fresh index over the same documents, however they were batched, replaced and reopened."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from stream_car.adapters.search import index as index_module
from stream_car.adapters.search.index import TantivyIndex
from stream_car.local.run_sync import run_sync
from stream_car.ports import IndexedDocument
from tests.support.engines import document

WORDS = ("tea", "rain", "moon", "cup", "leaf", "snow")
QUESTIONS = ("tea rain", "moon", "cup leaf tea", "snow snow d3", "d1 rain")

text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
step = st.one_of(
    st.lists(st.tuples(st.integers(0, 9), text | st.none()), min_size=1, max_size=8),
    st.sampled_from(["reopen", "commit", "search"]),
)


def indexed(number: int, content: str) -> IndexedDocument:
    return IndexedDocument(document=document(f"d{number}", text=content), scopes=(f"topic=d{number}",), anchor=True)


def hits(index: TantivyIndex) -> list[object]:
    return [run_sync(index.search(question, 20)) for question in QUESTIONS]


@pytest.mark.parametrize("tail_max", [0, 500])
@settings(max_examples=25, deadline=None)
@given(steps=st.lists(step, min_size=1, max_size=10))
def test_scores_are_those_of_a_fresh_index(tail_max: int, steps: Sequence[str | list[tuple[int, str | None]]]) -> None:
    current: dict[int, str] = {}
    position = 0
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "TAIL_MAX", tail_max)
        index = TantivyIndex(Path(folder) / "used")
        for action in steps:
            if action == "reopen":
                index.close()
                index = TantivyIndex(Path(folder) / "used")
            elif action == "commit":
                index._commit()
            elif action == "search":
                hits(index)
            else:
                assert isinstance(action, list)
                batch = dict(action)
                current = {key: value for key, value in (current | batch).items() if value is not None}
                position += 1
                documents = [indexed(number, content) for number, content in batch.items() if content is not None]
                removed = [f"d{number}" for number, content in batch.items() if content is None]
                run_sync(index.apply(documents, removed, position))
        fresh = TantivyIndex(Path(folder) / "fresh")
        run_sync(fresh.apply([indexed(*item) for item in current.items()], [], 1))
        try:
            assert hits(index) == hits(fresh)
        finally:
            index.close()
            fresh.close()

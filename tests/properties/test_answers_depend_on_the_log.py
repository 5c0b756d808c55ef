"""Whole answers, scores included, are those of an engine that is built from the same log at once."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings, strategies as st

from stream_car import Engine, Retraction
from stream_car.core.documents import Document
from stream_car.local.generation import LOG
from stream_car.queries.answers import Answer, Evidence
from tests.support.engines import document, engine

Step = str | list[Document | Retraction]

WORDS = ("tea", "rain", "moon", "cup", "leaf", "snow")
QUESTIONS = ("tea rain", "moon", "cup leaf tea", "snow snow d3", "d1 rain")

publication = st.builds(
    lambda number, kind, at, revision, topic, words: document(
        f"d{number}", kind, at, revision=revision, topic=topic, text=" ".join(words)
    ),
    st.integers(0, 12),
    st.sampled_from(["claim", "denial", "doubt", "note"]),
    st.integers(0, 9),
    st.integers(1, 4),
    st.sampled_from(["a", "b"]),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=8),
)
retraction = st.builds(lambda number: Retraction(id=f"d{number}"), st.integers(0, 12))
step = st.one_of(
    st.lists(publication | retraction, min_size=1, max_size=8),
    st.sampled_from(["ask", "reopen", "unseal", "rebuild"]),
)


def answers(running: Engine) -> list[tuple[Answer, tuple[Evidence, ...]]]:
    return [(running.query(text, k=10), running.search(text, k=20)) for text in QUESTIONS]


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(step, min_size=1, max_size=12))
def test_answers_are_those_of_an_engine_that_is_built_at_once(
    steps: Sequence[str | list[Document | Retraction]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "0"
        running = engine(path)
        for action in steps:
            if action == "ask":
                answers(running)
            elif action == "rebuild":
                running.rebuild()
            elif action == "reopen":
                running.close()
                running = engine(path)
            elif action == "unseal":  # as a kill leaves it, files have no seal
                running.close()
                for seal in path.rglob("*.seal"):
                    seal.unlink()
                running = engine(path)
            else:
                assert isinstance(action, list)
                running.publish(action)
        used = answers(running)
        running.close()
        (Path(folder) / "fresh").mkdir()
        shutil.copyfile(path / LOG, Path(folder) / "fresh" / LOG)
        with engine(Path(folder) / "fresh") as fresh:
            assert used == answers(fresh)

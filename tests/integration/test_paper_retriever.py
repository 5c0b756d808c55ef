"""The example for the paper's scorer, loaded and called as that scorer does it."""

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

import pytest

from tests.support.repository import ROOT

FILE = ROOT / "docs" / "examples" / "paper_retriever.py"


class Retriever(Protocol):
    """What the scorer expects of a retriever."""

    name: str

    def retrieve(self, query: str, corpus: Sequence[Mapping[str, object]], k: int) -> list[str]: ...


def event(
    name: str, kind: str, day: int, text: str, employee: str = "EMP001-Adams", **more: object
) -> dict[str, object]:
    return {
        "doc_id": name,
        "event_type": kind,
        "timestamp": f"2024-01-{day:02d}T09:00:00",
        "entities": {"employee": employee, "ticker": "XYZ"},
        "text": text,
        **more,
    }


CORPUS = [
    event("approval", "pre_clearance_approved", 2, "EMP001-Adams received pre-clearance to purchase XYZ."),
    event("blackout", "blackout_announced", 9, "A trading blackout was announced."),
    event("other", "pre_clearance_approved", 3, "EMP002-Baker received pre-clearance to sell XYZ.", "EMP002-Baker"),
]


def new_retriever(*arguments: object) -> Retriever:
    spec = importlib.util.spec_from_file_location("custom_retriever", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Retriever, module.Retriever(*arguments))


@pytest.mark.parametrize("arguments", [(CORPUS,), ()], ids=["with the corpus", "without arguments"])
def test_the_scorer_receives_what_controls_first_and_nothing_superseded(arguments: tuple[object, ...]) -> None:
    retriever = new_retriever(*arguments)

    names = retriever.retrieve("Is EMP001-Adams's pre-clearance for XYZ still valid?", CORPUS, 100)
    assert names[0] == "blackout"
    assert "approval" not in names
    assert "other" in retriever.retrieve("Is EMP002-Baker's pre-clearance for XYZ still valid?", CORPUS, 2)


def test_another_corpus_is_loaded_again() -> None:
    retriever = new_retriever(CORPUS)

    assert retriever.retrieve("EMP001-Adams pre-clearance", CORPUS[:1], 5) == ["approval"]


def test_a_corpus_that_cannot_be_read_is_an_error_and_not_a_bad_score() -> None:
    with pytest.raises(ValueError, match="1 documents were rejected"):
        new_retriever([event("x", "no_such_type", 1, "?")])

"""The example under the paper's scorer: loaded from its file and asked as that scorer asks."""

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

import pytest

from tests.support.repository import ROOT

FILE = ROOT / "docs" / "examples" / "paper_retriever.py"


class Asked(Protocol):
    """What the scorer knows of a retriever."""

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


def made(*arguments: object) -> Asked:
    spec = importlib.util.spec_from_file_location("custom_retriever", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Asked, module.Retriever(*arguments))


@pytest.mark.parametrize("arguments", [(CORPUS,), ()], ids=["made of the corpus", "made of nothing"])
def test_the_scorer_is_told_what_controls_first_and_nothing_void(arguments: tuple[object, ...]) -> None:
    retriever = made(*arguments)

    found = retriever.retrieve("Is EMP001-Adams's pre-clearance for XYZ still valid?", CORPUS, 100)
    assert found[0] == "blackout"
    assert "approval" not in found
    assert "other" in retriever.retrieve("Is EMP002-Baker's pre-clearance for XYZ still valid?", CORPUS, 2)


def test_another_corpus_is_read_anew() -> None:
    retriever = made(CORPUS)

    assert retriever.retrieve("EMP001-Adams pre-clearance", CORPUS[:1], 5) == ["approval"]


def test_a_corpus_that_is_not_understood_is_an_error_not_a_bad_score() -> None:
    with pytest.raises(ValueError, match="1 documents were refused"):
        made([event("x", "no_such_type", 1, "?")])

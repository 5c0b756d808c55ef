"""The default extractor on sentences of many domains: how many corrections bind, and that nothing else does.

`sentences/` has updates, updates of sentences with several values, and pairs that must stay apart. A line is a pair of
sentences, or one sentence with `[earlier=>later]`. Those of `judged_*` were written after the frames were, and measured
before anything was changed for them; `docs/decisions/memory.md` has those figures.
"""

import re
from pathlib import Path

import pytest

from stream_car.memory import Fact, FrameExtractor
from stream_car.memory.keys import comparable, note_key
from tests.support.sentences import read_pairs

FOLDER = Path(__file__).parent / "sentences"
EXTRACTOR = FrameExtractor()


def pairs(name: str) -> list[list[str]]:
    return read_pairs(FOLDER / f"{name}.txt")


def facts(text: str) -> list[Fact]:
    return [fact for fact in EXTRACTOR.extract(text) if not fact.is_note]


def kept(earlier: str, later: str) -> tuple[list[str], int]:
    """Return the texts that hold after two sentences, and how many values were retired, as a memory decides it."""
    held: dict[str, tuple[str, str]] = {}
    retired = 0
    for sentence in (earlier, later):
        for fact in EXTRACTOR.extract(sentence) or [Fact(note_key(sentence), sentence, is_note=True)]:
            key, value = comparable(str(fact.key)), comparable(fact.object)
            is_other = key in held and held[key][0] != value
            if not (fact.is_past and is_other):
                held[key] = (value, fact.text or sentence)
                retired += is_other
    return [text for _, text in held.values()], retired


def share(name: str) -> float:
    results = [kept(earlier, later) for earlier, later in pairs(name)]
    return sum(retired == 1 and len(texts) == 1 for texts, retired in results) / len(results)


@pytest.mark.parametrize(("name", "least"), [("updates", 0.95), ("judged_updates", 0.90)])
def test_a_correction_retires_what_it_corrects(name: str, least: float) -> None:
    assert share(name) >= least


@pytest.mark.parametrize(("name", "least"), [("prose", 0.85), ("judged_prose", 0.85)])
def test_of_several_values_only_the_changed_one_is_retired(name: str, least: float) -> None:
    clean = 0
    for earlier, later, stale, keeps in pairs(name):
        texts, retired = kept(earlier, later)
        is_stale = any(holds(stale, text) and text in earlier.rstrip(".") for text in texts)
        is_kept = all(any(holds(value, text) for text in texts) for value in keeps.split("; "))
        clean += retired > 0 and not is_stale and is_kept

    assert clean >= least * len(pairs(name))


def holds(value: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


@pytest.mark.parametrize("name", ["apart", "judged_apart"])
def test_what_only_looks_like_a_correction_retires_nothing(name: str) -> None:
    assert [pair for pair in pairs(name) if kept(*pair)[1]] == []
    is_past = [any(fact.is_past for fact in facts(later)) for _, later in pairs(name)]
    turned = [pair[::-1] for pair, past in zip(pairs(name), is_past, strict=True) if not past]
    assert [pair for pair in turned if kept(*pair)[1]] == []

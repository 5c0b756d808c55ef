"""The papers' tables on memory: the guard of their data, what is measured, and what is said to be left out."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="the vectors of the benchmark need numpy")

from benchmarks.memory import blind_spot, locomo, papers, staleness
from benchmarks.memory.encoders import HashedWords
from benchmarks.memory.marker_free import differs_in_value_only, is_marker_free, tells
from benchmarks.memory.stores import CosineStore, MemoryStore, TurnStore, WordStore, packed
from tests.support.repository import ROOT

SCENARIOS = ROOT.parent / "shared" / "data" / "memory" / "evolving" / "scenarios.jsonl"
PORT = {"a": "The staging API listens on port 8000.", "b": "The staging API listens on port 9000."}
POOL = {"a": "The pool size is 10 in db.toml.", "b": "The pool size is 25 in db.toml."}
PAIRS = (
    {**PORT, "question": "Which port does the staging API listen on?", "stale": "8000", "gold": "9000"},
    {**POOL, "question": "What is the pool size in db.toml?", "stale": "10", "gold": "25"},
)


def write(path: Path, *lines: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_guard_finds_words_that_tell_age_and_no_words_that_only_contain_one() -> None:
    assert tells("The OLD port; previously [deprecated].") == ["old", "previously", "deprecated"]
    assert tells("The folder holds a threshold, and knows nextflow and current_user.") == ["current"]


def test_the_guard_rejects_a_pair_that_differs_in_more_than_its_value() -> None:
    assert all(map(is_marker_free, PAIRS))
    assert not differs_in_value_only({**PAIRS[0], "b": "The staging API now listens on port 9000."})
    assert not is_marker_free({**PAIRS[0], "question": "Which port is the current one?"})


def test_the_scenarios_of_the_benchmark_have_no_markers() -> None:
    if not SCENARIOS.is_file():
        pytest.skip(f"{SCENARIOS} is not there")
    scenarios = [json.loads(line) for line in SCENARIOS.read_text("utf-8").splitlines()]

    assert [pair["id"] for pair in scenarios if not is_marker_free(pair)] == []


def test_no_system_knows_which_fact_is_newer_but_by_the_order_of_arrival() -> None:
    turned = [{**pair, "a": pair["b"], "b": pair["a"]} for pair in PAIRS]
    as_given, exchanged = (staleness.evolving(pairs, MemoryStore) for pairs in (PAIRS, turned))
    cosine, cosine_exchanged = (
        staleness.evolving(pairs, lambda: CosineStore(HashedWords([]))) for pairs in (PAIRS, turned)
    )

    assert as_given.first == exchanged.first == ("gold", "gold")
    assert cosine.share("stale", forced=True) == cosine_exchanged.share("stale", forced=True) == 1.0
    assert (as_given.compression, cosine.compression) == (50.0, 0.0)
    assert cosine.context == ("both", "both")


def test_each_store_keeps_what_its_name_says() -> None:
    words = HashedWords([])
    turns = [PORT["a"], POOL["a"], PORT["b"]]
    stores: dict[str, TurnStore] = {
        "drops": CosineStore(words, gate=0.5),
        "replaces": CosineStore(words, gate=0.5, replaces=True),
        "recent": WordStore(recent=True),
        "lossy": MemoryStore(merger=words),
        "retains": MemoryStore(retains=True),
    }
    for store in stores.values():
        for turn in turns:
            store.add(turn)
    question = "Which port does the staging API listen on?"

    assert {name: store.active() for name, store in stores.items()} == {
        "drops": 2,
        "replaces": 2,
        "recent": 3,
        "lossy": 2,
        "retains": 3,
    }
    assert stores["drops"].rank(question)[0] == PORT["a"]
    assert stores["replaces"].rank(question)[0] == PORT["b"]
    assert stores["recent"].rank(question)[0] == PORT["b"]
    assert packed(["x" * 796, "y" * 8, "z"]) == ["x" * 796, "z"]


def test_a_sweep_counts_as_the_paper_does() -> None:
    duplicates, rest = [0.99, 0.7], [0.995, 0.98, 0.75]
    step = blind_spot.duplicate_step(0.98, duplicates, rest)

    assert step == blind_spot.DuplicateStep(0.98, 3, 1 / 3, 0.5)
    assert blind_spot.auroc(duplicates, rest) == pytest.approx(2 / 6)
    assert blind_spot.auroc([1.0], [1.0]) == 0.5


def test_the_tables_name_the_papers_figures_and_what_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(locomo.VARIABLE, raising=False)
    monkeypatch.setattr(papers, "at_hand", lambda texts: [HashedWords(texts)])
    families = [{**pair, "family": family} for pair in PAIRS for family in staleness.FAMILIES]
    marked = {**families[0], "question": "Which port is the current one?"}
    write(tmp_path / "evolving/scenarios.jsonl", *families, marked)
    write(tmp_path / "evolving/lookalikes.jsonl", {"a": "Room 4 holds 12 people.", "b": "Room 5 holds 14 people."})
    labels = ("duplicate", "merge", "contradict", "novel")
    write(
        tmp_path / "evolving/pairs.jsonl",
        *({"label": label, "existing": PORT["a"], "candidate": PORT["b"]} for label in labels),
    )
    fact = {"subject": "the API", "relation": "port", "old": "1", "new": "2", "rephrase": "The API is at port 1."}
    write(tmp_path / "facts24/facts.jsonl", fact)

    assert papers.main([str(tmp_path), "--charts", str(tmp_path / "charts")]) == 0

    printed = capsys.readouterr().out
    assert "| Stream-CAR, keys given | 1.000 (1/1) | 0.000 (0/1) | 0.000 (0/1) | 0 |" in printed
    assert "| code_mutation | 1.000 (2/2) | 0.000 (0/2) |" in printed
    assert "1 scenarios are left out" in printed
    assert "MiniLM is left out" in printed and "LoCoMo is left out" in printed and "Left out: answers of" in printed
    assert {path.name for path in (tmp_path / "charts").iterdir()} == {"right.svg", "stale.svg", "growth.svg"}


def test_without_the_sets_the_papers_tables_name_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert papers.main([str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().out


def test_locomo_is_read_from_where_the_user_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [
        {"speaker": "Ana", "dia_id": "D1:1", "text": "I adopted a puppy called Rex."},
        {"speaker": "Ben", "dia_id": "D1:2", "text": "My train was late."},
    ]
    question = {"question": "What is the name of the puppy?", "evidence": ["D1:1"], "category": 1}
    sample = {
        "conversation": {"speaker_a": "Ana", "session_1": turns},
        "qa": [question, {"question": "x?", "answer": ""}],
    }
    (tmp_path / locomo.FILE).write_text(json.dumps([sample]))
    monkeypatch.setenv(locomo.VARIABLE, str(tmp_path))

    assert list(locomo.report()) == [
        f"LoCoMo, {system}: recall@25 of evidence 1.000 (any), 1.000 (all), n = 1" for system in ("BM25", "Stream-CAR")
    ]

"""The table of memories: what it measures, and what it says that it leaves out."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.memory.__main__ import main
from benchmarks.memory.walks import answer


def write(path: Path, *lines: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_each_set_that_is_there_has_its_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capital = "The capital of Norland is"
    write(tmp_path / "factconsolidation/6k/facts.jsonl", {"text": f"{capital} Oslo."}, {"text": f"{capital} Turin."})
    question = {"hop": "sh", "text": "What is the capital of Norland?", "answers": ["Turin"]}
    write(tmp_path / "factconsolidation/6k/questions.jsonl", question, {**question, "answers": ["Oslo"]})
    write(tmp_path / "evolving/lookalikes.jsonl", {"a": "Room 4 holds 12 people.", "b": "Room 5 holds 14 people."})

    assert main(tmp_path) == 0

    table = capsys.readouterr().out
    assert "| single hop 6k: gold in the first fact | >= 99 % | 50.0 % (1/2) |" in table
    assert "| look-alikes: superseded | 0 | 0/1 |" in table
    assert "single hop 32k (no data)" in table and "chain_binding (no data)" in table


@pytest.mark.parametrize(
    ("question", "end"),
    [
        ("What is the capital of the country where the author of Winter Salt is a citizen?", "Turin"),
        ("Which country is the writer of 'Winter Salt' a citizen of?", "Norland"),
        ("On which continent is the country whose citizenship the author of Winter Salt holds?", "Sudia"),
        ("Who is the spouse of the author of Winter Salt?", "Otto Brand"),
        ("Who wrote Summer Pepper?", ""),
    ],
)
def test_a_walk_over_keys_follows_the_relations_that_a_question_names(question: str, end: str) -> None:
    facts = {
        "winter salt": {"author": "Pia Strand", "language of the work": "Norse"},
        "pia strand": {"citizenship": "Norland", "spouse": "Otto Brand", "place of birth": "Oslo"},
        "norland": {"capital": "Turin", "continent": "Sudia"},
        "oslo": {"continent": "Nordia"},
    }

    assert answer(question, facts)[0] == end


def test_a_folder_without_sets_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(tmp_path) == 1
    assert str(tmp_path) in capsys.readouterr().out

"""A text replaces the one that it restates: equal but for a value. What only looks so stays beside it."""

from itertools import permutations
from pathlib import Path

import pytest

from stream_car.memory import Memory
from stream_car.memory.restatements import restated_values
from tests.support.sentences import read_pairs

FOLDER = Path(__file__).parent / "sentences"


def restates(new: str, old: str) -> bool:
    return restated_values(new, old) is not None


@pytest.mark.parametrize("pair", read_pairs(FOLDER / "restated.txt"), ids=lambda pair: pair[1])
def test_a_sentence_with_another_value_restates_the_earlier_one(pair: list[str]) -> None:
    assert restates(pair[1], pair[0])
    assert restates(pair[0], pair[1])


@pytest.mark.parametrize("name", ["not_restated", "apart", "judged_apart"])
def test_another_subject_or_an_addition_restates_nothing(name: str) -> None:
    pairs = read_pairs(FOLDER / f"{name}.txt")

    assert [pair for pair in pairs if restates(*pair) or restates(*pair[::-1])] == []


def test_sentences_about_different_things_never_restate_one_another() -> None:
    pairs = read_pairs(FOLDER / "restated.txt")
    belonging = {frozenset(pair) for pair in pairs}
    sentences = [sentence for pair in pairs for sentence in pair]

    restated = [pair for pair in permutations(sentences, 2) if frozenset(pair) not in belonging and restates(*pair)]

    assert restated == []


def test_a_memory_retires_what_a_text_restates() -> None:
    with Memory() as memory:
        memory.add("Uploads larger than 20 MB are rejected by the gateway.")
        memory.add("Downloads are logged by the gateway.")
        [added] = memory.add("Uploads larger than 50 MB are rejected by the gateway.")["results"]
        [repeated] = memory.add("Uploads larger than 50 MB are rejected by the gateway.")["results"]

        assert added["event"] == "SUPERSEDE"
        assert repeated["event"] == "REINFORCE"
        held = {item["memory"] for item in memory.get_all()["results"]}
        assert held == {
            "Downloads are logged by the gateway.",
            "Uploads larger than 50 MB are rejected by the gateway.",
        }
        assert memory.history(added["key"])[0]["new_memory"] == "Uploads larger than 20 MB are rejected by the gateway."


def test_a_memory_of_another_owner_is_never_restated() -> None:
    with Memory() as memory:
        memory.add("The alarm in the hall goes off above 30 degrees.", user_id="ada")
        [added] = memory.add("The alarm in the hall goes off above 35 degrees.", user_id="bo")["results"]

        assert added["event"] == "ADD"


def test_a_restated_value_of_a_named_key_is_a_value_not_a_sentence() -> None:
    with Memory() as memory:
        memory.add("The box listens for us on 8080", key="staging::port", object="8080")
        [confirmed] = memory.add("The box listens for us on 8080")["results"]
        [replaced] = memory.add("The box listens for us on 9090")["results"]

        assert (confirmed["event"], confirmed["object"]) == ("REINFORCE", "8080")
        assert (replaced["event"], replaced["object"]) == ("SUPERSEDE", "9090")


def test_a_value_that_is_not_in_the_text_of_its_key_is_not_restated() -> None:
    with Memory() as memory:
        memory.add("The box listens for us on 8080", key="staging::port", object="eight thousand eighty")
        [added] = memory.add("The box listens for us on 9090")["results"]

        assert added["event"] == "ADD"

"""How close a match is to a question, on one scale for every collection."""

from stream_car.ranking.closeness import CLOSE, closeness


def test_a_match_with_the_rare_words_of_a_question_is_close() -> None:
    frequencies = {"prototype": 3, "pollution": 2, "fix": 900}

    assert closeness(frequencies, 1_000, [{"prototype", "pollution"}]) > 0.9
    assert closeness(frequencies, 1_000, [{"fix"}]) < 0.1
    assert closeness(frequencies, 1_000, [{"fix"}, {"prototype", "pollution"}]) > 0.9
    assert closeness(frequencies, 1_000, []) == 0.0


def test_words_that_no_document_has_count_less_in_a_small_collection() -> None:
    frequencies = {"log4shell": 1, "mitigation": 0, "today": 0}

    assert closeness(frequencies, 4, [{"log4shell"}]) > CLOSE
    assert closeness(frequencies, 100_000, [{"log4shell"}]) < 0.5


def test_the_words_of_asking_do_not_count() -> None:
    assert closeness({"what": 0, "which": 0, "tea": 5}, 1_000, [{"tea"}]) == 1.0
    assert closeness({"what": 0}, 1_000, [set()]) == 1.0

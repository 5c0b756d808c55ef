"""What a text is found by."""

import pytest

from stream_car.ranking.analysis import joined_terms, name, names, possible_names, terms, words
from stream_car.ranking.bm25 import join_terms


def test_words_are_runs_of_letters_and_digits_without_case_and_accents() -> None:
    assert words("Café servers_LEAK, EMP060-Evans's ﬁ 文字 🙂") == [
        "cafe", "servers", "leak", "emp060", "evans", "s", "fi", "文字",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["a_b-C9 d'e", "x" * 200 + " y", "1.2.3 (4)", "\x00tab\tnew\nline", ""])
def test_plain_and_other_texts_are_read_alike(text: str) -> None:
    assert words(text + " é")[:-1] == words(text)


def test_terms_have_neither_stop_words_nor_endings() -> None:
    assert terms("The servers were leaking") == ["server", "were", "leak"]
    assert terms("The servers were leaking", stems=False) == ["servers", "were", "leaking"]
    assert terms("y" * 101 + " the") == []


@pytest.mark.parametrize("text", ["The servers were leaking.\nServers!", "Café, the leaking", "the " + "y" * 101, ""])
@pytest.mark.parametrize("stems", [True, False])
def test_terms_are_joined_as_they_are_found(text: str, stems: bool) -> None:
    text_terms = terms(text, stems=stems)

    assert joined_terms(text, stems=stems) == (join_terms(text_terms), len(text_terms))


@pytest.mark.parametrize(
    "value", ["EMP060-Evans", "CVE-2024-1", "a_b C.9", "".join(map(chr, range(128))), "Ünal é", ""]
)
def test_a_name_is_the_words_of_a_value_without_spaces(value: str) -> None:
    assert name(value) == "".join(words(value))


def test_a_question_mentions_a_value_however_it_is_punctuated() -> None:
    names = possible_names("Is Roberts v. Moore, 312 U.S. 760 (2010) still good law for EMP060-Evans?")

    for value in ("roberts_v_moore_312us760", "EMP060-Evans", "moore"):
        assert name(value) in names
    assert name("roberts_v_moore_312us761") not in names


def test_stop_words_and_single_letters_name_nothing() -> None:
    assert possible_names("it is a b") == ["itis", "itisa", "itisab", "isa", "isab", "ab"]
    assert names(["IT", "*", "", "A", "CVE-1", "cve_1"]) == ["cve1"]


def test_a_long_text_is_searched_for_names_at_its_beginning_only() -> None:
    assert "target" in possible_names("word " * 95 + "target")
    assert "target" not in possible_names("word " * 96 + "target")

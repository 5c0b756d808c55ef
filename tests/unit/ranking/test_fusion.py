"""Words and vectors in one score."""

from stream_car.ranking.anchor_order import Hit
from stream_car.ranking.fusion import fuse


def test_a_cosine_is_worth_its_nats() -> None:
    hits = fuse([Hit("a", 5.0), Hit("b", 4.0)], {"a": 0.1, "b": 0.9}, dense=2.0)

    assert hits == [Hit("b", 5.8), Hit("a", 5.2)]


def test_what_only_vectors_found_has_no_evidence_from_words() -> None:
    assert fuse([Hit("a", 5.0)], {"a": 0.0, "c": 1.0}, dense=3.0) == [Hit("a", 5.0), Hit("c", 3.0)]


def test_what_has_no_vector_yet_is_not_held_back() -> None:
    hits = fuse([Hit("new", 5.0), Hit("a", 5.0), Hit("b", 5.0)], {"a": 0.2, "b": 0.6}, dense=10.0)

    assert hits == [Hit("b", 11.0), Hit("new", 9.0), Hit("a", 7.0)]


def test_without_vectors_the_order_is_that_of_words_and_ties_go_by_id() -> None:
    hits = fuse([Hit("b", 2.0), Hit("a", 2.0), Hit("c", 3.0)], {}, dense=3.0)

    assert [hit.id for hit in hits] == ["c", "a", "b"]

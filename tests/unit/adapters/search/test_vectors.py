"""Vectors that are made in the background: what is behind, what is replaced, what a folder keeps."""

import sqlite3
import struct
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from stream_car.adapters import database
from stream_car.adapters.search.vectors import Vectors
from stream_car.errors import Halted, StreamCarError
from tests.support.engines import document, engine

MEANINGS = ({"car", "automobile", "vehicle"}, {"comet", "meteor"}, {"tea", "infusion"})


class Meanings:
    """A small encoder: which of a few meanings a text's words have."""

    def __init__(self, name: str = "meanings") -> None:
        self.name = name
        self.texts: list[str] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        """A vector of length one, or of zeros for a text without meaning."""
        self.may_go_on.wait(30)
        self.texts += texts
        return [self._vector(set(text.lower().split())) for text in texts]

    def _vector(self, words: set[str]) -> bytes:
        counts = [float(len(meaning & words)) for meaning in MEANINGS]
        length = sum(count * count for count in counts) ** 0.5 or 1.0
        return struct.pack("<3f", *(count / length for count in counts))


def test_what_was_noted_is_found_by_its_meaning_once_it_is_encoded(tmp_path: Path) -> None:
    vectors = Vectors(tmp_path / "v.sqlite", Meanings())
    vectors.apply([("a", "automobile"), ("b", "comet")], (), 2)
    vectors.settle()

    assert vectors.cosines("car", [], 1) == {"a": 1.0}
    assert vectors.cosines("car", ["b", "never"], 1) == {"a": 1.0, "b": 0.0}
    assert vectors.cosines("car", [], 1, ["b", "never"]) == {"b": 0.0}
    assert vectors.cosines("car", [], 5, []) == {}
    vectors.close()


def test_what_is_behind_is_counted_and_never_mistaken(tmp_path: Path) -> None:
    encoder = Meanings()
    vectors = Vectors(tmp_path / "v.sqlite", encoder)
    encoder.may_go_on.clear()
    vectors.apply([("a", "automobile"), ("b", "comet")], (), 2)
    vectors.apply([("a", "tea")], ["b"], 4)
    assert vectors.pending() == 1

    encoder.may_go_on.set()
    vectors.settle()

    assert vectors.cosines("tea", ["a", "b"], 5) == {"a": 1.0}
    assert vectors.pending() == 0
    vectors.close()


def test_a_folder_keeps_its_vectors_and_what_is_still_to_come(tmp_path: Path) -> None:
    encoder = Meanings()
    vectors = Vectors(tmp_path / "v.sqlite", encoder)
    vectors.apply([("a", "automobile")], (), 1)
    vectors.settle()
    encoder.may_go_on.clear()
    vectors.apply([("b", "comet")], (), 2)
    threading.Timer(0.05, encoder.may_go_on.set).start()
    vectors.close()

    again = Vectors(tmp_path / "v.sqlite", fresh := Meanings())
    again.settle()

    assert again.position == 2
    assert again.cosines("car comet", ["a", "b"], 0).keys() == {"a", "b"}
    assert "automobile" not in fresh.texts
    again.close()


def test_another_encoders_vectors_are_begun_anew(tmp_path: Path) -> None:
    vectors = Vectors(tmp_path / "v.sqlite", Meanings())
    vectors.apply([("a", "automobile")], (), 1)
    vectors.settle()
    vectors.close()

    other = Vectors(tmp_path / "v.sqlite", Meanings("other"))

    assert (other.position, other.cosines("car", ["a"], 5)) == (0, {})
    other.close()


def test_a_failing_encoder_is_heard_of(tmp_path: Path) -> None:
    class Broken(Meanings):
        def encode(self, texts: Sequence[str]) -> list[bytes]:
            raise StreamCarError("no memory left")

    vectors = Vectors(tmp_path / "v.sqlite", Broken())
    vectors.apply([("a", "automobile")], (), 1)

    with pytest.raises(StreamCarError, match="no memory left"):
        vectors.settle()
    assert vectors.pending() == 1
    vectors.close()


def damage(path: Path, statement: str) -> None:
    """Change the closed file behind the back of its owner."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_an_error_of_the_file_in_the_thread_is_one_of_ours(tmp_path: Path) -> None:
    path, encoder = tmp_path / "v.sqlite", Meanings()
    encoder.may_go_on.clear()
    vectors = Vectors(path, encoder)
    vectors.apply([("a", "automobile")], (), 1)
    vectors.flush()
    damage(path, "DROP TABLE waiting")
    encoder.may_go_on.set()

    with pytest.raises(StreamCarError, match="no such table: waiting"):
        vectors.settle()
    vectors.close()


def test_a_file_that_cannot_be_opened_or_committed_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.sqlite"
    vectors = Vectors(path, Meanings())
    vectors.apply([("a", "automobile"), ("b", "comet")], (), 1)
    vectors.settle()
    vectors.close()
    opened: list[sqlite3.Connection] = []

    def connect(path: Path, *, synchronous: Literal["FULL", "NORMAL"]) -> sqlite3.Connection:
        opened.append(database.connect(path, synchronous=synchronous))
        return opened[-1]

    monkeypatch.setattr("stream_car.adapters.search.vectors.connect", connect)
    damage(path, "UPDATE vectors SET vector = x'00000000' WHERE id = 'b'")
    with pytest.raises(Halted) as caught:
        Vectors(path, Meanings())
    assert caught.value.code == "damaged"

    damage(path, "DELETE FROM vectors")
    vectors = Vectors(path, Meanings())
    monkeypatch.setattr(vectors, "flush", fail)
    with pytest.raises(StreamCarError, match="no space"):
        vectors.close()
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def fail() -> None:
    raise StreamCarError("no space")


def test_an_engine_with_an_encoder_finds_by_meaning_and_says_when_it_is_behind(tmp_path: Path) -> None:
    encoder = Meanings()
    with engine(tmp_path, encoder=encoder) as here:
        encoder.may_go_on.clear()
        here.publish([document("a", topic="one", text="an automobile"), document("b", topic="two", text="hot tea")])
        threading.Timer(0.05, encoder.may_go_on.set).start()
        here.settle()
        answer = here.query("car")

        assert [one.id for one in answer.results][:1] == ["a"]
        assert answer.vectors_pending == 0
        here.retract("a")
        assert "a" not in [one.id for one in here.query("car").results]
    with engine(tmp_path, encoder=encoder) as here:
        assert [one.id for one in here.query("tea").results][:1] == ["b"]
    with engine(tmp_path) as here:
        assert [one.id for one in here.query("tea").results] == ["b"]


def test_by_meaning_too_a_scope_is_never_left(tmp_path: Path) -> None:
    with engine(tmp_path, encoder=Meanings()) as here:
        here.publish([document(f"a{n}", topic="one", text="an automobile") for n in range(300)])
        here.publish([document("b", topic="two", text="an automobile in snow"), document("c", topic="two", text="tea")])
        here.settle()

        assert [one.id for one in here.query("car", scope={"topic": "two"}).results] == ["b", "c"]
        assert here.query("car", scope={"topic": "three"}).results == ()


def test_vectors_turned_on_later_are_made_from_the_log(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish([document("a", topic="one", text="an automobile")])
        assert here.query("car").results == ()
    with engine(tmp_path, encoder=Meanings()) as here:
        here.settle()
        assert [one.id for one in here.query("car").results] == ["a"]

"""What the adapter asks of sentence-transformers and makes of the answer; `tests/dense` has the library itself."""

import threading
from array import array
from concurrent.futures import ThreadPoolExecutor

import numpy
from numpy.typing import NDArray

from stream_car.adapters.search.sentence_encoder import AT_ONCE, SentenceTransformerEncoder


class Lengths:
    """A model of a kind: a text's length beside one; it notes what it is asked, and by how many at a time."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.options: set[tuple[bool, bool, bool]] = set()
        self.inside = 0
        self.most = 0
        self._guard = threading.Lock()

    def encode(
        self, sentences: list[str], *, normalize_embeddings: bool, convert_to_numpy: bool, show_progress_bar: bool
    ) -> NDArray[numpy.float32]:
        with self._guard:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.batches.append(len(sentences))
        self.options.add((normalize_embeddings, convert_to_numpy, show_progress_bar))
        rows = numpy.array([[len(text), 1.0] for text in sentences], dtype=numpy.float32)
        with self._guard:
            self.inside -= 1
        return rows


def test_every_text_has_its_vector_in_order_as_little_endian_floats() -> None:
    model = Lengths()
    texts = ["x" * number for number in range(2 * AT_ONCE + 3)]
    vectors = SentenceTransformerEncoder(model, name="lengths").encode(texts)

    assert [array("f", vector)[0] for vector in vectors] == [float(len(text)) for text in texts]
    assert {len(vector) for vector in vectors} == {8}
    assert model.options == {(True, True, False)}


def test_texts_are_encoded_a_few_at_a_time_so_that_a_question_has_its_turn() -> None:
    model = Lengths()
    encoder = SentenceTransformerEncoder(model, name="lengths")
    encoder.encode(["x"] * (2 * AT_ONCE + 3))

    assert model.batches == [AT_ONCE, AT_ONCE, 3]
    assert encoder.encode([]) == []


def test_two_threads_never_use_the_model_at_once() -> None:
    model = Lengths()
    encoder = SentenceTransformerEncoder(model, name="lengths")
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(lambda _: encoder.encode(["x"] * 40), range(20)):
            assert len(vectors) == 40

    assert model.most == 1

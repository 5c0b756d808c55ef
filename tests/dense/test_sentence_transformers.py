"""The extra `sentence-transformers` with the library itself and a real small model: `make sentence-transformers`."""

from array import array
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from operator import mul
from pathlib import Path

import pytest

from stream_car.adapters.search import encoders
from stream_car.errors import StreamCarError
from stream_car.ports import Encoder
from tests.dense.models import ALIKE, OTHER, WHOLE, inside, nearness
from tests.support.engines import document, engine

if find_spec("sentence_transformers") is None or find_spec(WHOLE) is None:
    pytest.skip("the library is not installed; run `make sentence-transformers`", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("default")  # what the libraries warn each other of is not ours


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The model, loaded once, as `--encoder FOLDER` loads it."""
    return encoders.load_encoder(inside(WHOLE, "model"))


def test_a_folder_of_the_library_is_read_by_the_library(encoder: Encoder) -> None:
    kind, name = type(encoder).__name__, encoder.name

    assert kind == "SentenceTransformerEncoder"
    assert name.startswith("model sentence-transformers ")


def test_vectors_have_length_one_whatever_they_are_encoded_with(encoder: Encoder) -> None:
    [alone] = encoder.encode(["a dog runs"])
    beside = encoder.encode(["a dog runs", "something much longer, about another matter entirely " * 9])[0]
    first, second = array("f", alone), array("f", beside)

    assert len(first) == 384
    assert sum(map(mul, first, first)) == pytest.approx(1.0, abs=1e-5)
    assert sum(map(mul, first, second)) == pytest.approx(1.0, abs=1e-5)
    assert list(encoder.encode([])) == []


def test_like_meanings_are_near(encoder: Encoder) -> None:
    assert nearness(encoder, *ALIKE) > 0.4
    assert nearness(encoder, ALIKE[0], OTHER) < 0.2


def test_questions_and_documents_may_be_encoded_at_once(encoder: Encoder) -> None:
    texts = ["word " * number for number in range(1, 40)]
    alone = list(encoder.encode(texts))
    with ThreadPoolExecutor(2) as pool:
        for vectors in pool.map(encoder.encode, [texts] * 4):
            for vector, expected in zip(vectors, alone, strict=True):
                assert array("f", vector).tolist() == pytest.approx(array("f", expected).tolist(), abs=1e-5)


def test_an_answer_is_found_by_its_meaning_and_led_on_by_authority(encoder: Encoder, tmp_path: Path) -> None:
    with engine(tmp_path, encoder=encoder) as here:
        here.publish(
            [
                document("drug", at=1, topic="a", text="The physician prescribed a drug against high blood pressure"),
                document("trade", at=1, topic="b", text="Employees may trade shares again"),
                document("recall", "denial", at=2, topic="a", text="All lots withdrawn"),
            ]
        )
        here.settle()
        assert here.query("hypertension medicine from doctors", k=1).results[0].id == "recall"


def test_a_name_that_is_not_on_this_machine_is_not_fetched() -> None:
    with pytest.raises(StreamCarError, match="no model 'no-such-model-anywhere' on this machine"):
        encoders.load_encoder("sentence-transformers:no-such-model-anywhere")

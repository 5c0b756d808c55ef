"""A sentence encoder by the library sentence-transformers: an extra of its own, because it needs PyTorch.

Promise: a text's vector does not depend on the texts beside it, but for the last digits. Nothing is fetched:
a model is a folder, or a name whose files the library has in its cache. Cost: that of the model; loading
PyTorch takes seconds.
"""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy
from numpy.typing import NDArray

from stream_car.errors import StreamCarError

AT_ONCE = 8  # texts encoded before a question that waits has its turn


class Model(Protocol):
    """What is asked of a `sentence_transformers.SentenceTransformer`."""

    def encode(
        self, sentences: list[str], *, normalize_embeddings: bool, convert_to_numpy: bool, show_progress_bar: bool
    ) -> NDArray[numpy.float32]:
        """A row for each text."""
        ...


class SentenceTransformerEncoder:
    """Implements `ports.Encoder` over a loaded model, on whatever device it is."""

    def __init__(self, model: Model, *, name: str) -> None:
        self.name = name
        self._model = model
        self._turn = threading.Lock()  # its tokenizer is not to be used by two threads at once

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        """A vector of length one for each text, as little-endian 32-bit floats."""
        found: list[bytes] = []
        for at in range(0, len(texts), AT_ONCE):
            with self._turn:
                rows = self._model.encode(
                    list(texts[at : at + AT_ONCE]),
                    normalize_embeddings=True,
                    convert_to_numpy=True,
                    show_progress_bar=False,
                )
            found += [row.astype("<f4").tobytes() for row in rows]
        return found


def load(model: str | Path, *, name: str = "") -> SentenceTransformerEncoder:
    """The model in a folder, or one of the library's cache by its name. Raises `StreamCarError`."""
    from sentence_transformers import SentenceTransformer

    try:
        loaded = SentenceTransformer(str(model), local_files_only=True)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise StreamCarError(
            f"sentence-transformers has no model {str(model)!r} on this machine ({reason}); give the folder of one, "
            "or fetch it first with that library"
        ) from error
    return SentenceTransformerEncoder(loaded, name=name or Path(model).name)

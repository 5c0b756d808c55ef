"""A sentence encoder of the library sentence-transformers: an extra of its own, because it needs PyTorch.

Promise: except for the last digits, the vector of a text does not depend on the texts that are encoded with it. Nothing
is downloaded: a model is a folder, or a name whose files the library has in its cache. Cost: that of the model; loading
PyTorch takes seconds.
"""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

import numpy
from numpy.typing import NDArray

from stream_car.errors import StreamCarError

AT_ONCE = 8  # texts encoded before a waiting query has its turn


class Model(Protocol):
    """The part of `sentence_transformers.SentenceTransformer` that is used here."""

    def encode(
        self,
        sentences: list[str],
        /,
        *,
        normalize_embeddings: bool,
        convert_to_numpy: Literal[True],
        show_progress_bar: bool,
    ) -> NDArray[numpy.float32]:
        """Return one row per text."""
        ...


class SentenceTransformerEncoder:
    """Implements `ports.Encoder` with a loaded model, on the device that the model is on."""

    def __init__(self, model: Model, *, name: str) -> None:
        self.name = name
        self._model = model
        self._turn = threading.Lock()  # two threads must not use its tokenizer at once

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        vectors: list[bytes] = []
        for start in range(0, len(texts), AT_ONCE):
            with self._turn:
                rows = self._model.encode(
                    list(texts[start : start + AT_ONCE]),
                    normalize_embeddings=True,
                    convert_to_numpy=True,
                    show_progress_bar=False,
                )
            vectors += [row.astype("<f4").tobytes() for row in rows]
        return vectors


def load_model(model: str | Path, *, name: str = "") -> SentenceTransformerEncoder:
    """Load the model in a folder, or a model of the library's cache by its name. Raises `StreamCarError`."""
    from sentence_transformers import SentenceTransformer

    try:
        loaded = SentenceTransformer(str(model), local_files_only=True)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise StreamCarError(
            f"sentence-transformers has no model {str(model)!r} on this machine ({reason}). Name the folder of a "
            "model, or download this one with that library first."
        ) from error
    return SentenceTransformerEncoder(loaded, name=name or Path(model).name)

"""A sentence encoder in ONNX, without PyTorch: the `dense` extra.

Promise: except for the last digits, the vector of a text does not depend on the texts that are encoded with it. It
reads an ONNX model and its `tokenizer.json`, as sentence-transformers models are exported, and downloads nothing.
Cost: with MiniLM about 10 ms for a text of 1 KB on one core.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy
import onnxruntime
from tokenizers import Tokenizer

from stream_car.errors import StreamCarError

TOKENS_MAX = 256
THREADS = 1
Pooling = Literal["mean", "first"]


class _PoolingConfig(msgspec.Struct):
    """How the authors of a model combine the vectors of the tokens."""

    pooling_mode_cls_token: bool = False
    pooling_mode: str = ""


def read_pooling(folder: Path) -> Pooling:
    """Return the pooling that the model in a folder is configured for; the mean by default."""
    file = folder / "1_Pooling" / "config.json"
    config = msgspec.json.decode(file.read_bytes(), type=_PoolingConfig) if file.is_file() else _PoolingConfig()
    return "first" if config.pooling_mode_cls_token or config.pooling_mode == "cls" else "mean"


class OnnxEncoder:
    """Implements `ports.Encoder`: the mean of the last layer over a text's tokens, or its first, of length one."""

    def __init__(self, model: Path | str, tokenizer: Path | str, *, name: str = "", pooling: Pooling = "mean") -> None:
        self.name = name or Path(model).parent.name
        self._pooling = pooling
        for file in (Path(model), Path(tokenizer)):
            if not file.is_file():
                raise StreamCarError(f"The file {file} is missing. An encoder needs an ONNX model and tokenizer.json.")
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(TOKENS_MAX)
        self._tokenizer.enable_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._inputs = [node.name for node in self._session.get_inputs()]

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        if not texts:
            return []
        batch = self._tokenizer.encode_batch(list(texts))
        ids = numpy.array([tokens.ids for tokens in batch], dtype=numpy.int64)
        mask = numpy.array([tokens.attention_mask for tokens in batch], dtype=numpy.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        layer = self._session.run(None, {name: inputs[name] for name in self._inputs})[0]
        if self._pooling == "first":
            pooled = layer[:, 0]
        else:
            pooled = (layer * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        vectors = pooled / numpy.maximum(numpy.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)
        return [vector.astype("<f4").tobytes() for vector in vectors]

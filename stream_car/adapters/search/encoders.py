"""Loads the encoder that `--encoder`, `$STREAM_CAR_ENCODER`, a settings file or a caller chose.

Promise: nothing is downloaded. A folder with an ONNX model is read by onnxruntime, any other folder by
sentence-transformers; the prefix `onnx:` or `sentence-transformers:` overrides that. Vectors are stored under a name
that changes with the model's files, so that vectors of two models are never compared.
"""

from hashlib import blake2b
from pathlib import Path

from stream_car.errors import InvalidRequest, StreamCarError
from stream_car.ports import Encoder

ONNX, SENTENCES = "onnx", "sentence-transformers"
MODELS = ("model.onnx", "onnx/model.onnx")  # possible paths of an ONNX model in its folder
WEIGHTS = (*MODELS, "model.safetensors", "pytorch_model.bin")
TOKENIZER = "tokenizer.json"
EDGE_BYTES = 1 << 20  # at both ends of a file, for its fingerprint


def load_encoder(choice: str | Path) -> Encoder:
    """Return the encoder in a folder, or with a name. Raises `InvalidRequest` (`encoder`), `StreamCarError`."""
    kind, model = _parse(str(choice))
    folder = Path(model)
    name = encoder_name(kind, folder)
    try:
        if kind == ONNX:
            from stream_car.adapters.search import onnx_encoder

            return onnx_encoder.OnnxEncoder(
                _model_file(folder), folder / TOKENIZER, name=name, pooling=onnx_encoder.read_pooling(folder)
            )
        from stream_car.adapters.search import sentence_encoder

        return sentence_encoder.load_model(model, name=name)
    except ImportError as error:
        extra = "dense" if kind == ONNX else SENTENCES
        cure = f"Run: pip install 'stream-car[{extra}]'."
        raise InvalidRequest("encoder", f"This encoder needs a missing library ({error}). {cure}") from None
    except StreamCarError:
        raise
    except Exception as error:  # libraries raise anything about files that are not what their names promise
        raise InvalidRequest("encoder", f"The model {model} cannot be read as a sentence encoder ({error}).") from None


def encoder_name(kind: str, folder: Path) -> str:
    """Return the name under which vectors of this model are stored."""
    return f"{folder.name} {kind} {_fingerprint(folder)}".rstrip()


def _parse(choice: str) -> tuple[str, str]:
    """Return the kind of the encoder, and its folder or name."""
    kind, colon, model = choice.partition(":")
    if colon and kind in (ONNX, SENTENCES):
        return kind, model
    folder = Path(choice)
    if any((folder / name).is_file() for name in MODELS):
        return ONNX, choice
    if (folder / "modules.json").is_file() or (folder / "config.json").is_file():
        return SENTENCES, choice
    raise InvalidRequest(
        "encoder",
        f"The path {choice!r} has no sentence encoder. Name a folder with {MODELS[0]} and {TOKENIZER}, a folder of "
        f"sentence-transformers, or {SENTENCES}:NAME for a model in that library's cache.",
    )


def _model_file(folder: Path) -> Path:
    return next((folder / name for name in MODELS if (folder / name).is_file()), folder / MODELS[0])


def _fingerprint(folder: Path) -> str:
    """Return eight digits that change with the weights; an empty string if there are no files."""
    digest = blake2b(digest_size=4)
    files = [folder / name for name in WEIGHTS if (folder / name).is_file()]
    for file in files:
        with file.open("rb") as stream:
            digest.update(stream.read(EDGE_BYTES))
            stream.seek(max(0, file.stat().st_size - EDGE_BYTES))
            digest.update(stream.read(EDGE_BYTES))
    return digest.hexdigest() if files else ""

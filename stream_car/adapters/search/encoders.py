"""Which encoder is meant: what `--encoder`, `$STREAM_CAR_ENCODER`, a settings file or a caller says.

Promise: nothing is fetched. A folder with an ONNX model is read by the light runtime, any other by
sentence-transformers; `onnx:` or `sentence-transformers:` before it decides. Vectors are kept under a name
that changes with the model's files, so that those of two models never meet.
"""

from hashlib import blake2b
from pathlib import Path

from stream_car.errors import InvalidRequest, StreamCarError
from stream_car.ports import Encoder

ONNX, SENTENCES = "onnx", "sentence-transformers"
MODELS = ("model.onnx", "onnx/model.onnx")  # where an ONNX model lies in its folder
WEIGHTS = (*MODELS, "model.safetensors", "pytorch_model.bin")
TOKENIZER = "tokenizer.json"
EDGE = 1 << 20  # bytes at both ends of a file that tell it from another


def encoder(said: str | Path) -> Encoder:
    """The encoder of a folder, or of a name. Raises `InvalidRequest` (`encoder`), `StreamCarError`."""
    kind, place = _read(str(said))
    folder = Path(place)
    name = named(kind, folder)
    try:
        if kind == ONNX:
            from stream_car.adapters.search import onnx_encoder

            return onnx_encoder.OnnxEncoder(
                _model(folder), folder / TOKENIZER, name=name, pooling=onnx_encoder.pooling(folder)
            )
        from stream_car.adapters.search import sentence_encoder

        return sentence_encoder.load(place, name=name)
    except ImportError as error:
        extra = "dense" if kind == ONNX else SENTENCES
        raise InvalidRequest("encoder", f"{error}; this encoder needs: pip install 'stream-car[{extra}]'") from None
    except StreamCarError:
        raise
    except Exception as error:  # whatever a library says of files that are not what they are called
        raise InvalidRequest("encoder", f"{place} cannot be read as a sentence encoder: {error}") from None


def named(kind: str, folder: Path) -> str:
    """What vectors of this model are kept under."""
    return f"{folder.name} {kind} {_fingerprint(folder)}".rstrip()


def _read(said: str) -> tuple[str, str]:
    """The kind that is meant, and the folder or name."""
    kind, colon, place = said.partition(":")
    if colon and kind in (ONNX, SENTENCES):
        return kind, place
    folder = Path(said)
    if any((folder / name).is_file() for name in MODELS):
        return ONNX, said
    if (folder / "modules.json").is_file() or (folder / "config.json").is_file():
        return SENTENCES, said
    raise InvalidRequest(
        "encoder",
        f"{said!r} holds no sentence encoder: that is a folder with {MODELS[0]} and {TOKENIZER}, or one of "
        f"sentence-transformers; a model in that library's cache is {SENTENCES}:NAME",
    )


def _model(folder: Path) -> Path:
    return next((folder / name for name in MODELS if (folder / name).is_file()), folder / MODELS[0])


def _fingerprint(folder: Path) -> str:
    """Eight digits that change with the weights; none for a name."""
    digest = blake2b(digest_size=4)
    files = [folder / name for name in WEIGHTS if (folder / name).is_file()]
    for file in files:
        with file.open("rb") as stream:
            digest.update(stream.read(EDGE))
            stream.seek(max(0, file.stat().st_size - EDGE))
            digest.update(stream.read(EDGE))
    return digest.hexdigest() if files else ""

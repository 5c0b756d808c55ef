"""Models from the command line: encoders in a folder, and programs as cross-encoders and generators.

Promise: nothing is downloaded. A program is started once per question; if it fails, the error shows what it printed on
standard error.
"""

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.paper.models import CachingEncoder, CrossEncoder, Generator
from stream_car.adapters.search.encoders import load_encoder
from stream_car.errors import InvalidRequest


def load_encoders(folders: Sequence[str]) -> dict[str, CachingEncoder]:
    """Load the encoders of these folders, by the folder's name, or by the whole path if names are not unique."""
    names = [Path(folder).name for folder in folders]
    return {
        name if names.count(name) == 1 else folder: CachingEncoder(load_encoder(folder))
        for name, folder in zip(names, folders, strict=True)
    }


def cross_encoder(command: str) -> CrossEncoder:
    """Return a cross-encoder that is a program: lines of `{"question", "text"}` in, one number per line out."""

    def score(question: str, texts: Sequence[str]) -> list[float]:
        lines = [msgspec.json.encode({"question": question, "text": text}).decode() for text in texts]
        output = _run(command, "".join(f"{line}\n" for line in lines))
        try:
            scores = [float(word) for word in output.split()]
        except ValueError as error:
            raise InvalidRequest("cross_encoder", f"{command!r} must write one number per line: {error}.") from None
        if len(scores) != len(texts):
            raise InvalidRequest("cross_encoder", f"{command!r} wrote {len(scores)} numbers for {len(texts)} lines.")
        return scores

    return score


def generator(command: str) -> Generator:
    """Return a generator that is a program: a prompt in, a text out."""
    return lambda prompt: _run(command, prompt)


def _run(command: str, text: str) -> str:
    try:
        return subprocess.run(shlex.split(command), input=text, capture_output=True, text=True, check=True).stdout
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no error output"])[-1]
        raise InvalidRequest("program", f"{command!r} failed with code {error.returncode}: {last}") from None
    except OSError as error:
        raise InvalidRequest("program", f"{command!r} cannot be started: {error.strerror or error}.") from None

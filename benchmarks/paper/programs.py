"""Models at hand: encoders in a folder, and cross-encoders and generators that are programs of your own.

Promise: nothing is fetched. A program is started for each question; what it says on standard error is shown
where it fails.
"""

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.paper.models import Remembering, Scoring, Writing
from stream_car.adapters.search.encoders import encoder
from stream_car.errors import InvalidRequest


def named(places: Sequence[str]) -> dict[str, Remembering]:
    """The encoders of these folders, by the folder's name; by all that was said where two have the same."""
    short = [Path(said).name for said in places]
    return {
        name if short.count(name) == 1 else said: Remembering(encoder(said))
        for name, said in zip(short, places, strict=True)
    }


def scoring(command: str) -> Scoring:
    """A cross-encoder that is a program: lines of `{"question", "text"}` in, a number a line out."""

    def score(question: str, texts: Sequence[str]) -> list[float]:
        lines = [msgspec.json.encode({"question": question, "text": text}).decode() for text in texts]
        said = _asked(command, "".join(f"{line}\n" for line in lines)).split()
        try:
            found = [float(one) for one in said]
        except ValueError as error:
            raise InvalidRequest("cross_encoder", f"{command!r} must write a number a line: {error}") from None
        if len(found) != len(texts):
            raise InvalidRequest("cross_encoder", f"{command!r} wrote {len(found)} numbers for {len(texts)} lines")
        return found

    return score


def writing(command: str) -> Writing:
    """A generator that is a program: a prompt in, a text out."""
    return lambda prompt: _asked(command, prompt)


def _asked(command: str, said: str) -> str:
    try:
        return subprocess.run(shlex.split(command), input=said, capture_output=True, text=True, check=True).stdout
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise InvalidRequest("program", f"{command!r} failed with code {error.returncode}: {last}") from None
    except OSError as error:
        raise InvalidRequest("program", f"{command!r} cannot be started: {error.strerror or error}") from None

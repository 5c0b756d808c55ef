"""The inputs of feeds: files, the files of a directory, standard input.

Promise: the files of a directory are returned in the order of their names, with numbers compared by value (`rev2`
before `rev10`). This is the order of editions that have no order of their own.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from stream_car.codec import split_documents
from stream_car.errors import InvalidRequest

STANDARD_INPUT = "-"
_NUMBER = re.compile(r"(\d+)")


class InputFile(Struct, frozen=True, gc=False):
    """A file by its absolute name, or `-`. `shown` is the name as the user gave it."""

    name: str
    shown: str

    @property
    def path(self) -> Path:
        """The path of the file."""
        return Path(self.name)


def input_files(names: Sequence[str], suffixes: Sequence[str], *, may_be_empty: bool = False) -> Iterator[InputFile]:
    """Yield the files that names refer to; of directories, the files with one of these suffixes.

    Raises:
        InvalidRequest: a name does not exist, or a directory has no such file (unless `may_be_empty`).
    """
    for name in names:
        path = Path(name)
        if name == STANDARD_INPUT:
            yield InputFile(name, name)
        elif path.is_dir():
            files = sorted(_files_in(path, suffixes), key=_natural_order)
            if not (files or may_be_empty):
                raise InvalidRequest("source", f"The directory {name} has no file that ends in {', '.join(suffixes)}.")
            yield from (InputFile(str(file.resolve()), str(file)) for file in files)
        elif path.exists():
            yield InputFile(str(path.resolve()), name)
        else:
            reason = f"{name} does not exist. Give a file, a directory, or - for standard input."
            raise InvalidRequest("source", reason)


def read_documents(name: str) -> Iterator[bytes]:
    """Yield the text of each document in a file, or in standard input.

    Raises:
        InvalidRequest: the file cannot be read (`source`).
    """
    try:
        if name == STANDARD_INPUT:
            yield from split_documents(sys.stdin.buffer)
        else:
            with Path(name).open("rb") as stream:
                yield from split_documents(stream)
    except OSError as error:
        raise unreadable(name, error) from error


def unreadable(name: str, error: OSError) -> InvalidRequest:
    """Return the error for a file that cannot be read."""
    cure = "Check that it still exists and that you may read it."
    return InvalidRequest("source", f"{name} cannot be read: {error.strerror or error}. {cure}")


def _files_in(folder: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    """Yield the files with these suffixes in a directory and below it. Hidden files and directories are skipped."""
    for path in folder.rglob("*"):
        inside = path.relative_to(folder).parts
        if path.name.endswith(tuple(suffixes)) and not any(part.startswith(".") for part in inside) and path.is_file():
            yield path


def _natural_order(path: Path) -> list[tuple[int, str]]:
    """Sort key that compares numbers by value: a number becomes `(value, "")`, other text `(0, text)`."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in _NUMBER.split(str(path))]

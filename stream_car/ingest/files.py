"""Where feeds are read from: files, the files of a directory, standard input.

Promise: a directory's files come in the order of their names, numbers by their value (`rev2` before
`rev10`), which is the order in which editions without an order of their own count.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from stream_car.errors import InvalidRequest

STANDARD_INPUT = "-"
_NUMBER = re.compile(r"(\d+)")


class Source(Struct, frozen=True, gc=False):
    """A file by its absolute name, or `-`; `shown` is how it was asked for."""

    name: str
    shown: str

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return Path(self.name)


def sources(named: Sequence[str], suffixes: Sequence[str], *, may_be_empty: bool = False) -> Iterator[Source]:
    """The files that these names mean; of directories those with a suffix of the format.

    Raises `InvalidRequest` for a name that is not there, and unless that may be for a directory without such a file.
    """
    for name in named:
        path = Path(name)
        if name == STANDARD_INPUT:
            yield Source(name, name)
        elif path.is_dir():
            found = sorted(files_in(path, suffixes), key=_natural)
            if not (found or may_be_empty):
                raise InvalidRequest("source", f"{name} holds no file that ends in {', '.join(suffixes)}")
            yield from (Source(str(one.resolve()), str(one)) for one in found)
        elif path.exists():
            yield Source(str(path.resolve()), name)
        else:
            raise InvalidRequest("source", f"there is no {name}; give a file, a directory, or - for standard input")


def files_in(folder: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    """The files of a directory and those below it that end so; hidden ones are none of the feed's."""
    for path in folder.rglob("*"):
        inside = path.relative_to(folder).parts
        if path.name.endswith(tuple(suffixes)) and not any(part.startswith(".") for part in inside) and path.is_file():
            yield path


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sorts numbers by value: every number is a pair of its value and nothing, every text one of 0 and itself."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in _NUMBER.split(str(path))]

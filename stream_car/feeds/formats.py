"""The formats by name: how each cuts a file into pieces, and what converts them."""

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import partial

from msgspec import Struct

from stream_car.errors import InvalidRequest
from stream_car.feeds import osv, pieces
from stream_car.feeds.pieces import Piece, Readable
from stream_car.feeds.position import Converted, Position

Split = Callable[[Readable, str, int], Iterator[Piece]]
Convert = Callable[[Position, bytes], Converted]


class Format(Struct, frozen=True, kw_only=True):
    """A publisher's format. `suffixes` tell which files of a directory belong to it, `growing` which are lines."""

    name: str
    about: str
    suffixes: tuple[str, ...]
    growing: tuple[str, ...] = ()
    split: Split
    convert: Convert


_JSON = (*pieces.WHOLE, *pieces.LINES)

FORMATS = {
    one.name: one
    for one in (
        Format(
            name="osv",
            about="OSV records, and histories of them (GHSA, PyPI, Go, RustSec, ...)",
            suffixes=_JSON,
            growing=pieces.LINES,
            split=partial(pieces.records, inside=("vulns", "results")),
            convert=osv.convert,
        ),
    )
}


def format_called(name: str) -> Format:
    """The format of that name. Raises `InvalidRequest` that names the others."""
    if name not in FORMATS:
        near = get_close_matches(name, FORMATS, 1)
        hint = f", did you mean {near[0]!r}" if near else ""
        raise InvalidRequest("format", f"no format is called {name!r}{hint}; choose from {', '.join(FORMATS)}")
    return FORMATS[name]

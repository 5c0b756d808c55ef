"""The formats by name: how each cuts a file into pieces, and what converts them."""

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import partial

from msgspec import Struct

from stream_car.errors import InvalidRequest
from stream_car.feeds import csaf, cve5, facts, kev, openfda, openvex, osv, rfc_index, rfc_pep, splitting
from stream_car.feeds.editions import Converted, Position
from stream_car.feeds.splitting import Piece, Readable, Start

Split = Callable[[Readable, str, Start], Iterator[Piece]]
Convert = Callable[[Position, bytes], Converted]


class Format(Struct, frozen=True, kw_only=True):
    """A publisher's format. `suffixes` tell which files of a directory belong to it, `growing` which are lines."""

    name: str
    about: str
    suffixes: tuple[str, ...]
    growing: tuple[str, ...] = ()
    split: Split
    convert: Convert


def _standards(stream: Readable, name: str, start: Start) -> Iterator[Piece]:
    """The RFC index by its name or its first sign; JSON likewise; all else is a PEP's source."""
    again = stream if start.at else splitting.Again(stream)
    first = again.first.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] if isinstance(again, splitting.Again) else b"{"
    if name.endswith(".xml") or first == b"<":
        return rfc_index.entries(again, name, start)
    if name.endswith(_JSON) or first in (b"{", b"["):
        return splitting.records(again, name, start)
    return splitting.whole(again, name, start)


_JSON = (*splitting.WHOLE, *splitting.LINES)

FORMATS = {
    one.name: one
    for one in (
        Format(
            name="osv",
            about="OSV records, and histories of them (GHSA, PyPI, Go, RustSec, ...)",
            suffixes=_JSON,
            growing=splitting.LINES,
            split=partial(splitting.records, inside=("vulns", "results")),
            convert=osv.convert,
        ),
        Format(
            name="csaf",
            about="CSAF 2.0 and 2.1 security advisories",
            suffixes=_JSON,
            growing=splitting.LINES,
            split=splitting.records,
            convert=csaf.convert,
        ),
        Format(
            name="openvex",
            about="OpenVEX statements about vulnerabilities in products",
            suffixes=(*_JSON, ".vex"),
            growing=splitting.LINES,
            split=splitting.records,
            convert=openvex.convert,
        ),
        Format(
            name="cve5",
            about="CVE records, format 5",
            suffixes=_JSON,
            growing=splitting.LINES,
            split=splitting.records,
            convert=cve5.convert,
        ),
        Format(
            name="kev",
            about="CISA's catalogue of known exploited vulnerabilities, a snapshot a file",
            suffixes=splitting.WHOLE,
            split=splitting.whole,
            convert=kev.convert,
        ),
        Format(
            name="openfda",
            about="openFDA drug labels and enforcement reports, as the API returns them",
            suffixes=_JSON,
            growing=splitting.LINES,
            split=partial(splitting.records, inside=("results",)),
            convert=openfda.convert,
        ),
        Format(
            name="standards",
            about="the RFC index (XML), and PEPs (their sources, or their headers as JSON)",
            suffixes=(".xml", ".rst", ".txt", *_JSON),
            growing=splitting.LINES,
            split=_standards,
            convert=rfc_pep.convert,
        ),
        Format(
            name="facts",
            about="facts, a line each: subject, relation, object, time (CSV or JSON)",
            suffixes=(*facts.CSV, *_JSON),
            growing=(*facts.CSV, *splitting.LINES),
            split=facts.split,
            convert=facts.convert,
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

"""The formats by name: how each splits a file into pieces, and what converts them."""

from collections.abc import Callable, Iterator
from functools import partial

from msgspec import Struct

from stream_car.errors import InvalidDocument, InvalidRequest
from stream_car.feeds import csaf, cve5, facts, kev, openfda, openvex, osv, rfc_index, rfc_pep, splitting, yaml_records
from stream_car.feeds.editions import Conversion, FeedState
from stream_car.feeds.fields import parse_object
from stream_car.feeds.splitting import BYTE_ORDER_MARK, LINE_SUFFIXES, Piece, Readable, Start, peek
from stream_car.suggest import did_you_mean

Split = Callable[[Readable, str, Start], Iterator[Piece]]
Convert = Callable[[FeedState, bytes], Conversion]


_JSON = (*splitting.WHOLE_SUFFIXES, *LINE_SUFFIXES)


def _as_it_is(data: bytes, time: int) -> bytes:
    return data


class Format(Struct, frozen=True, kw_only=True):
    """A publisher's format.

    `suffixes` select the files of a directory that belong to it. An object that has all keys of one of `marks` is
    probably in this format. `at_time` adds the time of the commit to a piece of a git history, if the format has a
    place for it.
    """

    name: str
    about: str
    suffixes: tuple[str, ...] = _JSON
    marks: tuple[frozenset[str], ...] = ()
    split: Split = splitting.records
    convert: Convert
    at_time: Callable[[bytes, int], bytes] = _as_it_is

    @property
    def line_suffixes(self) -> tuple[str, ...]:
        """The suffixes of files that are read line by line, so they may grow."""
        return tuple(suffix for suffix in self.suffixes if suffix in (*facts.CSV_SUFFIXES, *LINE_SUFFIXES))


def _split_standards(stream: Readable, name: str, start: Start) -> Iterator[Piece]:
    """Split the RFC index (XML), JSON, or the source of a PEP. The suffix or the first character decides."""
    if start.at:  # only JSON lines are continued in the middle
        return splitting.records(stream, name, start)
    line, stream = peek(stream)
    first = line.lstrip(BYTE_ORDER_MARK + b" \t\r\n")[:1]
    if name.endswith(".xml") or first == b"<":
        return rfc_index.entries(stream, name, start)
    if name.endswith(_JSON) or first in (b"{", b"["):
        return splitting.records(stream, name, start)
    return splitting.whole_file(stream, name, start)


FORMATS = {
    each.name: each
    for each in (
        Format(
            name="osv",
            about="OSV records, and histories of them (GHSA, PyPI, Go, RustSec, ...)",
            marks=(frozenset({"id", "affected"}), frozenset({"id", "modified"}), frozenset({"commit_time", "record"})),
            suffixes=(*_JSON, *yaml_records.SUFFIXES),
            split=partial(yaml_records.records_or_yaml, inside=("vulns", "results")),
            convert=osv.convert,
            at_time=osv.history_line,
        ),
        Format(
            name="csaf",
            about="CSAF 2.0 and 2.1 security advisories",
            marks=(frozenset({"document", "vulnerabilities"}), frozenset({"document", "product_tree"})),
            convert=csaf.convert,
        ),
        Format(
            name="openvex",
            about="OpenVEX statements about vulnerabilities in products",
            marks=(frozenset({"@context", "statements"}),),
            suffixes=(*_JSON, ".vex"),
            convert=openvex.convert,
        ),
        Format(
            name="cve5",
            about="CVE records, format 5",
            marks=(frozenset({"cveMetadata"}),),
            convert=cve5.convert,
        ),
        Format(
            name="kev",
            about="CISA's catalogue of known exploited vulnerabilities, one snapshot per file",
            marks=(frozenset({"catalogVersion", "vulnerabilities"}),),
            suffixes=splitting.WHOLE_SUFFIXES,
            split=splitting.whole_file,
            convert=kev.convert,
        ),
        Format(
            name="openfda",
            about="openFDA drug labels and enforcement reports, as the API returns them",
            marks=(frozenset({"meta", "results"}), frozenset({"openfda"})),
            split=partial(splitting.records, inside=("results",)),
            convert=openfda.convert,
        ),
        Format(
            name="standards",
            about="the RFC index (XML), and PEPs (their sources, or their headers as JSON)",
            suffixes=(".xml", ".rst", ".txt", *_JSON),
            split=_split_standards,
            convert=rfc_pep.convert,
        ),
        Format(
            name="facts",
            about="facts, one per line: subject, relation, object, time (CSV or JSON)",
            marks=(frozenset({"subject", "relation", "object"}),),
            suffixes=(*facts.CSV_SUFFIXES, *_JSON),
            split=facts.split,
            convert=facts.convert,
        ),
    )
}


def find_format(name: str) -> Format:
    """Return the format of that name.

    Raises:
        InvalidRequest: there is none; the message lists the others.
    """
    if name not in FORMATS:
        hint = did_you_mean(name, FORMATS)
        raise InvalidRequest("format", f"Unknown format {name!r}.{hint} Choose from: {', '.join(FORMATS)}.")
    return FORMATS[name]


def guess_format(text: bytes) -> Format | None:
    """Return the format that an input is probably in, by the keys of its object, or `None`."""
    try:
        keys = parse_object(text).keys()
    except InvalidDocument:
        return None
    return next((form for form in FORMATS.values() if any(mark <= keys for mark in form.marks)), None)

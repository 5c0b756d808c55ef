"""From a publisher's bytes to values, strict where authority is decided and tolerant elsewhere.

Promise: refusals are `InvalidDocument` with a code: `syntax` and its kin from the JSON reader, `field` for a
field that is missing or of the wrong kind, `time` for a date that cannot be read. Text for people is made to
fit: one line where a line is asked for, cut where it is too long.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from stream_car.codec import DEFAULTS, Limits, decode, encode, parse_time
from stream_car.codec.json_scan import parse
from stream_car.codec.times import EARLIEST
from stream_car.core.documents import Document, ScopeMap
from stream_car.errors import InvalidDocument

PIECE_MAX = 64 << 20  # one record, or one snapshot
LIMITS = Limits(document=PIECE_MAX, depth=64, nodes=20_000_000)
TEXT_MAX = 60_000  # bytes that a person may be given to read
LINE_MAX = 500
PLACEHOLDER = EARLIEST  # what publishers write where they have no date yet
LEFT_OUT = "left_out"

T = TypeVar("T")


def tree_of(data: bytes) -> dict[str, object]:
    """The JSON object that a piece spells, strictly; a byte order mark in front of it is passed over."""
    return parse(data.removeprefix(b"\xef\xbb\xbf"), LIMITS)


def shaped(tree: object, kind: type[T], name: str | None = None) -> T:
    """The fields that decide, as the format declares them. Raises `InvalidDocument` (`field`)."""
    try:
        return msgspec.convert(tree, kind)
    except msgspec.ValidationError as error:
        raise InvalidDocument("field", str(error), name) from None


def moment(text: str | None, *, what: str = "a date", name: str | None = None) -> int | None:
    """The microseconds of a publisher's date: RFC 3339, with or without offset, or a day alone (its first instant).

    No date and the placeholder of year 1 are `None`. Raises `InvalidDocument` (`time`).
    """
    if not text:
        return None
    written = text.strip().replace(" ", "T", 1).upper()
    if len(written) == len("2024-01-31"):
        written += "T00:00:00"
    if not written.endswith("Z") and written[-6:-5] not in ("+", "-"):
        written += "Z"
    try:
        found = parse_time(written.replace("-00:00", "Z") if written.endswith("-00:00") else written)
    except ValueError as error:
        raise InvalidDocument("time", f"{what} is {text[:60]!r}: {error}", name) from None
    return None if found == PLACEHOLDER else found


def line(text: str | None) -> str:
    """The text as one line of readable characters, cut where it is too long."""
    if not text:
        return ""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= LINE_MAX else words[: LINE_MAX - 1] + "…"


def first_sentence(text: str | None) -> str:
    """What stands before the first full stop that ends a sentence."""
    return line((text or "").strip().split("\n\n")[0]).partition(". ")[0]


def body(*parts: str | None) -> str:
    """Paragraphs of these texts, cut where they are too long."""
    text = "\n\n".join(part.strip() for part in parts if part and part.strip()).replace("\0", " ")
    if len(text.encode()) <= TEXT_MAX:
        return text
    return text.encode()[:TEXT_MAX].decode(errors="ignore") + "…"


def word(text: str) -> str:
    """A scope value as it is compared: no outer or double spaces, normal form C."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


def words(texts: Iterable[str | None]) -> tuple[str, ...]:
    """The scope values among these texts, each once; too long ones name nothing that others would share."""
    found = dict.fromkeys(word(text) for text in texts if text and text.strip())
    return tuple(value for value in found if len(value.encode()) <= DEFAULTS.scope_value)


def scope_of(*maps: Mapping[str, Iterable[str | None]]) -> tuple[ScopeMap, ...]:
    """Scope maps of these values; keys without a value and empty maps are left out."""
    read = [{key: words(values) for key, values in part.items()} for part in maps]
    return tuple(kept for part in read if (kept := {key: values for key, values in part.items() if values}))


def rest_of(tree: Mapping[str, object], known: Iterable[str]) -> dict[str, object]:
    """What the publisher said beyond the fields that were read."""
    return {key: value for key, value in tree.items() if key not in set(known)}


def fitted(document: Document) -> Document:
    """The document as the engine will accept it: attributes too large to be kept are named in `left_out`.

    Raises `InvalidDocument` for what no cut would mend.
    """
    try:
        return _accepted(document)
    except InvalidDocument as refused:
        if refused.code not in ("size", "depth", "range", "number", "duplicate_key") or not document.attributes:
            raise
    kept = dict(document.attributes)
    heavy = sorted(kept, key=lambda name: (-len(msgspec.json.encode(kept[name])), name))
    left_out: list[str] = []
    for name in heavy:
        left_out.append(name)
        del kept[name]
        try:
            return _accepted(msgspec.structs.replace(document, attributes={**kept, LEFT_OUT: sorted(left_out)}))
        except InvalidDocument:
            continue
    return _accepted(msgspec.structs.replace(document, attributes={LEFT_OUT: sorted(left_out)}))


def _accepted(document: Document) -> Document:
    said = decode(encode(document))
    assert isinstance(said, Document)
    return said

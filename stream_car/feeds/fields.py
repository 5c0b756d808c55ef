"""Publishers' fields, converted to the values of documents: strict where they decide authority, tolerant elsewhere.

Promise: input that cannot be converted raises `InvalidDocument` with a code: `syntax` and the other codes of the
JSON reader, `field` for a missing field or a wrong type, `time` for a date that cannot be parsed. Text for people
is never rejected: it is put on one line where a line is needed and truncated where it is too long.
"""

import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

import msgspec

from stream_car.codec import DEFAULT_LIMITS, Limits, decode, encode, format_time, parse_time
from stream_car.codec.json_scan import parse
from stream_car.codec.times import EARLIEST
from stream_car.core.documents import Document, ScopeMap
from stream_car.errors import InvalidDocument

PIECE_MAX = 64 << 20  # bytes of one record, or of one snapshot
LIMITS = Limits(document=PIECE_MAX, depth=64, nodes=20_000_000)
TEXT_MAX = 60_000  # bytes of a document's text
LINE_MAX = 500  # characters
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
PLACEHOLDER = EARLIEST  # what publishers write if they have no date yet
LEFT_OUT = "left_out"  # the attribute that lists what was dropped to fit the limits

T = TypeVar("T")


def parse_object(data: bytes) -> dict[str, object]:
    """Parse a piece as one JSON object, strictly. A byte order mark is skipped."""
    return parse(data.removeprefix(b"\xef\xbb\xbf"), LIMITS)


def decode_fields(tree: object, kind: type[T], name: str | None = None) -> T:
    """Convert parsed JSON to the struct in which a format declares the fields that decide.

    Raises:
        InvalidDocument: a field is missing or has the wrong type (`field`).
    """
    try:
        return msgspec.convert(tree, kind)
    except msgspec.ValidationError as error:
        raise InvalidDocument("field", f"{error}.", name) from None


def parse_date(text: str | None, what: str, name: str | None = None) -> int | None:
    """Parse a publisher's date into microseconds since 1970 (UTC).

    Accepts RFC 3339 with or without an offset (none means UTC), and a date alone (its first instant). Returns
    `None` for no date and for the placeholder, year 1. `what` names the field in the error.

    Raises:
        InvalidDocument: the text is not a date (`time`).
    """
    if not text:
        return None
    normalized = text.strip().replace(" ", "T", 1).upper()
    if len(normalized) == len("2024-01-31"):
        normalized += "T00:00:00"
    if not normalized.endswith("Z") and normalized[-6:-5] not in ("+", "-"):
        normalized += "Z"
    try:
        time = parse_time(normalized.replace("-00:00", "Z") if normalized.endswith("-00:00") else normalized)
    except ValueError as error:
        raise InvalidDocument("time", f"{what} is {text[:60]!r}: {str(error).rstrip('.')}.", name) from None
    return None if time == PLACEHOLDER else time


def require_date(text: str | None, what: str, name: str | None = None) -> int:
    """Parse a publisher's date as `parse_date` does. Raises `InvalidDocument` (`time`) if there is none."""
    time = parse_date(text, what, name)
    if time is None:
        raise InvalidDocument("time", f"{what} must be a date.", name)
    return time


def record_since(date: str | None) -> dict[str, str]:
    """Return the attribute that says since when a record exists; none without a date that can be read.

    It decides nothing but whether the history of the record is known, so a bad date is no reason to reject it.
    """
    try:
        time = parse_date(date, "")
    except InvalidDocument:
        return {}
    return {"record_since": format_time(time)} if time is not None else {}


def single_line(text: str | None) -> str:
    """Return the text as one line of printable characters, truncated to `LINE_MAX` characters."""
    if not text:
        return ""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= LINE_MAX else words[: LINE_MAX - 1] + "…"


def first_sentence(text: str | None) -> str:
    """Return what precedes the first full stop that ends a sentence."""
    return single_line((text or "").strip().split("\n\n")[0]).partition(". ")[0]


def paragraphs(*parts: str | None) -> str:
    """Join texts as paragraphs, truncated to `TEXT_MAX` bytes. Empty texts are skipped."""
    text = "\n\n".join(part.strip() for part in parts if part and part.strip()).replace("\0", " ")
    if len(text.encode()) <= TEXT_MAX:
        return text
    return text.encode()[:TEXT_MAX].decode(errors="ignore") + "…"


def scope_value(text: str) -> str:
    """Normalize a scope value for comparison: no outer or double spaces, Unicode normal form C."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


def scope_values(texts: Iterable[str | None]) -> tuple[str, ...]:
    """Normalize texts to distinct scope values.

    Values that exceed the limit are dropped: no other document could share them.
    """
    values = dict.fromkeys(scope_value(text) for text in texts if text and text.strip())
    return tuple(value for value in values if len(value.encode()) <= DEFAULT_LIMITS.scope_value)


def scope_maps(*maps: Mapping[str, Iterable[str | None]]) -> tuple[ScopeMap, ...]:
    """Normalize the values of scope maps. Keys without a value and empty maps are omitted."""
    normalized = [{key: scope_values(values) for key, values in scope_map.items()} for scope_map in maps]
    without_empty_keys = [{key: values for key, values in part.items() if values} for part in normalized]
    return tuple(scope_map for scope_map in without_empty_keys if scope_map)


def other_fields(tree: Mapping[str, object], known: Collection[str]) -> dict[str, object]:
    """Return the fields that the format does not convert; they become attributes."""
    return {key: value for key, value in tree.items() if key not in known}


def make_document(
    *scope: Mapping[str, Iterable[str | None]],
    id: str,
    type: str,
    time: int,
    order: int = 0,
    attributes: Mapping[str, object],
    title: str,
    text: Iterable[str | None],
    source: str = "",
    url: str = "",
    **links: tuple[str, ...],
) -> Document:
    """Return a document of these scope maps, whose texts are normalized, and which fits the limits.

    `links` are `supersedes`, `superseded_by` and `amends`; `text` are its paragraphs.

    Raises:
        InvalidDocument: it cannot fit the limits, see `fit_limits`.
    """
    document = Document(
        id=id,
        type=type,
        time=time,
        order=order,
        scope=scope_maps(*scope),
        attributes=attributes,
        title=single_line(title),
        text=paragraphs(*text),
        source=single_line(source),
        url=single_line(url),
    )
    return fit_limits(msgspec.structs.replace(document, **links))


def fit_limits(document: Document) -> Document:
    """Return the document as the engine accepts it. Attributes that are too large are dropped and listed in `left_out`.

    A list that the converter has already put there is extended.

    Raises:
        InvalidDocument: dropping attributes does not help.
    """
    try:
        return _validate(document)
    except InvalidDocument as error:
        if error.code not in ("size", "depth", "range", "number", "duplicate_key") or not document.attributes:
            raise
    attributes = dict(document.attributes)
    left_out = _names_in(attributes.pop(LEFT_OUT, None))
    largest_first = sorted(attributes, key=lambda name: (-len(msgspec.json.encode(attributes[name])), name))
    for name in largest_first:
        left_out.append(name)
        del attributes[name]
        try:
            return _validate(msgspec.structs.replace(document, attributes={**attributes, LEFT_OUT: sorted(left_out)}))
        except InvalidDocument:
            continue
    return _validate(msgspec.structs.replace(document, attributes={LEFT_OUT: sorted(left_out)}))


def _names_in(left_out: object) -> list[str]:
    """Return what a converter has listed as left out. A publisher's own field of that name is itself left out."""
    if left_out is None:
        return []
    if isinstance(left_out, list) and all(isinstance(name, str) for name in left_out):
        return list(left_out)
    return [LEFT_OUT]


def _validate(document: Document) -> Document:
    decoded = decode(encode(document))
    assert isinstance(decoded, Document)
    return decoded

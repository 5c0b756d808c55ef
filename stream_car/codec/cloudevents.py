"""Documents in CloudEvents 1.0, structured or in binary mode.

Structured: an object with `specversion` and `data` is an envelope and `data` is the document. In binary mode the
value is the document and headers of the record are the envelope: `ce_specversion`, `ce_type` and so on. Nothing
is unwrapped twice. Where the document lacks them, `type`, `time` and `source` come from the envelope, and `id`
from its `subject` or else its `id`. Everything else in an envelope is about the delivery and is dropped: kept, it
would make a second delivery of one document look like a conflict.
"""

from collections.abc import Sequence
from typing import Any

from stream_car.errors import InvalidDocument

VERSION = "1.0"
PREFIX = "ce_"
_LENT = ("type", "time", "source")
_NAMES = ("subject", "id")


def unwrap(said: dict[str, Any], headers: Sequence[tuple[str, bytes]]) -> dict[str, Any]:
    """The document in a record's value, with what its envelope lends. Raises `InvalidDocument`."""
    if headers and (attributes := _in_headers(headers)):
        return _lent(attributes) | said
    if "specversion" not in said or ("data" not in said and "data_base64" not in said):
        return said
    if said["specversion"] != VERSION:
        raise InvalidDocument("version", f"the envelope must be CloudEvents {VERSION}")
    if "data" not in said:
        raise InvalidDocument("field", "send the document as a JSON object in `data`, not as `data_base64`")
    document = said["data"]
    if document.__class__ is not dict:
        raise InvalidDocument("not_object", "the `data` of the envelope must be a JSON object")
    return _lent(said) | document


def _lent(envelope: dict[str, Any]) -> dict[str, Any]:
    lent = {field: envelope[field] for field in _LENT if field in envelope}
    for field in _NAMES:
        if field in envelope:
            lent["id"] = envelope[field]
            break
    return lent


def _in_headers(headers: Sequence[tuple[str, bytes]]) -> dict[str, Any]:
    """The attributes of an event in binary mode; empty where `ce_specversion` does not say that it is one."""
    names = [name for name, _ in headers if name.startswith(PREFIX)]
    if f"{PREFIX}specversion" not in names:
        return {}
    if len(set(names)) != len(names):
        raise InvalidDocument("field", f"a header of CloudEvents (`{PREFIX}...`) is there twice")
    try:
        found = {name.removeprefix(PREFIX): text.decode() for name, text in headers if name.startswith(PREFIX)}
    except UnicodeDecodeError:
        raise InvalidDocument("encoding", f"headers of CloudEvents (`{PREFIX}...`) must be UTF-8") from None
    if found["specversion"] != VERSION:
        raise InvalidDocument("version", f"`{PREFIX}specversion` must be {VERSION}")
    return found

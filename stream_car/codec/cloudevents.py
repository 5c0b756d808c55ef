"""Documents in CloudEvents 1.0 envelopes, in structured or binary mode.

In structured mode the value is an object with `specversion` and `data`, and `data` is the document. In binary
mode the value is the document, and headers of the record (`ce_specversion`, `ce_type`, ...) are the envelope.
Only one envelope is unwrapped: an envelope inside another is read as a document.

If the document has no `type`, `time` or `source`, the envelope's is used. If it has no `id`, the envelope's
`subject` is used, or else the envelope's `id`. Everything else in an envelope describes the delivery and is
dropped: if it were kept, a second delivery of the same document would look like a conflict.
"""

from collections.abc import Sequence
from typing import Any

from stream_car.errors import InvalidDocument

VERSION = "1.0"
PREFIX = "ce_"
_SHARED_FIELDS = ("type", "time", "source")
_ID_FIELDS = ("subject", "id")


def unwrap(value: dict[str, Any], headers: Sequence[tuple[str, bytes]]) -> dict[str, Any]:
    """Return the document in a record's value, completed with the fields of its envelope.

    Raises:
        InvalidDocument: the envelope is malformed (`version`, `field`, `encoding`, `not_object`).
    """
    if headers and (envelope := _envelope_in_headers(headers)):
        return _fields_from(envelope) | value
    if "specversion" not in value or ("data" not in value and "data_base64" not in value):
        return value
    if value["specversion"] != VERSION:
        raise InvalidDocument("version", f"The envelope must be CloudEvents {VERSION}.")
    if "data" not in value:
        raise InvalidDocument("field", "Send the document as a JSON object in `data`, not as `data_base64`.")
    document = value["data"]
    if document.__class__ is not dict:
        raise InvalidDocument("not_object", "The `data` of the envelope must be a JSON object.")
    return _fields_from(value) | document


def _fields_from(envelope: dict[str, Any]) -> dict[str, Any]:
    """Return the document fields that an envelope supplies."""
    fields = {name: envelope[name] for name in _SHARED_FIELDS if name in envelope}
    for name in _ID_FIELDS:
        if name in envelope:
            fields["id"] = envelope[name]
            break
    return fields


def _envelope_in_headers(headers: Sequence[tuple[str, bytes]]) -> dict[str, Any]:
    """Return the attributes of an event in binary mode, or nothing if there is no `ce_specversion` header."""
    names = [name for name, _ in headers if name.startswith(PREFIX)]
    if f"{PREFIX}specversion" not in names:
        return {}
    if len(set(names)) != len(names):
        raise InvalidDocument("field", f"A CloudEvents header (`{PREFIX}...`) occurs twice. Send it once.")
    try:
        envelope = {name.removeprefix(PREFIX): text.decode() for name, text in headers if name.startswith(PREFIX)}
    except UnicodeDecodeError:
        raise InvalidDocument("encoding", f"CloudEvents headers (`{PREFIX}...`) must be UTF-8.") from None
    if envelope["specversion"] != VERSION:
        raise InvalidDocument("version", f"`{PREFIX}specversion` must be {VERSION}.")
    return envelope

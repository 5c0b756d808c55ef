"""Encode statements as canonical JSON, and compute the digest that tells a repeat from a conflict.

Promise: `decode(encode(statement))` equals the statement if that statement could have been decoded. Equal
statements give equal bytes. Values that JSON would change are rejected here; everything else is judged by
`decode`. Cost: about 5 microseconds for 1 KB.
"""

from collections.abc import Mapping
from hashlib import blake2b
from math import isfinite
from typing import Any

import msgspec

from stream_car.codec.expectations import with_article
from stream_car.codec.times import format_time
from stream_car.core.documents import Document, Retraction, ScopeMap, Statement
from stream_car.errors import InvalidDocument

_encode = msgspec.json.Encoder(order="deterministic").encode
_SCALARS = frozenset({str, int, bool, type(None)})


def encode(statement: Statement) -> bytes:
    """Return a statement as a publisher would write it: keys sorted, defaults omitted, attributes in `attributes`.

    Raises:
        InvalidDocument: JSON cannot hold it: a time outside the years 0001 to 9999 (`time`), half a surrogate pair
            (`encoding`), or an attribute that is not a JSON value (`type`, `number`).
    """
    if isinstance(statement, Retraction):
        fields: dict[str, Any] = {"id": statement.id, "retracted": True}
        if statement.revision is not None:
            fields["revision"] = statement.revision
        return _json(fields, statement.id)
    fields = _content(statement)
    try:
        fields["time"] = format_time(statement.time)
    except (TypeError, ValueError) as error:
        raise InvalidDocument("time", f"`time` must be in microseconds. {error}", statement.id) from None
    if statement.revision != 1:
        fields["revision"] = statement.revision
    value = _json(fields, statement.id)
    if statement.attributes:
        _require_json(fields["attributes"], statement.id)
    return value


def encode_mapping(mapping: Mapping[str, object]) -> bytes:
    """Return the JSON of a document that a program wrote as a mapping. `decode` judges its fields.

    Raises:
        InvalidDocument: a value is not a JSON value (`type`, `number`, `encoding`).
    """
    name = mapping.get("id")
    document_id = name if isinstance(name, str) else None
    value = _json(dict(mapping), document_id)
    _require_json(dict(mapping), document_id)
    return value


def content_digest(document: Document) -> bytes:
    """Return 16 bytes that are equal exactly for documents of equal content, whatever their revision and spelling.

    The order of scopes, of their values and of links does not count. Fields at their default do not count either,
    so a field that is added later does not change the digest of older documents.
    """
    fields = _content(document)
    fields["time"] = document.time
    if len(document.scope) > 1 or any(len(values) > 1 for member in document.scope for values in member.values()):
        fields["scope"] = _sorted_scope(document.scope)
    for name in ("supersedes", "superseded_by", "amends"):
        if name in fields:
            fields[name] = sorted(fields[name])
    return blake2b(_json(fields, document.id), digest_size=16).digest()


def _content(document: Document) -> dict[str, Any]:
    """Return the fields that are not at their default, except time and revision."""
    fields: dict[str, Any] = {"id": document.id, "type": document.type}
    if document.order:
        fields["order"] = document.order
    if document.scope:
        fields["scope"] = document.scope
    if document.supersedes:
        fields["supersedes"] = document.supersedes
    if document.superseded_by:
        fields["superseded_by"] = document.superseded_by
    if document.amends:
        fields["amends"] = document.amends
    if document.attributes:
        fields["attributes"] = dict(document.attributes)
    if document.title:
        fields["title"] = document.title
    if document.text:
        fields["text"] = document.text
    if document.source:
        fields["source"] = document.source
    if document.url:
        fields["url"] = document.url
    return fields


def _sorted_scope(scope: tuple[ScopeMap, ...]) -> list[list[tuple[str, list[str]]]]:
    return sorted(sorted((key, sorted(values)) for key, values in member.items()) for member in scope)


def _json(fields: dict[str, Any], name: str | None) -> bytes:
    try:
        return _encode(fields)
    except UnicodeEncodeError:
        reason = "A string contains half a surrogate pair. Send whole characters."
        raise InvalidDocument("encoding", reason, name) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidDocument("type", f"A value is not a JSON value: {error}.", name) from None


def _require_json(tree: Any, name: str | None) -> None:
    """Reject what the encoder silently turns into something else. The tree is finite, since it has been encoded."""
    pending = [tree]
    while pending:
        value = pending.pop()
        if value.__class__ is dict:
            if any(key.__class__ is not str for key in value):
                raise InvalidDocument("type", "The keys of an object must be strings.", name)
            pending += value.values()
        elif value.__class__ in (list, tuple):
            pending += value
        elif value.__class__ is float:
            if not isfinite(value):
                raise InvalidDocument("number", "NaN and infinity are not accepted. Omit them.", name)
        elif value.__class__ not in _SCALARS:
            reason = f"{with_article(value.__class__.__name__, 'A')} is not a JSON value. Send it as a string."
            raise InvalidDocument("type", reason, name)

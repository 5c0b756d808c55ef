"""What a program may publish, and the bytes that are sent for it.

Promise: strings and bytes are sent unchanged, so the receipt reports what is wrong with them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from stream_car.codec.encode import encode, encode_mapping
from stream_car.codec.expectations import must_be, with_article
from stream_car.codec.times import format_time, to_micros
from stream_car.core.documents import Document, Retraction
from stream_car.errors import InvalidDocument, InvalidRequest


class NewDocument(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document to publish. The fields are those of the JSON form, see docs/reference/documents.md.

    `time` is when it takes effect: an aware `datetime`, RFC 3339 text, or a day, which means midnight UTC. `scope` is a
    mapping of keys to one or several values, or a sequence of such mappings.
    """

    id: str
    type: str
    time: datetime | str
    order: int = 0
    revision: int = 1
    scope: Mapping[str, str | Sequence[str]] | Sequence[Mapping[str, str | Sequence[str]]] = ()
    supersedes: Sequence[str] = ()
    superseded_by: Sequence[str] = ()
    amends: Sequence[str] = ()
    attributes: Mapping[str, object] = {}
    title: str = ""
    text: str = ""
    source: str = ""
    url: str = ""


Publishable = NewDocument | Document | Retraction | Mapping[str, object] | bytes | str
Publishables = Publishable | Iterable[Publishable]
_DEFAULTS = {**{field.name: field.default for field in msgspec.structs.fields(NewDocument)}, "attributes": {}}
_SINGLE = (NewDocument, Document, Retraction, Mapping, bytes, str)
PUBLISHABLE = "a NewDocument, a Retraction, a mapping or JSON"


def iterate_documents(documents: Publishables) -> Iterable[Publishable]:
    """Return the documents of one call, which may be a single document or many.

    Raises:
        InvalidRequest: the value is neither (`documents`).
    """
    if isinstance(documents, _SINGLE):
        return (documents,)
    if not isinstance(documents, Iterable):
        raise InvalidRequest("documents", must_be("documents", f"{PUBLISHABLE}, or a list of these", documents))
    return documents


def encode_batches(documents: Publishables, *, count_max: int, bytes_max: int) -> Iterator[tuple[bytes, ...]]:
    """Yield the bytes of documents in batches. A batch ends with the document that takes it beyond `bytes_max`."""
    batch: list[bytes] = []
    size = 0
    for document in iterate_documents(documents):
        value = encode_document(document)
        batch.append(value)
        size += len(value)
        if len(batch) == count_max or size > bytes_max:
            yield tuple(batch)
            batch, size = [], 0
    if batch:
        yield tuple(batch)


def encode_document(document: Publishable) -> bytes:
    """Return the bytes to send for a document.

    Raises:
        InvalidRequest: the value is of a type that cannot be published (`documents`).
        InvalidDocument: the value has the right type but cannot be written as JSON.
    """
    if isinstance(document, bytes):
        return document
    if isinstance(document, str):
        return document.encode("utf-8", "surrogatepass")
    if isinstance(document, Document | Retraction):
        return encode(document)
    if isinstance(document, NewDocument):
        values = ((name, getattr(document, name)) for name in document.__struct_fields__)
        return encode_mapping(_with_text_time({name: value for name, value in values if value != _DEFAULTS[name]}))
    if isinstance(document, Mapping):
        return encode_mapping(_with_text_time(document))
    raise InvalidRequest("documents", f"Cannot publish {with_article(type(document).__name__)}. Pass {PUBLISHABLE}.")


def _with_text_time(fields: Mapping[str, object]) -> Mapping[str, object]:
    time = fields.get("time")
    if not isinstance(time, datetime):
        return fields
    if time.tzinfo is None:
        name = fields.get("id")
        reason = "`time` has no time zone. Use datetime(..., tzinfo=UTC)."
        raise InvalidDocument("time", reason, name if isinstance(name, str) else None)
    return {**fields, "time": format_time(to_micros(time))}

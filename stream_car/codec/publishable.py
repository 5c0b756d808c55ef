"""What a program may publish, and the bytes that are sent for it.

Promise: strings and bytes are sent unchanged, so the receipt reports what is wrong with them.
"""

from collections.abc import Iterable, Mapping

from stream_car.codec.encode import encode, encode_mapping
from stream_car.core.documents import Document, Retraction
from stream_car.errors import StreamCarError

Publishable = Document | Retraction | Mapping[str, object] | bytes | str
Publishables = Publishable | Iterable[Publishable]


def iterate_documents(documents: Publishables) -> Iterable[Publishable]:
    """Return the documents of one call, which may be a single document or many."""
    return (documents,) if isinstance(documents, Document | Retraction | Mapping | bytes | str) else documents


def encode_document(document: Publishable) -> bytes:
    """Return the bytes to send for a document.

    Raises:
        StreamCarError: the value is of a type that cannot be published.
        InvalidDocument: the value has the right type but cannot be written as JSON.
    """
    if isinstance(document, bytes):
        return document
    if isinstance(document, str):
        return document.encode("utf-8", "surrogatepass")
    if isinstance(document, Document | Retraction):
        return encode(document)
    if isinstance(document, Mapping):
        return encode_mapping(document)
    raise StreamCarError(f"Cannot publish a {type(document).__name__}. Pass a Document, a mapping or JSON.")

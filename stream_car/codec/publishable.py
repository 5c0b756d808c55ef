"""What a program may publish, and the bytes that are sent for it.

Promise: text and bytes go as they are, so that what is wrong with them is told by their receipt.
"""

from collections.abc import Iterable, Mapping

from stream_car.codec.encode import encode, encode_mapping
from stream_car.core.documents import Document, Retraction
from stream_car.errors import StreamCarError

Publishable = Document | Retraction | Mapping[str, object] | bytes | str
Publishables = Publishable | Iterable[Publishable]


def iterate_documents(documents: Publishables) -> Iterable[Publishable]:
    """The documents of one call: one alone, or many."""
    return (documents,) if isinstance(documents, Document | Retraction | Mapping | bytes | str) else documents


def encode_document(document: Publishable) -> bytes:
    """The bytes of a document. Raises `StreamCarError` for what is none."""
    if isinstance(document, bytes):
        return document
    if isinstance(document, str):
        return document.encode("utf-8", "surrogatepass")
    if isinstance(document, Document | Retraction):
        return encode(document)
    if isinstance(document, Mapping):
        return encode_mapping(document)
    raise StreamCarError(f"cannot publish a {type(document).__name__}; give a Document, a mapping or JSON")

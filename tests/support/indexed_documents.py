"""Documents as the text index receives them."""

from stream_car.core.documents import Document
from stream_car.ports import IndexedDocument


def indexed(name: str, text: str, scopes: tuple[str, ...] = ()) -> IndexedDocument:
    """Return an advisory with this text; by default it is in a scope of its own and of a team."""
    document = Document(id=name, type="advisory", time=1, text=text)
    return IndexedDocument(document=document, scopes=scopes or (f"host={name}, team=a",))

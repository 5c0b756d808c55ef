"""What the text index stores of a document, how its words are read, and the statistics behind a score.

Promise: `document_row` and `read_document` are inverses. The words of a query are read as those of a document are, by
`ranking.analysis`. Cost: reading the words of 1 KB takes about 12 us.
"""

from functools import lru_cache
from importlib.metadata import version
from itertools import chain

import msgspec
import tantivy
from msgspec import Struct

from stream_car.adapters.database import add_checksum, strip_checksum
from stream_car.core.documents import Document
from stream_car.core.scope_names import scope_parts
from stream_car.errors import Halted, StreamCarError
from stream_car.ports import IndexedDocument
from stream_car.ranking.analysis import names, terms
from stream_car.ranking.bm25 import DocumentTerms, join_terms
from stream_car.ranking.settings import Settings

TANTIVY = version("tantivy")
FORMAT = f"stream-car index 2, tantivy {TANTIVY}\n"
CURE = "Delete the folder of the index; it is rebuilt from the log."

MARK = "position"  # the mark of the row that holds the position
_MARK_WORD = "streamcarposition"  # the only word of that row; tantivy's explanation of its score has the statistics

_SCOPES_MAX = 1 << 14  # scopes whose names are cached

_decoder = msgspec.msgpack.Decoder(Document)
_encoder = msgspec.msgpack.Encoder()


def index_format(settings: Settings) -> str:
    """Return the text that the `format` file of an index must hold for these settings to read it."""
    return f"{FORMAT}{'stems' if settings.stems else 'words'}\n"


def whitespace_analyzer() -> tantivy.TextAnalyzer:
    """Return an analyzer that splits at spaces only: tantivy gets terms that are analysed already."""
    return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()


def schema() -> tantivy.Schema:
    """Return the fields of a row."""
    return (
        tantivy.SchemaBuilder()
        .add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
        .add_text_field("words", tokenizer_name="words", index_option="freq")
        .add_text_field("names", tokenizer_name="words", index_option="basic")
        .add_unsigned_field("number", fast=True)
        .add_bytes_field("body", stored=True)
        .add_boolean_field("anchor", fast=True, indexed=True)
        .add_text_field("mark", tokenizer_name="raw", index_option="basic")
        .add_unsigned_field("position", stored=True)
        .build()
    )


class Statistics(Struct, frozen=True):
    """What scores depend on, as tantivy counts it, and the position of the same commit."""

    documents: int = 0
    anchors: int = 0
    average_length: float = 0.0
    position: int = 0


class _Explanation(Struct):
    description: str
    value: float
    details: list["_Explanation"] = []

    def find(self, start: str) -> float:
        """Return the value whose description begins with `start`, or -1."""
        if self.description.startswith(start):
            return self.value
        return max((part.find(start) for part in self.details), default=-1.0)


def read_statistics(fields: tantivy.Schema, searcher: tantivy.Searcher) -> Statistics:
    """Return the statistics of the last commit; zeros if there is none."""
    marks = searcher.search(tantivy.Query.term_query(fields, "mark", MARK, "basic"), 1, count=False).hits
    if not marks:
        return Statistics()
    address = marks[0][1]
    query = tantivy.Query.term_query(fields, "words", _MARK_WORD, "freq")
    explanation = msgspec.json.decode(query.explain(searcher, address).to_json(), type=_Explanation)
    documents, length = explanation.find("N, "), explanation.find("avgdl")
    if documents < 0 or length < 0:
        raise StreamCarError(f"tantivy {TANTIVY} explains scores in an unknown way. Install tantivy 0.27.")
    return Statistics(
        documents=int(documents),
        anchors=searcher.doc_freq("anchor", True),  # noqa: FBT003  the value to look for
        average_length=length,
        position=int(searcher.doc(address).get_first("position") or 0),
    )


def indexed_text(document: Document) -> str:
    """Return the text to index. A title that the text repeats counts once."""
    title, text = document.title, document.text
    return replace_surrogates(text if title in text else f"{title}\n{text}")


def replace_surrogates(text: str) -> str:
    """Return the text with the characters replaced that UTF-8 cannot encode (lone surrogates)."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def analyse(indexed: IndexedDocument, settings: Settings) -> DocumentTerms:
    """Return what a document is scored by: its terms, and the names of its scopes and of itself."""
    document_terms = terms(indexed_text(indexed.document), stems=settings.stems)
    document_names = dict.fromkeys(chain(names([indexed.document.id]), *map(_scope_value_names, indexed.scopes)))
    return DocumentTerms(join_terms(document_terms), join_terms(document_names), len(document_terms))


@lru_cache(maxsize=_SCOPES_MAX)
def _scope_value_names(scope: str) -> tuple[str, ...]:
    return tuple(names(value for _, value in scope_parts(scope)))


def document_row(indexed: IndexedDocument, number: int, document_terms: DocumentTerms) -> tantivy.Document:
    """Return the row of a document. `number` is its number in the term store."""
    document = indexed.document
    row = tantivy.Document()
    row.add_text("id", document.id)
    row.add_text("words", document_terms.text)
    row.add_text("names", document_terms.names)
    row.add_unsigned("number", number)
    row.add_bytes("body", add_checksum(document.id.encode(), _encoder.encode(document)))
    row.add_boolean("anchor", indexed.anchor)
    return row


def read_document(row: tantivy.Document) -> Document:
    """Return the document of a row. Raises `Halted` (`damaged`) if its bytes have changed."""
    document_id = str(row.get_first("id"))
    body = strip_checksum(document_id.encode(), bytes(row.get_first("body") or b""))
    if body is None:
        raise Halted("damaged", f"Document {document_id!r} in the text index is damaged. {CURE}")
    return _decoder.decode(body)


def position_row(position: int) -> tantivy.Document:
    """Return the row that holds the position. It is not an anchor, and no query has its word."""
    row = tantivy.Document()
    row.add_text("mark", MARK)
    row.add_text("words", _MARK_WORD)
    row.add_boolean("anchor", False)  # noqa: FBT003  the value to store
    row.add_unsigned("position", position)
    return row

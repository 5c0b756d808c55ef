"""What the text index stores of a document, how its words are read, and the statistics behind a score.

Promise: `document_row` and `read_document` are inverses. The words of a query are read as those of a document are, by
`ranking.analysis`. Cost: reading the words of 1 KB takes about 12 us.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from importlib.metadata import version
from itertools import chain

import msgspec
import tantivy
from msgspec import Struct

from stream_car.adapters.database import add_checksum, strip_checksum
from stream_car.core.documents import Document
from stream_car.core.scope_names import scope_parts
from stream_car.errors import Halted
from stream_car.ports import IndexedDocument
from stream_car.ranking.analysis import joined_terms, names, terms
from stream_car.ranking.bm25 import DocumentTerms, join_terms
from stream_car.ranking.settings import Settings

TANTIVY = version("tantivy")
FORMAT = f"stream-car index 5, tantivy {TANTIVY}\n"
CURE = "Delete the folder of the index; it is rebuilt from the log."

MARK = "statistics"  # the mark of the row that holds the statistics

PAIR_BYTES = 8  # of the hash of a pair; Stage 2 leaves documents out that only collide with it

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
        .add_text_field("pairs", tokenizer_name="words", index_option="basic")
        .add_unsigned_field("number", fast=True)
        .add_bytes_field("body", stored=True)
        .add_boolean_field("anchor", fast=True, indexed=True)
        .add_text_field("mark", tokenizer_name="raw", index_option="basic")
        .add_unsigned_field("documents", stored=True)
        .add_unsigned_field("tokens", stored=True)
        .add_unsigned_field("position", stored=True)
        .build()
    )


class Statistics(Struct, frozen=True):
    """What a commit recorded: its documents, their terms with repeats, and the position that they reach."""

    documents: int = 0
    tokens: int = 0
    position: int = 0


def read_statistics(fields: tantivy.Schema, searcher: tantivy.Searcher) -> Statistics:
    """Return the statistics of the last commit; zeros if there is none."""
    marks = searcher.search(tantivy.Query.term_query(fields, "mark", MARK, "basic"), 1, count=False).hits
    if not marks:
        return Statistics()
    row = searcher.doc(marks[0][1])
    return Statistics(*(int(row.get_first(name) or 0) for name in ("documents", "tokens", "position")))


def indexed_text(document: Document) -> str:
    """Return the text to index. A title that the text repeats counts once."""
    title, text = document.title, document.text
    return replace_surrogates(text if title in text else f"{title}\n{text}")


def replace_surrogates(text: str) -> str:
    """Return the text with the characters replaced that UTF-8 cannot encode (lone surrogates)."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def analyse(indexed: IndexedDocument, settings: Settings) -> DocumentTerms:
    """Return what a document is scored by: its terms, and the names of its scopes and of itself."""
    document_terms, length = joined_terms(indexed_text(indexed.document), stems=settings.stems)
    document_names = dict.fromkeys(chain(names([indexed.document.id]), *map(_scope_value_names, indexed.scopes)))
    return DocumentTerms(document_terms, join_terms(document_names), length)


def match_terms(
    mentioned: Sequence[str], documents: Iterable[Document], settings: Settings
) -> list[frozenset[str]] | None:
    """Return the terms of each document; `None` if a query that mentions these names means one of the documents."""
    read = [(document, indexed_text(document)) for document in documents]
    for document, _ in read:
        values = (value for scope_map in document.scope for values in scope_map.values() for value in values)
        if not set(names([document.id, *values])).isdisjoint(mentioned):
            return None
    return [frozenset(terms(text, stems=settings.stems)) for _, text in read]


@lru_cache(maxsize=_SCOPES_MAX)
def _scope_value_names(scope: str) -> tuple[str, ...]:
    return tuple(names(value for _, value in scope_parts(scope)))


@lru_cache(maxsize=_SCOPES_MAX)
def _scope_terms(scope: str) -> tuple[str, ...]:
    return tuple(map(pair_term, scope_parts(scope)))


def pair_term(pair: tuple[str, str]) -> str:
    """Return the term of a pair of a scope: without spaces, however long its value is."""
    return blake2b("=".join(pair).encode("utf-8", "surrogatepass"), digest_size=PAIR_BYTES).hexdigest()


def document_row(indexed: IndexedDocument, number: int, document_terms: DocumentTerms) -> tantivy.Document:
    """Return the row of a document. `number` is its number in the term store."""
    document = indexed.document
    row = tantivy.Document()
    row.add_text("id", document.id)
    row.add_text("words", document_terms.text)
    row.add_text("names", document_terms.names)
    row.add_text("pairs", " ".join(dict.fromkeys(chain.from_iterable(map(_scope_terms, indexed.scopes)))))
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


def statistics_row(statistics: Statistics) -> tantivy.Document:
    """Return the row that holds the statistics. It is not an anchor, and has no words."""
    row = tantivy.Document()
    row.add_text("mark", MARK)
    row.add_boolean("anchor", False)  # noqa: FBT003  the value to store
    row.add_unsigned("documents", statistics.documents)
    row.add_unsigned("tokens", statistics.tokens)
    row.add_unsigned("position", statistics.position)
    return row

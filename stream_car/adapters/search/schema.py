"""What the text index keeps of a document, how its words are read, and the statistics behind a score.

Promise: `row` and `stored` are inverses for the document; a question's words are read as a
document's are, by `ranking.analysis`. Cost: reading the words of 1 KB takes about 12 us.
"""

from functools import lru_cache
from importlib.metadata import version
from itertools import chain

import msgspec
import tantivy
from msgspec import Struct

from stream_car.core.documents import Document
from stream_car.core.scope_names import scope_parts
from stream_car.errors import Halted, StreamCarError
from stream_car.files.database import guarded, unguarded
from stream_car.ports import IndexedDocument
from stream_car.ranking.analysis import names, terms
from stream_car.ranking.bm25 import DocumentTerms, joined
from stream_car.ranking.settings import Settings

TANTIVY = version("tantivy")
FORMAT = f"stream-car index 2, tantivy {TANTIVY}\n"
CURE = "reset the index, it is rebuilt from the log"

MARK = "position"  # names the document that holds the position
_MARK_WORD = "streamcarposition"  # its only word: explaining its score tells the statistics

_SCOPES_MAX = 1 << 14  # whose names are remembered

_decoder = msgspec.msgpack.Decoder(Document)
_encoder = msgspec.msgpack.Encoder()


def format_of(settings: Settings) -> str:
    """What an index must have been made with to be read."""
    return f"{FORMAT}{'stems' if settings.stems else 'words'}\n"


def splitter() -> tantivy.TextAnalyzer:
    """Terms come to tantivy ready-made, between spaces."""
    return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()


def schema() -> tantivy.Schema:
    """The fields of a row."""
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


class _Explained(Struct):
    description: str
    value: float
    details: list["_Explained"] = []

    def find(self, start: str) -> float:
        """The value whose description begins so."""
        if self.description.startswith(start):
            return self.value
        return max((part.find(start) for part in self.details), default=-1.0)


def read_statistics(fields: tantivy.Schema, searcher: tantivy.Searcher) -> Statistics:
    """The statistics of the last commit; of an index without one, zeros."""
    marks = searcher.search(tantivy.Query.term_query(fields, "mark", MARK, "basic"), 1, count=False).hits
    if not marks:
        return Statistics()
    address = marks[0][1]
    word = tantivy.Query.term_query(fields, "words", _MARK_WORD, "freq")
    explained = msgspec.json.decode(word.explain(searcher, address).to_json(), type=_Explained)
    documents, length = explained.find("N, "), explained.find("avgdl")
    if documents < 0 or length < 0:
        raise StreamCarError(f"tantivy {TANTIVY} explains scores in a new way; install tantivy 0.27")
    return Statistics(
        documents=int(documents),
        anchors=searcher.doc_freq("anchor", True),  # noqa: FBT003  the value looked for
        average_length=length,
        position=int(searcher.doc(address).get_first("position") or 0),
    )


def words(document: Document) -> str:
    """The text that is indexed: a title that the text repeats counts once."""
    title, text = document.title, document.text
    return readable(text if title in text else f"{title}\n{text}")


def readable(text: str) -> str:
    """The text with what UTF-8 cannot say replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def rounded(score: float) -> float:
    """Five digits: what lies beyond depends on the order in which terms were added up."""
    return float(f"{score:.5g}")


def analysed(posting: IndexedDocument, settings: Settings) -> DocumentTerms:
    """A document as it is scored: its terms, and the names of its scopes and its own."""
    found = terms(words(posting.document), stems=settings.stems)
    named = dict.fromkeys(chain(names([posting.document.id]), *map(_names_of, posting.scopes)))
    return DocumentTerms(joined(found), joined(named), len(found))


@lru_cache(maxsize=_SCOPES_MAX)
def _names_of(scope: str) -> tuple[str, ...]:
    return tuple(names(value for _, value in scope_parts(scope)))


def row(posting: IndexedDocument, number: int, said: DocumentTerms) -> tantivy.Document:
    """A document as tantivy keeps it."""
    document = posting.document
    fields = tantivy.Document()
    fields.add_text("id", document.id)
    fields.add_text("words", said.text)
    fields.add_text("names", said.names)
    fields.add_unsigned("number", number)
    fields.add_bytes("body", guarded(document.id.encode(), _encoder.encode(document)))
    fields.add_boolean("anchor", posting.anchor)
    return fields


def stored(row: tantivy.Document) -> Document:
    """The document of a row; `Halted` where the bytes are not those that were kept."""
    name = str(row.get_first("id"))
    body = unguarded(name.encode(), bytes(row.get_first("body") or b""))
    if body is None:
        raise Halted("damaged", f"document {name!r} in the text index is damaged; {CURE}")
    return _decoder.decode(body)


def mark(position: int) -> tantivy.Document:
    """The row of the position. It is no anchor, and its word is nobody's question."""
    fields = tantivy.Document()
    fields.add_text("mark", MARK)
    fields.add_text("words", _MARK_WORD)
    fields.add_boolean("anchor", False)  # noqa: FBT003  the value kept
    fields.add_unsigned("position", position)
    return fields

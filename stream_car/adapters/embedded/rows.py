"""What the text index keeps of a document, how its words are read, and the statistics behind a score.

Promise: `row` and `stored` are inverses for the document; a question's words are read as a
document's are. Cost: reading the words of 1 KB takes about 30 us.
"""

from importlib.metadata import version

import msgspec
import tantivy
from msgspec import Struct

from stream_car.adapters.embedded.sqlite import guarded, unguarded
from stream_car.core.documents import Document
from stream_car.errors import Halted, StreamCarError
from stream_car.ports import Posting

TANTIVY = version("tantivy")
FORMAT = f"stream-car index 1, tantivy {TANTIVY}\n"
CURE = "reset the index, it is rebuilt from the log"

MARK = "position"  # names the document that holds the position
_MARK_WORD = "streamcarposition"  # its only word: explaining its score tells the statistics

_decoder = msgspec.msgpack.Decoder(Document)
_encoder = msgspec.msgpack.Encoder()


def analyzer() -> tantivy.TextAnalyzer:
    """Words of a text: lower case, without accents, English stop words and endings."""
    steps = (
        tantivy.Filter.remove_long(100),
        tantivy.Filter.lowercase(),
        tantivy.Filter.ascii_fold(),
        tantivy.Filter.stopword("english"),
        tantivy.Filter.stemmer("english"),
    )
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in steps:
        builder = builder.filter(step)
    return builder.build()


def schema() -> tantivy.Schema:
    """The fields of a row."""
    return (
        tantivy.SchemaBuilder()
        .add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
        .add_text_field("words", tokenizer_name="words", index_option="freq")
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


def read_statistics(fields: tantivy.Schema, words_of: tantivy.TextAnalyzer, searcher: tantivy.Searcher) -> Statistics:
    """The statistics of the last commit; of an index without one, zeros."""
    marks = searcher.search(tantivy.Query.term_query(fields, "mark", MARK, "basic"), 1, count=False).hits
    if not marks:
        return Statistics()
    address = marks[0][1]
    word = tantivy.Query.term_query(fields, "words", words_of.analyze(_MARK_WORD)[0], "freq")
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


def row(posting: Posting) -> tantivy.Document:
    """A document as tantivy keeps it."""
    document = posting.document
    fields = tantivy.Document()
    fields.add_text("id", document.id)
    fields.add_text("words", words(document))
    fields.add_bytes("body", guarded(document.id.encode(), _encoder.encode(document)))
    fields.add_boolean("anchor", posting.anchor)
    return fields


def stored(name: str, row: tantivy.Document) -> Document:
    """The document of a row; `Halted` where the bytes are not those that were kept."""
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

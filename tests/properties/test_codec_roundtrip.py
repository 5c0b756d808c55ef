"""What is written is read back equal, and no bytes get anything but a document or a verdict."""

import json
import re
from io import BytesIO
from random import Random

import msgspec
from hypothesis import example, given, strategies as st

from stream_car.codec import Limits, content_digest, decode, encode, format_time, parse_time, split_documents
from stream_car.codec.json_scan import outline
from stream_car.codec.times import EARLIEST, LATEST
from stream_car.core.documents import Document, Retraction
from stream_car.errors import InvalidDocument

CODES = {
    "empty",
    "not_object",
    "syntax",
    "encoding",
    "control_char",
    "duplicate_key",
    "number",
    "range",
    "type",
    "depth",
}
CODES |= {"size", "id", "scope", "scope_char", "time", "self", "version", "field", "key"}
WHOLE = 2**53 - 1

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
lines = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=30)
ids = lines.filter(lambda name: 0 < len(name.encode()) <= 256)
words = st.text(st.sampled_from('abcXYZ019._-/:{}*"\\é中ß'), min_size=1, max_size=12)
keys = st.sampled_from(["package", "cve", "drug", "record", "policy", "clé"])
values = st.lists(words, min_size=1, max_size=3, unique=True).map(tuple)
scopes = st.lists(st.dictionaries(keys, values, min_size=1, max_size=3), max_size=3)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-WHOLE, WHOLE) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
links = st.lists(ids, max_size=3, unique=True).map(tuple)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    scope: list[dict[str, tuple[str, ...]]] = []
    for part in draw(scopes):
        if part not in scope:
            scope.append(part)
    name = draw(ids)
    named = [tuple(other for other in draw(links) if other != name) for _ in range(3)]
    return Document(
        id=name,
        type=draw(ids),
        time=draw(st.integers(EARLIEST, LATEST)),
        order=draw(st.integers(-WHOLE, WHOLE)),
        revision=draw(st.integers(1, WHOLE)),
        scope=tuple(scope),
        supersedes=named[0],
        superseded_by=named[1],
        amends=named[2],
        attributes=draw(st.dictionaries(texts, json_values, max_size=4)),
        title=draw(lines),
        text=draw(texts).replace("\0", ""),
        source=draw(lines),
        url=draw(lines),
    )


@given(documents())
def test_a_document_is_read_back_as_it_was_written(document: Document) -> None:
    written = encode(document)

    assert decode(written, key=document.id.encode()) == document
    assert encode(document) == written
    assert list(split_documents(BytesIO(written))) == [written]


@given(ids, st.none() | st.integers(1, WHOLE))
def test_a_retraction_is_read_back_as_it_was_written(name: str, revision: int | None) -> None:
    assert decode(encode(Retraction(id=name, revision=revision))) == Retraction(id=name, revision=revision)


@given(documents(), st.integers(0, 2**32), st.sampled_from([None, 0, 3]))
def test_another_spelling_has_the_same_digest(document: Document, seed: int, indent: int | None) -> None:
    members = list(json.loads(encode(document)).items())
    Random(seed).shuffle(members)
    respelled = decode(json.dumps(dict(members), indent=indent).encode())

    assert respelled == document
    assert isinstance(respelled, Document)
    assert content_digest(respelled) == content_digest(document)


@given(st.integers(EARLIEST, LATEST))
@example(EARLIEST)
@example(LATEST)
@example(-1)
def test_a_time_is_read_back_as_it_was_written(micros: int) -> None:
    assert parse_time(format_time(micros)) == micros


def verdict(value: bytes) -> str:
    try:
        decode(value)
    except InvalidDocument as refusal:
        return refusal.code
    return "accepted"


@given(st.binary(max_size=200))
def test_any_bytes_get_a_known_verdict(value: bytes) -> None:
    assert verdict(value) in CODES
    assert all(isinstance(item, bytes) for item in split_documents(BytesIO(value)))


SNIPPETS = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"NaN",
    b"1e999",
    b"\\ud800",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
]
SNIPPETS += [b'"id":1,', b'"retracted":true,', b"null", b"-", b"0", b"9" * 20, b"9" * 60, b"\xed\xa0\x80", b"\n", b"\t"]
SNIPPETS += [b'"scope":"x",', b'"specversion":"1.0",', b'"data":{},', b'"v":2,', b'"time":"2024",', b"\xe2\x80\x8b"]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    value = encode(draw(documents()))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(value)))
        end = draw(st.integers(start, min(len(value), start + 10)))
        value = value[:start] + draw(st.sampled_from(SNIPPETS) | st.binary(max_size=3)) + value[end:]
    return value


@given(damaged())
def test_a_damaged_document_gets_a_known_verdict_and_what_is_accepted_is_sound(value: bytes) -> None:
    code = verdict(value)
    assert code in CODES | {"accepted"}
    if code == "accepted":
        statement = decode(value)
        assert decode(encode(statement)) == statement
        pairs: list[list[str]] = []
        json.loads(value.decode(), object_pairs_hook=lambda members: pairs.append([key for key, _ in members]))
        assert all(len(set(keys)) == len(keys) for keys in pairs)


@given(st.recursive(texts | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(texts, inner)))
def test_an_outline_is_the_text_without_what_its_strings_say(tree: object) -> None:
    slow_twin = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
    for value in (json.dumps(tree).encode(), msgspec.json.encode(tree)):
        assert outline(value) == slow_twin.sub(b'"', value)


@given(st.lists(documents(), max_size=4), st.sampled_from([None, 0, 2]), st.booleans())
def test_a_file_gives_back_its_documents(many: list[Document], indent: int | None, array: bool) -> None:
    trees = [json.loads(encode(document)) for document in many]
    data = json.dumps(trees, indent=indent) if array else "\n".join(json.dumps(tree, indent=indent) for tree in trees)

    assert [decode(item) for item in split_documents(BytesIO(data.encode()))] == many


@given(st.binary(max_size=300))
def test_no_piece_of_a_file_is_longer_than_the_limit_and_one_byte(data: bytes) -> None:
    for beginning in (b"", b"[", b"{\n"):
        assert all(len(item) <= 21 for item in split_documents(BytesIO(beginning + data), limits=Limits(document=20)))

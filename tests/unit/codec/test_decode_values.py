"""Envelopes, encoding and digests: what the format adds to the table of bad inputs."""

import json

import pytest
from msgspec.structs import replace

from stream_car.codec import content_digest, decode, encode, encode_mapping, format_time
from stream_car.core.documents import Document, Retraction
from stream_car.errors import InvalidDocument
from tests.support.bytes_of_documents import MICROS, REQUIRED, WHEN, code_of, document, raw, text


def cloud_event(**fields: object) -> bytes:
    envelope = {"specversion": "1.0", "id": "event-1", "source": "https://feeds.example", "type": "published"}
    return json.dumps({**envelope, "time": WHEN, "datacontenttype": "application/json", **fields}).encode()


def test_the_data_of_a_cloud_event_is_the_document() -> None:
    wrapped = cloud_event(data={**REQUIRED, "source": "vendor", "severity": "high"}, traceparent="00-1")

    assert decode(wrapped) == decode(text(source="vendor", severity="high"))


def test_a_cloud_event_lends_what_its_data_lacks() -> None:
    lent = document(cloud_event(data={"title": "t"}))

    assert (lent.id, lent.type, lent.time, lent.source) == ("event-1", "published", MICROS, "https://feeds.example")
    assert document(cloud_event(subject="doc-1", data={})).id == "doc-1"
    assert decode(cloud_event(subject="d", data={"retracted": True})) == Retraction(id="d")


def test_a_cloud_event_of_another_version_or_shape_is_refused() -> None:
    assert code_of(cloud_event(specversion="0.3", data=REQUIRED)) == "version"
    assert code_of(cloud_event(specversion=1.0, data=REQUIRED)) == "version"
    assert code_of(cloud_event(data=[REQUIRED])) == "not_object"
    assert code_of(cloud_event(data_base64="e30=")) == "field"
    assert code_of(cloud_event(data={**REQUIRED, "v": 2})) == "version"


def test_an_envelope_inside_an_envelope_is_only_data() -> None:
    assert document(cloud_event(data={**REQUIRED, "specversion": "1.0", "data": {"id": "x"}})).attributes == {
        "specversion": "1.0",
        "data": {"id": "x"},
    }


EVENT = (
    ("ce_specversion", b"1.0"),
    ("ce_id", b"event-1"),
    ("ce_source", b"https://feeds.example"),
    ("ce_type", b"published"),
    ("ce_time", WHEN.encode()),
    ("content-type", b"application/json"),
    ("traceparent", b"00-1"),
)


def test_in_binary_mode_the_headers_lend_what_the_document_lacks() -> None:
    lent = decode(b'{"title": "t"}', headers=EVENT)

    assert isinstance(lent, Document)
    assert (lent.id, lent.type, lent.time, lent.source) == ("event-1", "published", MICROS, "https://feeds.example")
    assert decode(b'{"title": "t"}', headers=(*EVENT, ("ce_subject", b"doc-1"))) == replace(lent, id="doc-1")
    assert decode(text(), headers=EVENT) == replace(document(text()), source="https://feeds.example")
    assert decode(None, key=b"d", headers=EVENT) == Retraction(id="d")
    assert decode(b'{"retracted": true}', headers=(*EVENT, ("ce_subject", b"d"))) == Retraction(id="d")


def test_in_binary_mode_the_value_is_the_document_whatever_it_looks_like() -> None:
    looks = {**REQUIRED, "specversion": "1.0", "data": {"id": "x"}}
    statement = decode(text(**looks), headers=EVENT)

    assert isinstance(statement, Document)
    assert statement.id == "d"
    assert statement.attributes == {"specversion": "1.0", "data": {"id": "x"}}


@pytest.mark.parametrize(
    ("code", "headers"),
    [
        ("version", (("ce_specversion", b"0.3"),)),
        ("field", (*EVENT, ("ce_type", b"other"))),
        ("encoding", (*EVENT, ("ce_subject", b"\xff"))),
        ("time", (*EVENT[:4], ("ce_time", b"yesterday"))),
    ],
)
def test_an_event_in_binary_mode_of_another_version_or_shape_is_refused(
    code: str, headers: tuple[tuple[str, bytes], ...]
) -> None:
    with pytest.raises(InvalidDocument) as refused:
        decode(b'{"id": "d", "type": "advisory"}', headers=headers)

    assert refused.value.code == code


def test_headers_that_only_look_like_those_of_an_event_lend_nothing() -> None:
    assert decode(text(), headers=(("ce_source", b"other"), ("CE_SpecVersion", b"9"))) == document(text())


def test_encoding_is_canonical_and_short() -> None:
    statement = document(text(title="t", zeta=1, alpha={"b": 1, "a": 2}))

    assert encode(statement) == (
        b'{"attributes":{"alpha":{"a":2,"b":1},"zeta":1},"id":"d",'
        b'"time":"2024-01-02T00:00:00Z","title":"t","type":"advisory"}'
    )
    assert encode(Retraction(id="d", revision=2)) == b'{"id":"d","retracted":true,"revision":2}'


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("time", Document(id="d", type="t", time=10**30)),
        ("encoding", Document(id="d", type="t", time=0, text="\ud800")),
        ("number", Document(id="d", type="t", time=0, attributes={"x": [float("nan")]})),
        ("type", Document(id="d", type="t", time=0, attributes={"x": b"bytes"})),
        ("type", Document(id="d", type="t", time=0, attributes={"x": object()})),
        ("type", Document(id="d", type="t", time=0, attributes={"x": {1: "one"}})),
    ],
)
def test_what_json_cannot_carry_is_not_encoded(code: str, changed: Document) -> None:
    with pytest.raises(InvalidDocument) as refusal:
        encode(changed)

    assert (refusal.value.code, refusal.value.document_id) == (code, "d")


def test_a_mapping_is_encoded_as_it_stands() -> None:
    assert document(encode_mapping({**REQUIRED, "scope": {"package": ("axios",)}})).scope == ({"package": ("axios",)},)
    with pytest.raises(InvalidDocument, match="number"):
        encode_mapping({**REQUIRED, "score": float("inf")})
    with pytest.raises(InvalidDocument, match="type"):
        encode_mapping({**REQUIRED, "tags": {"a", "b"}})


def test_the_digest_is_of_the_content_and_not_of_its_spelling() -> None:
    first = raw('"scope":[{"package":["a","b"],"cve":"C"},{"package":"z"}],"amends":["x","y"],"title":"\\u0041","n":1')
    same = raw('"n":1, "title":"A", "amends":["y","x"],"scope":[{"package":["z"]},{"cve":["C"],"package":["b","a"]}]')

    assert content_digest(document(first)) == content_digest(document(same))
    assert len(content_digest(document(first))) == 16
    assert content_digest(document(text(revision=2))) == content_digest(document(text()))


CHANGES: list[dict[str, object]] = [
    {"title": "x"},
    {"text": "x"},
    {"type": "x"},
    {"order": 1},
    {"time": "2024-01-02T00:00:01Z"},
    {"x": 1},
    {"x": 1.0},
    {"scope": {"a": "b"}},
    {"scope": [{"a": "b"}, {"c": "d"}]},
    {"scope": {"a": "b", "c": "d"}},
    {"amends": ["x"]},
    {"supersedes": ["x"]},
    {},
]


def test_every_other_content_has_another_digest() -> None:
    assert len({content_digest(document(text(**changes))) for changes in CHANGES}) == len(CHANGES)


def test_format_time_uses_no_more_digits_than_needed() -> None:
    assert format_time(MICROS) == WHEN
    assert format_time(MICROS + 500_000) == "2024-01-02T00:00:00.5Z"
    assert format_time(-1) == "1969-12-31T23:59:59.999999Z"
    assert format_time(10_000_000) == "1970-01-01T00:00:10Z"
    with pytest.raises(ValueError, match="0001 to 9999"):
        format_time(253_402_300_800_000_000)

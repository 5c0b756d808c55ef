"""Every row of the table of bad inputs that is about one document, with the exact code; then what the format adds."""

import json
import sys
import time
import unicodedata
from collections.abc import Callable

import pytest

from stream_car.codec import Limits, decode, encode
from stream_car.codec.unicode import _rejected_characters
from stream_car.core.documents import Document, Retraction
from stream_car.errors import InvalidDocument
from tests.support.bytes_of_documents import MICROS, WHEN, code_of, document, raw, scoped, text

NO_VALUES: tuple[object, ...] = ("", None, 5, [], {"a": "b"})
REJECTED: list[tuple[str, str, bytes | None]] = [
    ("1", "empty", b""),
    ("1", "empty", b" \r\n\t "),
    ("1", "empty", None),
    *(("2", "not_object", value) for value in (b"null", b"5", b'"x"', b"[]", b"true")),
    ("3", "syntax", text()[:-1]),
    ("3", "syntax", text()[:-9]),
    ("3", "syntax", text() + b" x"),
    ("3", "syntax", text() + text()),
    ("3", "syntax", text() + b"\x00"),
    ("3", "syntax", b"{'id': 'd'}"),
    ("3", "syntax", raw('"order":01')),
    ("3", "syntax", raw('"order":1,')),
    ("3", "syntax", raw('"title":"a\nb"')),
    ("3", "syntax", raw('"title":"\\x41"')),
    ("4", "encoding", raw('"title":"@"').replace(b"@", b"\xff")),
    ("4", "encoding", raw('"title":"@"').replace(b"@", b"\xc0\xaf")),
    ("4", "encoding", raw('"title":"@"').replace(b"@", b"\xed\xa0\x80\xed\xb0\x80")),
    ("4", "encoding", raw('"x@":1').replace(b"@", b"\xe9")),
    ("5", "encoding", b"\xef\xbb\xbf" + text()),
    *(("5", "encoding", text().decode().encode(form)) for form in ("utf-16", "utf-16-le", "utf-16-be")),
    *(("5", "encoding", text().decode().encode(form)) for form in ("utf-32", "utf-32-le", "utf-32-be")),
    *(("6", "encoding", raw(f'"text":"{alone}"')) for alone in ("\\ud800", "\\udc00x", "\\uD800\\u0041", "\\uDBFF\\n")),
    ("6", "encoding", raw('"\\udfff":1')),
    *(("7", "control_char", text(id=f"a{sign}b")) for sign in "\x00\x01\n\x1f\x7f\x80\x9f"),
    *(("7", "control_char", scoped(f"a{sign}b")) for sign in "\x00\x01\t\n\x1f\x7f\x80\x9f"),
    *(("7", "control_char", text(**{field: "a\x1bb"})) for field in ("type", "title", "source", "url")),
    *(("7", "size", text(**{field: "x" * 4097})) for field in ("title", "source", "url")),
    ("7", "control_char", text(supersedes=["a\x00"])),
    ("7", "control_char", text(scope={"a\x07b": "x"})),
    ("7", "control_char", text(text="a\x00b")),
    ("8", "duplicate_key", b'{"id":"a","id":"b"}'),
    ("8", "duplicate_key", raw('"\\u0069d":"b"')),
    ("8", "duplicate_key", raw('"deep":[{"a":{"b":1,"b":1}}]')),
    ("8", "duplicate_key", raw('"note":"a \\": b","x" : 1, "x"\n: 1')),
    ("8", "duplicate_key", '{"scope":{"é":"a","é":"b"},"id":"d","type":"t","time":"2024-01-02T00:00:00Z"}'.encode()),
    *(("9", "number", raw(f'"score":{number}')) for number in ("NaN", "Infinity", "-Infinity")),
    *(("10", "number", raw(f'"score":{number}')) for number in ("1e400", "-1E+400", "1e99999999999999999999")),
    ("11", "number", raw('"order":' + "7" * 5000)),
    ("11", "number", raw('"order":-' + "7" * 41)),
    *(("12", "range", raw(f'"order":{number}')) for number in (2**63, 2**64, 2**53 + 1, 2**53, -(2**53), 10**39)),
    ("12", "range", raw(f'"score":[{{"deep":{2**53}}}]')),
    ("12", "range", text(revision=0)),
    ("12", "range", text(revision=-1)),
    *(("13", "type", raw(f'"order":{number}')) for number in ("1.0", '"1"', "true", "null", "[1]", "1e3")),
    *(("13", "type", raw(f'"revision":{number}')) for number in ("1.0", '"1"', "true", "null")),
    *(("14", "type", text(order=number)) for number in ("١٢", "1_000", " 7\n")),
    *(("15", "depth", b'{"a":' + b"[" * n + b"]" * n + b"}") for n in (32, 33, 1100, 100_000)),
    ("15", "depth", b"[" * 5_000_000),
    ("15", "depth", b'{"a":' * 33),
    ("16", "size", raw('"many":[' + "0," * 100_000 + "0]")),
    ("16", "size", raw('"many":[' + "0," * 9_995 + "0]")),
    ("17", "size", text(note="x" * (256 * 1024 - 70))[: 256 * 1024 + 1]),
    ("17", "size", text(note="x" * 2**20)),
    ("17", "size", text(text="x" * (192 * 1024 + 1))),
    ("17", "size", raw('"text":"@"').replace(b"@", "é".encode() * (96 * 1024 + 1))),
    ("19", "id", b'{"type":"t"}'),
    *(("19", "id", text(id=name)) for name in ("", "x" * 257, "é" * 129, 5, None, ["d"])),
    *(("20b", "scope", scoped(value)) for value in ("", None, 5, True, ["x"], {"a": "b"})),
    *(("20b", "scope", text(scope=value)) for value in ([""], "x", None, 5, [["x"]], [None])),
    *(("20b", "scope", text(scope={"package": value})) for value in NO_VALUES),
    *(("20b", "scope", text(scope={key: "x"})) for key in ("", "a b", "a=b", "a,b", 'a"b', "document", "amended")),
    ("20b", "size", scoped("x" * 1025)),
    ("20b", "size", scoped("a" + "\u0301\u0316" * 20_000)),  # accents in the wrong order take quadratic time to sort
    ("20b", "size", scoped("\u0958" * 341)),  # normal form is twice as long
    ("20b", "size", text(scope={"x" * 257: "x"})),
    ("30", "scope_char", scoped("a\u200bb")),  # zero width
    ("30", "scope_char", scoped("a\u202eb")),  # bidi override
    ("30", "scope_char", scoped("a\U000e0041b")),  # tag
    ("30", "scope_char", scoped("a\u0378b")),  # not assigned
    ("30", "scope_char", scoped("a\U0001faddb")),  # assigned later than Unicode 14.0
    ("30", "scope_char", scoped("a\ue000b")),  # private use
    ("30", "scope_char", scoped("a\ufe0fb")),  # variation selector
    ("30", "scope_char", scoped("a\u3164b")),  # a letter that shows nothing
    ("30", "scope_char", text(scope={"pack\u200bage": "x"})),
    *(
        ("32", "scope_char", scoped(value))
        for value in (" a", "a ", "\ta", "a\t", "\u00a0a", "a\u00a0", "\u3000a", " ")
    ),
    *(("33", "time", text(time=when)) for when in ("0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z")),
    *(("33", "time", text(time=when)) for when in ("-2024-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00")),
    *(("33", "time", text(time=when)) for when in ("0001-01-01T00:00+01:00", "0001-01-01T00:00:00+01:00")),
    *(("34", "time", text(time=f"2024-{rest}")) for rest in ("02-30T00:00:00Z", "13-01T00:00:00Z", "00-01T00:00:00Z")),
    *(("34", "time", text(time=f"2024-01-01T{rest}")) for rest in ("24:00:00Z", "23:59:60Z", "00:60:00Z")),
    *(("34", "time", text(time=f"2024-01-01T00:00:00{rest}")) for rest in ("+24:00", "+00:60", "+00:00:01", "+0100")),
    *(
        ("35", "time", text(time=when))
        for when in ("2024-01-01T00:00:00", "2024-13-01", "2024-02-30", "2024-1-1", "2024-W01-1", "20240101")
    ),
    *(("35", "time", text(time=when)) for when in ("2024-01-01T00:00:00,5Z", "20240101T000000Z", "2024-01-01T00Z")),
    *(("35", "time", text(time=when)) for when in ("2024-01-01T00:00:00.Z", f" {WHEN}", f"{WHEN}\n", "", None, 5)),
    ("35", "time", text(time="٢٠٢٤-01-01T00:00:00Z")),
    ("35", "time", b'{"id":"d","type":"t"}'),
    ("36", "time", text(time="2024-01-01T00:00:00.1234567890Z")),
    *(("37", "time", text(time=f"2024-01-01{rest}")) for rest in ("T00:00:00-00:00", "t00:00:00Z", "T00:00:00z")),
    ("37", "time", text(time="2024-01-01 00:00:00Z")),
    *(("44", "self", text(**{link: ["x", "d"]})) for link in ("supersedes", "superseded_by", "amends")),
    ("49", "size", text(supersedes=[f"x{n}" for n in range(257)])),
    ("49", "size", text(supersedes=["x"] * 257)),
    ("49", "size", text(supersedes=["x"] * 200, amends=["y"] * 57)),
    ("49", "type", text(supersedes="x")),
    ("49", "id", text(supersedes=[5])),
    ("49", "id", text(supersedes=[""])),
    *(("53", "version", text(v=version)) for version in (2, 0, "1", 1.0, True, None)),
    ("53", "field", text(severity="high", attributes={"severity": "low"})),
    ("53", "type", text(attributes=["x"])),
    *(("53", "type", text(type=kind)) for kind in ("", None, 5, "x" * 257)),
    ("53", "type", b'{"id":"d","time":"2024-01-02T00:00:00Z"}'),
    *(("53", "type", text(**{field: None})) for field in ("title", "text", "source", "url", "retracted")),
]


@pytest.mark.parametrize(("row", "code", "value"), REJECTED, ids=[f"{n}-row-{r[0]}" for n, r in enumerate(REJECTED)])
def test_a_bad_input_gets_the_code_of_its_row(row: str, code: str, value: bytes | None) -> None:
    assert code_of(value) == code, row


def test_row_1_a_null_value_retracts_the_stored_revision_of_its_key() -> None:
    assert decode(None, key=b"d") == Retraction(id="d", revision=None)
    assert code_of(None, key=b"") == "id"
    assert code_of(None, key=b"\xff") == "encoding"
    assert code_of(b"", key=b"d") == "empty"


def test_row_11_thousands_of_digits_are_rejected_within_a_millisecond() -> None:
    value = raw('"order":' + "7" * 5000)
    took = []
    for _ in range(20):
        began = time.perf_counter()
        assert code_of(value) == "number"
        took.append(time.perf_counter() - began)

    assert min(took) < 0.001


def test_row_12_integers_reach_to_2_to_the_53_less_one() -> None:
    greatest = document(text(order=2**53 - 1, score=-(2**53 - 1)))

    assert greatest.order == 2**53 - 1
    assert greatest.attributes == {"score": -(2**53 - 1)}
    assert document(raw('"score":0.12345678901234567890')).attributes == {"score": 0.12345678901234568}


def test_row_15_depth_32_is_accepted_and_brackets_in_strings_are_text() -> None:
    assert "a" in document(raw('"a":' + "[" * 31 + "]" * 31)).attributes
    assert document(text(text="[{" * 100 + '\\"')).text == "[{" * 100 + '\\"'


def test_row_15_a_verdict_is_the_same_deep_in_the_stack() -> None:
    values = [text(deep=json.loads("[" * n + "]" * n)) for n in (31, 32)] + [b"[" * 40, text()]
    shallow = [verdict(value) for value in values]

    def sink(levels: int, question: Callable[[], list[str]]) -> list[str]:
        return question() if levels == 0 else sink(levels - 1, question)

    for levels in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit()):
        try:
            assert sink(levels, lambda: [verdict(value) for value in values]) == shallow
        except RecursionError:
            continue  # no verdict at all, which the caller sees
    assert shallow == ["accepted", "depth", "depth", "accepted"]


def verdict(value: bytes) -> str:
    try:
        decode(value)
    except InvalidDocument as refusal:
        return refusal.code
    return "accepted"


def test_row_16_ten_thousand_values_are_accepted_and_empty_lists_count_once() -> None:
    assert len(document(raw('"many":[' + "0," * 9_994 + "0]")).attributes["many"]) == 9_995  # type: ignore[arg-type]
    assert len(document(raw('"many":[' + "[ ]," * 9_994 + "{}]")).attributes["many"]) == 9_995  # type: ignore[arg-type]


def test_row_17_the_limits_themselves_are_accepted() -> None:
    full = text(note="")
    full = text(note="x" * (256 * 1024 - len(full)))
    assert len(full) == 256 * 1024
    assert document(full).id == "d"
    assert len(document(text(text="x" * (192 * 1024))).text) == 192 * 1024
    assert document(text(id="x" * 256)).id == "x" * 256
    assert document(scoped("x" * 1024)).scope == ({"package": ("x" * 1024,)},)


def test_row_20_a_document_without_scope_is_accepted() -> None:
    for value in (text(), text(scope=[]), text(scope={}), text(scope=[{}])):
        assert document(value).scope == ()


def test_row_21_the_same_scope_counts_once() -> None:
    first = {"package": ["axios", "axios"], "cve": "CVE-1"}
    same = {"cve": ["CVE-1"], "package": "axios"}

    assert document(text(scope=[first, same])).scope == ({"package": ("axios",), "cve": ("CVE-1",)},)


@pytest.mark.parametrize(
    "value",
    ["x}{evil}", "{p1}", "a:b", "*", "?[a-z]", "redis.call('FLUSHALL')", "]]", '"', "'", "..", "/etc/passwd", "%2e%2e"],
)
def test_rows_25_to_27_a_scope_is_opaque_text(value: str) -> None:
    assert document(scoped(value)).scope == ({"package": (value,)},)
    assert document(text(id=value)).id == value


def test_row_28_both_spellings_of_a_letter_are_one_scope_and_the_original_is_kept() -> None:
    composed, apart = document(scoped("café")), document(scoped("cafe\u0301"))

    assert composed.scope == apart.scope
    assert composed.attributes == {}
    assert apart.attributes == {"scope_original": {"package": ["cafe\u0301"]}}
    assert decode(encode(apart)) == apart
    assert code_of(text(scope={"package": "cafe\u0301"}, scope_original="x")) == "field"


def test_rows_29_and_31_look_alikes_case_and_width_stay_apart() -> None:
    words = ("paypal", "p\u0430ypal", "PAYPAL", "ｐaypal", "straße", "strasse")

    assert len({str(document(scoped(word)).scope) for word in words}) == len(words)


def test_row_30_the_characters_rejected_are_those_of_one_unicode_version() -> None:
    refused = _rejected_characters()
    hidden = {"Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
    everything = [chr(code) for code in range(sys.maxunicode + 1)]
    caught = {sign for sign in everything if refused.fullmatch(sign) is not None}

    assert [sign for sign in everything if unicodedata.category(sign) in hidden and sign not in caught] == []
    assert len(caught) == 969_782
    assert all(refused.fullmatch(sign) is None for sign in "aé中я한ß—😀\u0301")


@pytest.mark.parametrize(
    ("when", "micros"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2024-01-02", MICROS),
        ("0001-01-01", -62_135_596_800_000_000),
        ("1969-12-31T23:59:59.5Z", -500_000),
        ("2100-01-01T00:00:00+00:00", 4_102_444_800_000_000),
        ("2024-01-02T05:30:00+05:30", MICROS),
        ("2024-01-01T19:00:00-05:00", MICROS),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
        ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
        ("2024-02-29T23:59:59+23:59", 1_709_164_859_000_000),
    ],
)
def test_rows_33_42_and_43_a_time_becomes_microseconds(when: str, micros: int) -> None:
    assert document(text(time=when)).time == micros


def test_row_36_finer_times_are_cut_and_the_original_is_kept() -> None:
    fine = document(text(time="2024-01-02T00:00:00.123456789Z"))

    assert fine.time == MICROS + 123_456
    assert fine.attributes == {"time_original": "2024-01-02T00:00:00.123456789Z"}
    assert document(text(time="2024-01-02T00:00:00.123456+00:00")).attributes == {}
    assert decode(encode(fine)) == fine


def test_row_49_a_repeated_link_counts_once() -> None:
    linked = document(text(supersedes=["x", "y", "x"], superseded_by=["x"] * 100, amends=["y"] * 153))

    assert (linked.supersedes, linked.superseded_by, linked.amends) == (("x", "y"), ("x",), ("y",))


def test_rows_50_and_52_retracted_true_needs_only_an_id() -> None:
    assert decode(b'{"id":"d","retracted":true}') == Retraction(id="d", revision=None)
    assert decode(text(retracted=True, revision=3, scope=5, time="soon")) == Retraction(id="d", revision=3)
    assert isinstance(decode(text(retracted=False)), Document)
    assert "retracted" not in document(text(retracted=False)).attributes
    assert code_of(text(retracted="true")) == "type"
    assert code_of(text(retracted=True, revision=0)) == "range"


def test_row_53_unknown_fields_survive() -> None:
    statement = document(text(v=1, severity="high", cvss=7.5, attributes={"fixed_in": ["1.2"], "id": "other"}))

    assert statement.attributes == {"severity": "high", "cvss": 7.5, "fixed_in": ["1.2"], "id": "other"}
    assert decode(encode(statement)) == statement


def test_row_54_blessed_keys_are_data() -> None:
    blessed = {"__proto__": {"x": 1}, "__class__": "C", "__faust": {"ns": "x"}, "$ref": "#/a", "py/object": "os.system"}

    assert document(text(**blessed)).attributes == blessed


def test_row_55_headers_are_weighed_and_ignored() -> None:
    assert document(text()) == decode(text(), headers=(("Faust-Ag-ReplyTo", b"elsewhere"), ("retracted", b"true")))
    assert code_of(text(), headers=(("x", b""),) * 10_000) == "size"
    assert code_of(text(), headers=(("x", b"x" * 2**20),)) == "size"
    assert code_of(None, key=b"d", headers=(("x", b"x" * 2**16),)) == "size"


def test_row_56_a_key_must_be_the_id() -> None:
    assert decode(text(id="é"), key="é".encode()) == decode(text(id="é"))
    assert code_of(text(), key=b"e") == "key"
    assert code_of(text(), key=b"") == "key"
    assert code_of(b'{"id":"d","retracted":true}', key=b"\xff") == "key"


def test_an_error_names_the_document_once_its_id_is_known() -> None:
    with pytest.raises(InvalidDocument) as known:
        decode(text(time="soon"))
    with pytest.raises(InvalidDocument) as unknown:
        decode(b"{")

    assert known.value.document_id == "d"
    assert "soon" in known.value.reason
    assert unknown.value.document_id is None


def test_limits_can_be_set() -> None:
    with pytest.raises(InvalidDocument, match="size"):
        decode(text(text="long"), limits=Limits(text=3))


@pytest.mark.parametrize(
    ("value", "code", "reason"),
    [
        (b"{}", "id", "`id` is missing. Send a string of 1 to 256 bytes."),
        (b'{"id":""}', "id", "`id` must be a string of 1 to 256 bytes."),
        (
            b'{"id":"d","type":"t"}',
            "time",
            "`time` is missing. Send RFC 3339 such as 2024-01-31T09:30:00Z, or a day alone.",
        ),
        (text(time=5), "time", "`time` must be a string. Send RFC 3339 such as 2024-01-31T09:30:00Z, or a day alone."),
        (b'{"id":"d","time":"2024-01-31"}', "type", "`type` is missing. Send the name of a type of document."),
    ],
)
def test_what_is_missing_is_not_called_wrong(value: bytes, code: str, reason: str) -> None:
    with pytest.raises(InvalidDocument) as caught:
        decode(value)

    assert (caught.value.code, caught.value.reason) == (code, reason)

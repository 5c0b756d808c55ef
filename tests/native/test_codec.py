"""The compiled codec gives what its twin in Python gives, or no answer. Only `make native` runs this."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest

from stream_car.codec import EARLIER_LIMITS, content_digest, decode, decode_with_digest, split_documents
from stream_car.codec.decode import _decode_ordinary
from stream_car.core.documents import Document, Statement
from stream_car.errors import InvalidDocument
from stream_car.native import IS_USED
from stream_car.ranking.analysis import STOP_WORDS, WORD_MAX, joined_terms, terms
from stream_car.ranking.bm25 import join_terms
from tests.support.repository import ROOT

PLACES = [folder / "shared" / "data" for folder in ROOT.parents]  # the wheel is unpacked in build/native/whole
DATA = next(filter(Path.is_dir, PLACES), PLACES[0])
DOCUMENTS = 150_000
TEXTS = 100_000

STRINGS = [
    *("", "a", "EMP00042", "Blackout announced", " edge", "edge ", "x" * 300, "x" * 1025, "x" * 4097, "document"),
    *(
        "amended",
        "record",
        "employee",
        "ticker",
        "a b",
        "1st",
        "_x",
        "caf\u00e9",
        "e\u0301",
        "\u00a0",
        "\u200b",
        "\ud83d",
    ),
    *("\U0001f600", "\0", "\x01", "\x7f", "\x80", "\n", "\t", "\r\n", '"', "\\", "/", "=", ",", "true", "0", "null"),
    *('It is the quick brown fox.\nA second line with "quotes" and \\ and a tab\t.', "naïve text", "\ufffe"),
]
TIMES = [
    *("2024-01-31T09:30:00Z", "2024-01-31", "2024-02-29T23:59:59.999999Z", "2023-02-29", "2024-01-31T09:30:00.5+02:00"),
    *("0001-01-01", "0000-01-01", "9999-12-31T23:59:59Z", "1969-12-31T23:59:59.1Z", "1900-02-29", "2000-02-29"),
    *("2024-01-31T24:00:00Z", "2024-01-31T23:60:00Z", "2024-01-31T23:59:60Z", "2024-01-31t09:30:00Z", "2024-1-31"),
    *("2024-01-31T09:30:00.1234567Z", "2024-01-31T09:30:00.Z", "2024-01-31 09:30:00Z", "2024-13-01", "2024-00-10"),
    *("2024-04-31", "2024-04-00", "+024-01-31", "2024-01-31T9:30:00Z", "2024-01-31T09:30Z", "٢٠٢٤-01-31", ""),
]
NUMBERS = [
    *("0", "1", "2", "-1", "-0", "1.0", "1e3", "01", "007", "999999999999999", "1000000000000000", "NaN"),
    *("9007199254740991", "9007199254740992", "1" * 41, "1" + "0" * 400),
]
OTHERS = ["null", "true", "false", "[]", "{}", '[""]', "[[]]", '{"a":{"b":[1]}}', "[1,2]", "Infinity", "-Infinity", ""]
FIELDS = ["id", "type", "time", "order", "revision", "scope", "title", "text", "source", "url"]
RARE = ["supersedes", "amends", "attributes", "v", "retracted", "specversion", "data", "severity", "Id", ""]
SPACE = ["", "", "", " ", "\n", "\t", "\r\n ", "\u00a0", "\0"]


def spell(random: Random, text: str) -> str:
    """Return a JSON string in one of its spellings, which need not be a right one."""
    if random.random() < 0.6:
        return msgspec.json.encode(text).decode() if text != "\ud83d" else f'"{text}"'
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "/": "\\/", "\0": "\\u0000"}
    return (
        '"' + "".join(escapes.get(c, c) if random.random() < 0.95 else f"\\u{ord(c) & 0xFFFF:04x}" for c in text) + '"'
    )


def scope(random: Random) -> str:
    values = [spell(random, random.choice(STRINGS)) for _ in range(random.choice((1, 1, 1, 1, 2)))]
    value = values[0] if random.random() < 0.3 else f"[{','.join(values)}]"
    pairs = [f"{spell(random, random.choice(('employee', 'ticker', *STRINGS)))}:{value}"]
    pairs += [f'"ticker":"T{random.randrange(3)}"'] * (random.random() < 0.4)
    member = "{" + ",".join(pairs) + "}"
    return random.choice((member, f"[{member}]", f"[{member}]", f"[{member},{member}]"))


def value_of(random: Random, field: str) -> str:
    choice = random.random()
    if choice < 0.02:
        return random.choice(OTHERS)
    if choice < 0.04:
        return random.choice(NUMBERS)
    if field in ("order", "revision"):
        return random.choice(NUMBERS) if choice < 0.3 else str(random.randrange(1, 99))
    if field == "scope":
        return scope(random)
    if field == "time":
        return spell(random, random.choice(TIMES) if choice < 0.3 else "2024-01-31T09:30:00Z")
    return spell(random, random.choice(STRINGS) if choice < 0.4 else f"name {random.randrange(9)}")


def document(random: Random) -> bytes:
    """Return the bytes of a document, of which many are nearly right."""
    fields = ["id", "type", "time", *random.sample(FIELDS, random.randrange(7))]
    fields = list(dict.fromkeys(fields)) if random.random() < 0.95 else fields
    fields += random.sample(RARE, 1) * (random.random() < 0.05)
    random.shuffle(fields)
    space = random.choice(SPACE) if random.random() < 0.2 else ""
    text = ",".join(f'{space}"{field}"{space}:{space}{value_of(random, field)}{space}' for field in fields)
    value = f"{space}{{{text}}}{space}".encode("utf-8", "surrogatepass")
    if random.random() < 0.1:
        at = random.randrange(len(value))
        damage = random.choice((b"", b"\xff", b"\xed\xa0\x80", b'"', b"\\", b",", b"}", b"\xef\xbb\xbf", b"\x00"))
        value = value[:at] + damage + value[at + random.randrange(2) :]
    return value if random.random() < 0.98 else value[: random.randrange(len(value))]


def outcome(value: bytes) -> tuple[Statement, bytes] | str:
    try:
        statement = decode(value)
        return statement, content_digest(statement) if isinstance(statement, Document) else b""
    except InvalidDocument as error:
        return f"{error.code} {error.reason} {error.document_id}"


def require_same(value: bytes) -> bool:
    """Return whether the compiled decoder has an answer; it must be the same to the byte."""
    assert _decode_ordinary is not None
    answer, expected = _decode_ordinary(value), outcome(value)
    if answer is None:
        return False
    assert answer == expected, value
    assert repr(answer) == repr(expected), value
    assert msgspec.msgpack.encode(answer[0]) == msgspec.msgpack.encode(expected[0]), value
    assert decode_with_digest(value, limits=EARLIER_LIMITS) == answer
    return True


def stored_documents() -> Iterator[bytes]:
    for file in sorted(DATA.rglob("*.jsonl")):
        with file.open("rb") as stream:
            yield from split_documents(stream)


def test_the_compiled_codec_is_what_is_tested() -> None:
    assert IS_USED


def test_a_document_is_decoded_alike_or_not_at_all() -> None:
    random = Random(18)

    answered = sum(require_same(document(random)) for _ in range(DOCUMENTS))

    assert DOCUMENTS * 0.1 < answered < DOCUMENTS * 0.9


@pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data are not beside the repository (shared/data)")
def test_documents_of_the_benchmarks_are_decoded_alike_and_are_ordinary() -> None:
    values = [line for file in DATA.glob("*/documents.jsonl") for line in file.read_bytes().splitlines()]

    assert sum(map(require_same, values)) > len(values) * 0.95
    for value in stored_documents():
        require_same(value)


@pytest.mark.parametrize("size", [256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1])
def test_white_space_counts_towards_the_size_of_a_document(size: int) -> None:
    value = b'{"id":"a","type":"t","time":"2024-01-31"}'.ljust(size)

    assert require_same(value) is (size <= 256 * 1024)


@pytest.mark.parametrize("key", [b"a", b"b", b"", b"\xff", None])
def test_the_key_of_a_record_is_compared(key: bytes | None) -> None:
    value = b'{"id":"a","type":"t","time":"2024-01-31"}'

    if key in (b"a", None):
        assert decode_with_digest(value, key=key)[0] == decode(value)
    else:
        with pytest.raises(InvalidDocument, match="key"):
            decode_with_digest(value, key=key)


def test_terms_are_joined_alike() -> None:
    random = Random(18)
    letters = [*map(chr, range(128)), *"äßİıſ\u0301\u00a0\u200bﬁ①漢\ud83d"]
    vocabulary = [
        *STOP_WORDS,
        "running",
        "Runs",
        "x" * WORD_MAX,
        "x" * (WORD_MAX + 1),
        "y" * 300,
        "CVE-2024-1",
        *STRINGS,
    ]
    for number in range(TEXTS):
        words = random.choices(vocabulary, k=random.randrange(12))
        words += [
            "".join(random.choices(letters[: 128 if number % 4 else None], k=random.randrange(9))) for _ in range(3)
        ]
        text = random.choice((" ", "-", "\n", "")).join(words)
        for stems in (True, False):
            expected = terms(text, stems=stems)
            assert joined_terms(text, stems=stems) == (join_terms(expected), len(expected)), text


@pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data are not beside the repository (shared/data)")
def test_terms_of_every_file_of_the_benchmarks_are_joined_alike() -> None:
    for file in sorted(path for path in DATA.rglob("*") if path.is_file()):
        for line in file.read_text(errors="replace").splitlines():
            expected = terms(line)
            assert joined_terms(line) == (join_terms(expected), len(expected)), line

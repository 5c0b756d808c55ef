"""A record in YAML is the record that its publisher wrote: plain values are text, and what is ambiguous is rejected."""

import sys
from io import BytesIO

import pytest

from stream_car.errors import InvalidDocument, InvalidRequest
from stream_car.feeds.yaml_records import parse_yaml, records_or_yaml
from tests.support.feeds import Reading

RECORD = b"""id: PYSEC-2024-1
modified: 2024-01-02T03:04:05.123Z
published: "2023-01-01T00:00:00Z"
aliases:
- CVE-2024-1
withdrawn: null
details: >
  Two lines
  of text.
affected:
- package: {name: tea, ecosystem: PyPI}
  ranges:
  - type: ECOSYSTEM
    events:
    - introduced: 0
    - fixed: 1.10
  versions: [1.0, 1.9]
"""


def test_plain_values_are_text_as_written() -> None:
    assert parse_yaml(b"a: 1.10\nb: [yes, 0x10, 2024-01-01, ~, '']\nc:\n") == {
        "a": "1.10",
        "b": ["yes", "0x10", "2024-01-01", None, ""],
        "c": None,
    }


def test_a_file_of_yaml_is_one_record_and_other_files_are_json() -> None:
    reading = Reading("osv")
    [document] = reading.read(RECORD, "PYSEC-2024-1.yaml")
    [again] = records_or_yaml(BytesIO(b'{"id": "x"}'), "x.json")

    assert document.id == "PYSEC-2024-1@2024-01-02T03:04:05.123Z"
    assert getattr(document, "attributes")["fixed"] == {"tea": ["1.10"]}  # noqa: B009 (a statement may be a retraction)
    assert again.data == b'{"id": "x"}'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"a: &x 1\nb: *x\n", "syntax"),
        (b"a: 1\na: 2\n", "duplicate_key"),
        (b"[" * 5000 + b"]" * 5000, "depth"),
        (b"a: [1\n", "syntax"),
        (b"a: 1\n---\nb: 2\n", "syntax"),
        (b"? [a]\n: 1\n", "syntax"),
        (b"a: \xff\n", "encoding"),
        (b"# nothing\n", "syntax"),
    ],
)
def test_what_is_ambiguous_or_hostile_is_rejected(text: bytes, code: str) -> None:
    with pytest.raises(InvalidDocument) as caught:
        parse_yaml(text)

    assert caught.value.code == code


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)

    with pytest.raises(InvalidRequest, match=r"pip install 'stream-car\[yaml\]'"):
        parse_yaml(b"a: 1\n")

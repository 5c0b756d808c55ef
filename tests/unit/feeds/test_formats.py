"""Formats by name, and by what an input looks like."""

import pytest

from stream_car.feeds import guess_format


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b'{"id": "GHSA-1", "affected": []}', "osv"),
        (b'{"commit_time": "2024-01-01", "record": {}}', "osv"),
        (b'{"document": {}, "product_tree": {}, "vulnerabilities": []}', "csaf"),
        (b'{"@context": "https://openvex.dev/ns", "@id": "a", "statements": []}', "openvex"),
        (b'{"dataType": "CVE_RECORD", "cveMetadata": {}}', "cve5"),
        (b'{"catalogVersion": "1", "vulnerabilities": []}', "kev"),
        (b'{"meta": {}, "results": []}', "openfda"),
        (b'{"subject": "tea", "relation": "price", "object": "1"}', "facts"),
        (b'{"id": "a", "type": "fact"}', None),
        (b'["a"]', None),
        (b"{", None),
    ],
)
def test_an_input_is_recognized_by_its_keys(text: bytes, name: str | None) -> None:
    form = guess_format(text)

    assert (form.name if form is not None else None) == name

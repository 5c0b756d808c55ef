"""What documents say of versions, kept by id and revision."""

from stream_car.core.documents import Document
from stream_car.core.stored import Entry
from stream_car.queries.statements_cache import DECODED_FACTOR, DOCUMENT_BYTES, StatementsCache
from stream_car.rule_packs.loader import load


def document(name: str, revision: int = 1, *, listed: int = 0) -> Document:
    affected = [{"package": {"ecosystem": "npm", "name": "lodash"}, "versions": ["1.2.3"] * listed}]
    return Document(id=name, type="advisory", time=1, revision=revision, attributes={"affected": affected})


def entry(name: str, revision: int = 1) -> Entry:
    return Entry(name, revision, "advisory", 1, 0, 0, 0)


def test_another_revision_of_a_document_is_not_in_the_cache() -> None:
    cache = StatementsCache(load(["security"]))
    statements = cache.read(document("a"))

    assert cache.find(entry("a")) is statements
    assert cache.find(entry("a", 2)) is None
    assert cache.find(entry("b")) is None


def test_the_least_recently_used_is_evicted() -> None:
    cache = StatementsCache(load(["security"]), bytes_max=4 * DOCUMENT_BYTES)
    for name in ("a", "b"):
        cache.read(document(name))
    cache.find(entry("a"))
    for name in ("c", "a"):
        cache.read(document(name))

    assert [name for name in "abc" if cache.find(entry(name))] == ["a", "c"]
    assert cache.size <= cache.bytes_max


def test_a_document_that_is_larger_than_the_cache_is_read_but_not_kept() -> None:
    cache = StatementsCache(load(["security"]), bytes_max=DECODED_FACTOR * 1_000)

    assert cache.read(document("a", listed=1_000)).versions.has_versions
    assert (cache.find(entry("a")), cache.size) == (None, 0)

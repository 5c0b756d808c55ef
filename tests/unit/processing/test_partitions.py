"""Where ids and scopes belong: fixed for ever, and where Kafka's clients put keys."""

from collections import Counter

import pytest

from stream_car.processing.partitions import Partitions, murmur2


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_ids_are_hashed_as_kafkas_own_clients_hash_keys(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed % (1 << 32)


def test_the_shards_of_ids_and_scopes_never_change() -> None:
    partitions = Partitions(intakes=8, frontiers=8)

    assert [partitions.of_id(name) for name in ("GHSA-1", "GHSA-2", "CVE-2024-7", "übung")] == [3, 6, 7, 1]
    assert [partitions.of_scope(name) for name in (b"package=axios", b"cve=CVE-1, package=axios")] == [4, 6]


def test_ids_and_scopes_are_spread_over_all_shards() -> None:
    partitions = Partitions(intakes=8, frontiers=8)
    ids = Counter(partitions.of_id(f"GHSA-{n}") for n in range(8000))
    scopes = Counter(partitions.of_scope(b"package=p%d" % n) for n in range(8000))

    assert len(ids) == len(scopes) == 8
    assert min(*ids.values(), *scopes.values()) > 800


def test_one_shard_holds_everything() -> None:
    assert Partitions().of_id("any") == Partitions().of_scope(b"any") == 0

"""The names under which a document may be listed, for a name as people have it."""

from collections.abc import Collection

import pytest

from stream_car import rule_packs
from stream_car.local.run_sync import run_sync
from stream_car.queries import names
from stream_car.queries.names import similar_names, spellings
from stream_car.queries.snapshot import Snapshot
from tests.support.plain_index import PlainIndex


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CVE-2023-53159", []),
        ("lodash@4.17.4", ["lodash"]),
        ("@babel/core", []),
        ("@babel/core@7.0.0", ["@babel/core"]),
        ("pkg:npm/lodash", ["lodash"]),
        ("pkg:npm/lodash@4.17.4?vcs_url=git#src", ["pkg:npm/lodash", "lodash"]),
        ("pkg:npm/%40babel/core@7.0.0", ["pkg:npm/%40babel/core", "@babel/core"]),
        ("pkg:npm/@babel/core", ["@babel/core"]),
        ("pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1", [
            "pkg:maven/org.apache.logging.log4j/log4j-core", "org.apache.logging.log4j:log4j-core",
        ]),
        ("pkg:golang/github.com/gin-gonic/gin@v1.0.0", [
            "pkg:golang/github.com/gin-gonic/gin", "github.com/gin-gonic/gin",
        ]),
        ("GHSA-1@2024-01-01T00:00:00Z", []),
        ("name@", ["name"]),
        ("@", []),
        ("pkg:", [""]),
    ],
)  # fmt: skip
def test_a_version_is_left_out_and_a_purl_becomes_a_package(name: str, expected: list[str]) -> None:
    assert list(spellings(name)) == [name, *expected]


def test_a_long_unknown_name_is_compared_in_batches_with_pauses() -> None:
    meant = "github.com/somebody-or-other/a-package-with-a-long-name"
    steps: list[int] = []

    class OneName(PlainIndex):
        async def known_pairs(self, pairs: Collection[tuple[str, str]]) -> Collection[tuple[str, str]]:
            steps.append(len(pairs))
            return {("record", meant)} & set(pairs)

    class CountedPauses(Snapshot):
        async def yield_control(self) -> None:
            steps.append(0)

    snapshot = CountedPauses(None, rule_packs.load(["security"]))  # type: ignore[arg-type]

    assert run_sync(similar_names(snapshot, OneName(), meant[:-1])) == (meant,)
    assert max(steps) <= names.PAIRS_AT_ONCE < sum(steps)
    assert steps[1::2] == [0] * (len(steps) // 2) and len(steps) % 2 == 0

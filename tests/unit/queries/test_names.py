"""The names under which a document may be listed, for a name as people have it."""

import pytest

from stream_car.queries.names import spellings


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

"""Packages that a question in words asks about."""

import pytest

from stream_car.queries.mentions import mentioned_packages


@pytest.mark.parametrize(
    ("text", "packages"),
    [
        ("is requests 2.19 vulnerable?", [("requests", "2.19")]),
        ("Is lodash v4.17.4 safe to use?", [("lodash", "4.17.4")]),
        ("are we hit with jinja2==2.10?", [("jinja2", "2.10")]),
        ("what about @angular/core@1.2.3.", [("@angular/core", "1.2.3")]),
        ("lodash version 4 and hoek release 2", [("lodash", "4"), ("hoek", "2")]),
        ("does pkg:npm/lodash@4.17.4 have flaws?", [("lodash", "4.17.4")]),
        ("github.com/gin-gonic/gin v1.5.0", [("github.com/gin-gonic/gin", "1.5.0")]),
        ("is requests vulnerable?", [("requests", "")]),
        ("is curl still affected by CVE-2023-38545?", [("curl", "")]),
        ("known vulnerabilities in lodash-es", [("lodash-es", "")]),
        ("how does the parser of requests fail", []),
        ("what happened in 2019", []),
        ("", []),
    ],
)
def test_what_stands_where_a_package_stands_is_proposed(text: str, packages: list[tuple[str, str]]) -> None:
    assert [(each.name, each.version) for each in mentioned_packages(text)] == packages

"""Packages that a question in words asks about: `is requests 2.19 vulnerable?`

Promise: pure. Only what stands beside a version, or in the place of a package in a question about vulnerabilities, is
proposed; whether there is such a package is for the index to tell.
"""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from stream_car.queries.findings import PackageFindings
from stream_car.versions.packages import PURL, Package, parse_package
from stream_car.versions.verdicts import RANKS

MENTIONS_MAX = 5
TEXT_MAX = 2_000  # characters in which packages are looked for
_NAME = r"@?[A-Za-z0-9][\w.-]*(?:[/:][\w.-]+)*"
_PURL = re.compile(r"pkg:[^\s,;\"')]+")
_VERSIONED = re.compile(
    rf"(?<![\w@/.:-])({_NAME})(?:@v?|\s*==\s*|\s+(?:version|release)\s+v?|\s+v?(?=\d+\.))(\d[\w.+~-]*)", re.IGNORECASE
)
_IS_SAFE = re.compile(
    rf"\b(?:is|are|was|were)\s+({_NAME})\s+(?:still\s+|currently\s+|now\s+)?"
    r"(?:vulnerable|affected|safe|secure|exploitable|compromised)\b",
    re.IGNORECASE,
)
_FLAWS_IN = re.compile(
    rf"\b(?:vulnerabilit(?:y|ies)|cves?|advisor(?:y|ies)|flaws?)\s+(?:in|of|for|affecting|against)\s+({_NAME})",
    re.IGNORECASE,
)


def mentioned_packages(text: str) -> tuple[Package, ...]:
    """Return the packages that a question may ask about, those with a version first."""
    packages = {package.key: package for package in reversed(list(_mentions(text[:TEXT_MAX])))}
    return tuple(reversed(packages.values()))[:MENTIONS_MAX]


def only_mentioned(package: PackageFindings, text: str) -> PackageFindings:
    """Return what concerns the vulnerabilities that a question names, or everything if it names none of them."""
    words = set(re.findall(r"[\w-]+", text.upper()))
    named = [each for each in package.findings if not words.isdisjoint(map(str.upper, each.names))]
    if not named:
        return package
    status = min((each.status for each in named), key=RANKS.__getitem__)
    return replace(package, findings=tuple(named), status=status)


def _mentions(text: str) -> Iterator[Package]:
    for match in _PURL.finditer(text):
        try:
            yield parse_package(match[0].rstrip(".?!:"))
        except ValueError:
            continue
    text = _PURL.sub(" ", text)
    for match in _VERSIONED.finditer(text):
        name, version = match[1].rstrip(".-"), match[2].rstrip(".-")
        yield Package(text=f"{name}@{version}", name=name, version=version)
    for pattern in (_IS_SAFE, _FLAWS_IN):
        for match in pattern.finditer(text):
            name = match[1].rstrip(".-")
            if not name.startswith(PURL):
                yield Package(text=name, name=name)

"""How versions are compared, by the rules of their ecosystem.

Promise: a version that cannot be read is an error, never a guess. Cost: a few microseconds for a version that was not
read lately.
"""

import re
from collections.abc import Callable, Iterable
from functools import cmp_to_key, lru_cache

CACHED_MAX = 1 << 15
_DIGITS = re.compile(r"[0-9]+(?:[.-][0-9]+)*")
_DOT_BEFORE_LETTER = re.compile(r"\.(?=[^\W\d_])")
_GO_RELEASE = re.compile(r"(?:go)?([0-9]+\.[0-9]+(?:\.[0-9]+)?)(rc|beta)([0-9]+)")
_COMPOSER_SUFFIX = re.compile(r"[._-]?(dev|alpha|a|beta|b|rc|stable|patch|pl|p)[._-]?([0-9]*)$", re.IGNORECASE)
_COMPOSER_TO_PEP440 = {
    "alpha": "a",
    "beta": "b",
    "patch": ".post",
    "pl": ".post",
    "p": ".post",
    "dev": ".dev",
    "stable": "",
}


class UnreadableVersion(ValueError):
    """The text is not a version of its ecosystem."""


class Order:
    """The order of the versions of an ecosystem."""

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self._parse = lru_cache(CACHED_MAX)(parse)

    def key(self, version: str) -> object:
        """Return what is compared. Raises `UnreadableVersion`."""
        try:
            return self._parse(version)
        except (ValueError, TypeError, AttributeError, IndexError) as error:
            raise UnreadableVersion(version) from error

    def is_less(self, version: str, other: str) -> bool:
        """Return whether a version comes before another. Raises `UnreadableVersion`."""
        return _is_less(self.key(version), self.key(other))

    def is_equal(self, version: str, other: str) -> bool:
        """Return whether neither version comes before the other; unreadable ones must be the same text."""
        if version == other:
            return True
        try:
            key, other_key = self.key(version), self.key(other)
        except UnreadableVersion:
            return False
        return not _is_less(key, other_key) and not _is_less(other_key, key)

    def is_at_or_after(self, version: str, other: str) -> bool:
        """Return whether a version is known not to come before another."""
        try:
            return not self.is_less(version, other)
        except UnreadableVersion:
            return False

    def sorted(self, versions: Iterable[str]) -> list[str]:
        """Return versions in this order. Raises `UnreadableVersion`."""
        return sorted(versions, key=cmp_to_key(self.compare))

    def compare(self, version: str, other: str) -> int:
        """Return a negative number, zero or a positive number, as `cmp_to_key` takes it. Raises `UnreadableVersion`."""
        return -1 if self.is_less(version, other) else int(self.is_less(other, version))


def _is_less(key: object, other: object) -> bool:
    return bool(key < other)  # type: ignore[operator]  # keys of one order


def _semver(text: str) -> object:
    from semver import Version

    version = Version.parse(text.removeprefix("v"), optional_minor_and_patch=True)
    return version.major, version.minor, version.patch, _prerelease(version.prerelease)


def _prerelease(text: str | None) -> tuple[object, ...]:
    """Return what sorts prereleases: by their parts, numbers first, and all of them before the release."""
    if text is None:
        return (1,)
    parts = ((0, int(part), "") if part.isdigit() else (1, 0, part) for part in text.split("."))
    return (0, *parts)


def _go(text: str) -> object:
    """Read a module's version, or a release of Go such as `go1.21rc2`, which its records write as 1.21.0-rc.2."""
    release = _GO_RELEASE.fullmatch(text)
    if release is not None:
        number, kind, count = release.groups()
        text = f"{number}{'.0' if number.count('.') == 1 else ''}-{kind}.{count}"
    return _semver(text.removeprefix("go"))


def _pypi(text: str) -> object:
    from packaging.version import Version

    return Version(text)


def _maven(text: str) -> object:
    from univers.maven import Version

    if not text:
        raise UnreadableVersion(text)
    return Version(_DOT_BEFORE_LETTER.sub("-", text))  # by the POM reference, `1.foo` equals `1-foo`


def _gem(text: str) -> object:
    from univers.gem import GemVersion

    return GemVersion(text)


def _nuget(text: str) -> object:
    from univers.nuget import InvalidNuGetVersion, Version

    try:
        version: object = Version.from_string(text)
    except InvalidNuGetVersion as error:
        raise UnreadableVersion(text) from error
    if version is None:
        raise UnreadableVersion(text)
    return version


def _debian(text: str) -> object:
    from univers.debian import Version

    return Version.from_string(text)


def _rpm(text: str) -> object:
    from univers.rpm import RpmVersion

    if not text:
        raise UnreadableVersion(text)
    return RpmVersion.from_string(text)


def _alpine(text: str) -> object:
    from univers.versions import AlpineLinuxVersion

    return AlpineLinuxVersion(text)


def _composer(text: str) -> object:
    """Read a version of Composer as one of Python: the stabilities dev, alpha, beta, RC, stable, patch agree."""
    suffix = _COMPOSER_SUFFIX.search(text)
    if suffix is None:
        return _pypi(text)
    kind = suffix[1].lower()
    return _pypi(
        f"{text[: suffix.start()]}{_COMPOSER_TO_PEP440.get(kind, kind)}{suffix[2] if kind != 'stable' else ''}"
    )


def _numbers(text: str) -> object:
    """Read numbers, separated by dots or hyphens. Trailing zeros count for nothing."""
    if _DIGITS.fullmatch(text.removeprefix("v")) is None:
        raise UnreadableVersion(text)
    numbers = [int(part) for part in re.split(r"[.-]", text.removeprefix("v"))]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


SEMVER = Order("semver", _semver)
GO = Order("go", _go)
PYPI = Order("pypi", _pypi)
MAVEN = Order("maven", _maven)
GEM = Order("gem", _gem)
NUGET = Order("nuget", _nuget)
COMPOSER = Order("composer", _composer)
DEBIAN = Order("debian", _debian)
RPM = Order("rpm", _rpm)
ALPINE = Order("alpine", _alpine)
NUMBERS = Order("numbers", _numbers)  # for versions of which nothing is known; text in them cannot be compared

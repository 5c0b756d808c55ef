"""`package-lock.json` and `npm-shrinkwrap.json`, versions 1 to 3."""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from stream_car.lockfiles.dependencies import Dependencies, DependencyFile, purl, unreadable

FOLDER = "node_modules/"


class LockedPackage(Struct):
    """An installed package. A link leads to a folder of the project itself."""

    version: str = ""
    name: str = ""
    link: bool = False
    dependencies: dict[str, object] = {}  # of version 1: installed below this one; later: only their ranges


class PackageLock(Struct):
    """A lockfile of npm."""

    lockfileVersion: int
    name: str = ""
    version: str = ""
    packages: dict[str, LockedPackage] = {}
    dependencies: dict[str, LockedPackage] = {}


def read_package_lock(file: DependencyFile) -> Dependencies:
    """Return what npm has installed."""
    try:
        lock = msgspec.json.decode(file.text.encode(), type=PackageLock)
        packages = dict.fromkeys(_packages(lock) if lock.packages else _nested(lock.dependencies))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise unreadable(file, str(error)) from None
    product = purl("npm", lock.name, lock.version) if lock.name else ""
    return Dependencies(packages=tuple(packages), product=product)


def _packages(lock: PackageLock) -> Iterator[str]:
    for path, package in lock.packages.items():
        _, folder, name = path.rpartition(FOLDER)
        if folder and not package.link:
            yield purl("npm", package.name or name, package.version)


def _nested(dependencies: Mapping[str, LockedPackage]) -> Iterator[str]:
    for name, package in dependencies.items():
        alias, at, version = package.version.removeprefix("npm:").rpartition("@")
        is_alias = package.version.startswith("npm:") and at
        is_version = not any(mark in package.version for mark in (":", "/"))
        yield purl("npm", alias if is_alias else name, version if is_alias else package.version if is_version else "")
        yield from _nested(msgspec.convert(package.dependencies, dict[str, LockedPackage]))

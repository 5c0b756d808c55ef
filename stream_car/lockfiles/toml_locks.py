"""The lockfiles that list packages as TOML: `poetry.lock`, `uv.lock` and `Cargo.lock`.

What is part of the project itself is left out: it is no dependency.
"""

import re
import tomllib

import msgspec
from msgspec import Struct

from stream_car.lockfiles.dependencies import Dependencies, DependencyFile, lines_of, purl, unreadable

LOCAL = ("directory", "file", "editable", "virtual", "path", "workspace")  # sources of a package of the project itself
TABLES_MAX = 50_000  # each of which takes its parser up to 30 us
DOTS_MAX = 50  # in one key: the parser takes time by their square
_KEY_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_LONG_KEY = re.compile(rf"(?<![\w\\.-])(?:{_KEY_PART}){{{DOTS_MAX + 1}}}")


class TomlPackage(Struct):
    """A package. Where it comes from is a table, or with Cargo a text."""

    name: str
    version: str = ""
    source: dict[str, object] | str | None = None


class TomlLock(Struct):
    """A lockfile."""

    package: list[TomlPackage] = []


def read_toml_lock(file: DependencyFile, kind: str) -> Dependencies:
    """Return the packages of a lockfile, as purls of this type."""
    lines = lines_of(file)
    if sum(line.lstrip().startswith("[") for line in lines) > TABLES_MAX:
        raise unreadable(file, f"it has more than {TABLES_MAX:,} tables.")
    if any(line.count(".") > DOTS_MAX and _LONG_KEY.search(line) is not None for line in lines):
        raise unreadable(file, f"a key in it has more than {DOTS_MAX} dots.")
    try:
        lock = msgspec.convert(tomllib.loads(file.text), TomlLock)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError) as error:
        raise unreadable(file, str(error)) from None
    own = [package for package in lock.package if _is_own(package, kind)]
    others = (package for package in lock.package if not _is_own(package, kind))
    packages = dict.fromkeys(purl(kind, package.name, package.version) for package in others)
    product = purl(kind, own[0].name, own[0].version) if len(own) == 1 else ""
    return Dependencies(packages=tuple(packages), product=product)


def _is_own(package: TomlPackage, kind: str) -> bool:
    if kind == "cargo":
        return package.source is None
    if not isinstance(package.source, dict):
        return False
    return package.source.get("type") in LOCAL or not set(LOCAL).isdisjoint(package.source)

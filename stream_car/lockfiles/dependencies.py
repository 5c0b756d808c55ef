"""What a lockfile or a bill of materials lists, whichever its format.

Promise: a file that cannot be read is an error, and so is a package in it that cannot be told apart; none is skipped in
silence. A package that is not pinned is listed without a version.
"""

import re
from collections.abc import Sequence

from msgspec import Struct
from packageurl import PackageURL

from stream_car.errors import InvalidRequest

LINES_MAX = 200_000  # of a file that is read line by line
LINE_MAX = 64 << 10  # characters

_PLAIN = re.compile(r"[a-z0-9._-]+")  # what a purl has as it is


class DependencyFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A lockfile or a bill of materials; its format follows from its name or its content."""

    name: str
    text: str


class Dependencies(Struct, frozen=True, kw_only=True):
    """The packages that files list, each once, as purls or `name@version`, and what they are part of, if one says so.

    `includes` are further files that a file refers to.
    """

    packages: tuple[str, ...] = ()
    product: str = ""
    includes: tuple[str, ...] = ()


def purl(kind: str, name: str, version: str = "") -> str:
    """Return the purl of a package; the part of its name before the last slash is the namespace."""
    if _PLAIN.fullmatch(name) and _PLAIN.fullmatch(version) and kind != "pypi":
        return f"pkg:{kind}/{name}@{version}"
    namespace, _, own_name = name.rpartition("/")
    return PackageURL(type=kind, namespace=namespace or None, name=own_name, version=version or None).to_string()


def lines_of(file: DependencyFile) -> list[str]:
    """Return the lines of a file. Raises `InvalidRequest` (`files`) if there are too many, or one is too long."""
    if file.text.count("\n") >= LINES_MAX:
        raise unreadable(file, f"it has more than {LINES_MAX:,} lines.")
    lines = file.text.splitlines()
    longest = max(range(len(lines)), key=lambda at: len(lines[at]), default=0)
    if lines and len(lines[longest]) > LINE_MAX:
        raise unreadable(file, f"line {longest + 1} is longer than {LINE_MAX:,} characters.")
    return lines


def joined(parts: Sequence[Dependencies]) -> Dependencies:
    """Return what several files list together. The product is that of the first file that names one."""
    return Dependencies(
        packages=tuple(dict.fromkeys(package for part in parts for package in part.packages)),
        product=next((part.product for part in parts if part.product), ""),
    )


def unreadable(file: DependencyFile, reason: str) -> InvalidRequest:
    """Return the error of a file that cannot be read."""
    return InvalidRequest("files", f"{file.name} cannot be read: {reason}")

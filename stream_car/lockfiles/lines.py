"""The lockfiles that list a package per line: `requirements.txt` and `go.sum`."""

import re
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement

from stream_car.lockfiles.dependencies import LINE_MAX, Dependencies, DependencyFile, lines_of, purl, unreadable

_COMMENT = re.compile(r"(^|\s)#.*")
_OPTIONS = re.compile(r"\s--?[a-z].*", re.DOTALL)  # of a requirement, such as --hash
_PLACE = re.compile(r"(?:-e|--editable)[\s=].+|(?:(?:git|hg|svn|bzr)\+|https?://|file:).+|\.{1,2}(?:[/\\].*)?")
_EGG = re.compile(r"#(?:.*&)?egg=([A-Za-z0-9][\w.-]*)")
PLACE_MAX = 1_000
REQUIREMENT_MAX = 1_000  # characters without options: its parser takes time by their square
_INCLUDE = re.compile(r"(?:-r|--requirement)[\s=]*(\S+)")
_SUM = re.compile(r"(\S+) (v[^\s/]+)(/go\.mod)? h1:\S+")


def read_requirements(file: DependencyFile) -> Dependencies:
    """Return the requirements, with a version if it is pinned. Other options than included files are passed over.

    A folder or an address is listed by the name of its package if the line has one, and otherwise as it is.
    """
    packages: dict[str, None] = {}
    includes: list[str] = []
    for number, raw in _whole_lines(file):
        line = _COMMENT.sub("", raw).strip()
        if (include := _INCLUDE.match(line)) is not None:
            includes.append(include[1])
        elif (place := _PLACE.fullmatch(_OPTIONS.sub("", line))) is not None:
            egg = _EGG.search(place[0])
            packages[purl("pypi", egg[1]) if egg is not None else line[:PLACE_MAX]] = None
        elif line and not line.startswith("-"):
            packages[_requirement(file, _OPTIONS.sub("", line), number)] = None
    return Dependencies(packages=tuple(packages), includes=tuple(includes))


def _whole_lines(file: DependencyFile) -> Iterator[tuple[int, str]]:
    """Yield each line with its number; one that ends with a backslash goes on with the next."""
    whole: list[str] = []
    size = 0
    for number, line in enumerate(lines_of(file), 1):
        whole.append(line.removesuffix("\\"))
        size += len(line)
        if size > LINE_MAX:
            raise unreadable(file, f"the line that ends in line {number} is longer than {LINE_MAX:,} characters.")
        if not line.endswith("\\"):
            yield number, " ".join(whole)
            whole, size = [], 0
    if whole:
        yield number, " ".join(whole)


def _requirement(file: DependencyFile, line: str, number: int) -> str:
    if len(line) > REQUIREMENT_MAX:
        raise unreadable(file, f"the requirement in line {number} is longer than {REQUIREMENT_MAX:,} characters.")
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        raise unreadable(file, f"line {number} is not a requirement: {line[:80]!r}.") from None
    pins = [each.version for each in requirement.specifier if each.operator in ("==", "===")]
    version = pins[0] if len(pins) == 1 and not pins[0].endswith(".*") else ""
    return purl("pypi", requirement.name, version)


def read_go_sum(file: DependencyFile) -> Dependencies:
    """Return the modules whose content was used; of others only the requirements were read."""
    packages: dict[str, None] = {}
    for number, line in enumerate(lines_of(file), 1):
        if not line.strip():
            continue
        match = _SUM.fullmatch(line.strip())
        if match is None:
            raise unreadable(file, f"line {number} is not `MODULE VERSION h1:HASH`.")
        if match[3] is None:
            packages[purl("golang", match[1], match[2])] = None
    return Dependencies(packages=tuple(packages))

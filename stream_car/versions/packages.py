"""Packages by the names that people and publishers give them, and the ecosystems that these belong to.

Promise: two spellings of one package, as purl, name or name in an ecosystem, mean the same package.
"""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct
from packageurl import PackageURL

from stream_car.versions import orders
from stream_car.versions.orders import Order

PURL = "pkg:"
_PYTHON_SEPARATORS = re.compile(r"[-_.]+")
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?\s*={2,3}\s*([^\s;,]+)")
_UNNAMED = re.compile(r"\.|\.\.|(\.\.?[/\\]|-e\b|--editable\b|(git|hg|svn|bzr)\+|https?://|file:).*", re.DOTALL)
_RANGE = re.compile(r"[<>=~^]|!=")
_PLAIN_PURL = re.compile(r"pkg:(npm|cargo|gem)/([a-z0-9._-]+)(?:@([A-Za-z0-9._-]+))?")  # most of them; read fast
_RELEASE_NAMES = {
    "buster": "10",
    "bullseye": "11",
    "bookworm": "12",
    "trixie": "13",
    "forky": "14",
    "bionic": "18.04",
    "focal": "20.04",
    "jammy": "22.04",
    "noble": "24.04",
}


class Ecosystem(Struct, frozen=True):
    """An ecosystem by its name in OSV: the type of its purls, their namespace if it has one, and its order."""

    name: str
    purl: str
    order: Order | None
    namespace: str = ""
    has_releases: bool = False


ECOSYSTEMS: Mapping[str, Ecosystem] = {
    each.name.lower(): each
    for each in (
        Ecosystem("PyPI", "pypi", orders.PYPI),
        Ecosystem("npm", "npm", orders.SEMVER),
        Ecosystem("Go", "golang", orders.GO),
        Ecosystem("crates.io", "cargo", orders.SEMVER),
        Ecosystem("Maven", "maven", orders.MAVEN),
        Ecosystem("RubyGems", "gem", orders.GEM),
        Ecosystem("NuGet", "nuget", orders.NUGET),
        Ecosystem("Packagist", "composer", orders.COMPOSER),
        Ecosystem("Hex", "hex", orders.SEMVER),
        Ecosystem("Pub", "pub", orders.SEMVER),
        Ecosystem("SwiftURL", "swift", orders.SEMVER),
        Ecosystem("GitHub Actions", "githubactions", orders.SEMVER),
        Ecosystem("Bitnami", "bitnami", orders.SEMVER),
        Ecosystem("Julia", "julia", orders.SEMVER),
        Ecosystem("Hackage", "hackage", orders.NUMBERS),
        Ecosystem("CRAN", "cran", orders.NUMBERS),
        Ecosystem("Debian", "deb", orders.DEBIAN, "debian", has_releases=True),
        Ecosystem("Ubuntu", "deb", orders.DEBIAN, "ubuntu", has_releases=True),
        Ecosystem("Alpine", "apk", orders.ALPINE, "alpine", has_releases=True),
        Ecosystem("Wolfi", "apk", orders.ALPINE, "wolfi"),
        Ecosystem("Chainguard", "apk", orders.ALPINE, "chainguard"),
        Ecosystem("Rocky Linux", "rpm", orders.RPM, "rocky", has_releases=True),
        Ecosystem("AlmaLinux", "rpm", orders.RPM, "almalinux", has_releases=True),
        Ecosystem("Red Hat", "rpm", orders.RPM, "redhat", has_releases=True),
        Ecosystem("openSUSE", "rpm", orders.RPM, "opensuse", has_releases=True),
        Ecosystem("SUSE", "rpm", orders.RPM, "suse", has_releases=True),
        Ecosystem("Mageia", "rpm", orders.RPM, "mageia", has_releases=True),
    )
}
BY_PURL: Mapping[tuple[str, str], Ecosystem] = {(each.purl, each.namespace): each for each in ECOSYSTEMS.values()}
_SEPARATORS = {"maven": ":"}  # between the namespace and the name of a purl; others have a slash


class Package(Struct, frozen=True, kw_only=True):
    """A package, and its version if one is meant.

    `text` is as it was given. `name` is empty for a folder or an address, which names no package. `ecosystem` is its
    name in OSV, or empty if unknown; `release` is that of a distribution.
    """

    text: str
    name: str
    version: str = ""
    ecosystem: str = ""
    release: str = ""

    @property
    def order(self) -> Order | None:
        """The order of the versions of its ecosystem, `None` if it is unknown."""
        ecosystem = ECOSYSTEMS.get(self.ecosystem.lower())
        return ecosystem.order if ecosystem is not None else None

    @property
    def key(self) -> str:
        """What packages have in common that have the same name."""
        return name_key(self.name, self.ecosystem)


def parse_package(text: str) -> Package:
    """Read a purl, `name@version`, `name==version` (of Python), or a name. Raises `ValueError` for a wrong purl."""
    text = text.strip()
    if text.startswith(PURL):
        return _parse_purl(text)
    requirement = _REQUIREMENT.fullmatch(text)
    if requirement is not None:
        return Package(text=text, name=requirement[1], version=requirement[2], ecosystem="PyPI")
    if _UNNAMED.fullmatch(text):
        return Package(text=text, name="")
    name, at, version = text.rpartition("@")
    if not name or not at or "/" in version:
        return Package(text=text, name=text)
    return Package(text=text, name=name, version=version)


def check_form(package: Package) -> None:
    """Raise `ValueError` if what somebody gave as a package is a range of versions, or names none."""
    name = package.name.strip()
    if not name.strip("@") or package.text.endswith("@") or _RANGE.search(name) or _RANGE.match(package.version):
        raise ValueError("give NAME@VERSION, NAME==VERSION, or a purl such as pkg:pypi/requests@2.19.0, not a range.")


def _parse_purl(text: str) -> Package:
    plain = _PLAIN_PURL.fullmatch(text)
    if plain is not None:
        return Package(text=text, name=plain[2], version=plain[3] or "", ecosystem=BY_PURL[plain[1], ""].name)
    purl = PackageURL.from_string(text)
    qualifiers = dict(purl.qualifiers) if purl.qualifiers else {}
    namespace = purl.namespace or ""
    ecosystem = BY_PURL.get((purl.type, namespace.lower())) or BY_PURL.get((purl.type, ""))
    if ecosystem is not None and ecosystem.namespace:
        namespace = ""
    separator = _SEPARATORS.get(purl.type, "/")
    return Package(
        text=text,
        name=f"{namespace}{separator}{purl.name}" if namespace else purl.name,
        version=purl.version or "",
        ecosystem=ecosystem.name if ecosystem is not None else purl.type if purl.type != "generic" else "",
        release=_release(qualifiers.get("distro", "")) if ecosystem is not None and ecosystem.has_releases else "",
    )


def _release(distribution: str) -> str:
    """Return the release that the qualifier `distro` names: `debian-12`, `bookworm`, `12`, `alpine-3.18.4`."""
    last = distribution.rpartition("-")[2].lower()
    return _RELEASE_NAMES.get(last, last)


def purl_of(text: str) -> str:
    """Return the purl of a package as it was given; a name of an unknown ecosystem becomes a generic one."""
    if text.startswith(PURL):
        return text
    package = parse_package(text)
    kind = ECOSYSTEMS[package.ecosystem.lower()].purl if package.ecosystem else "generic"
    return PackageURL(type=kind, name=package.name, version=package.version or None).to_string()


def name_key(name: str, ecosystem: str) -> str:
    """Return a name as its ecosystem compares it. A Maven name may have a slash between its group and its own name."""
    folded = name.strip().lower()
    if ecosystem.lower() == "maven":
        return _maven_name(folded)
    return _PYTHON_SEPARATORS.sub("-", folded) if ecosystem.lower() == "pypi" else folded


def _maven_name(name: str) -> str:
    """Return `group/name`, as bills of material without purls give it, as `group:name`."""
    group, slash, own_name = name.rpartition("/")
    return f"{group}:{own_name}" if slash and ":" not in name else name


def lookup_names(package: Package) -> Iterator[str]:
    """Yield the names under which documents about a package may be listed."""
    if not package.name:
        return
    yield package.name
    ecosystems = [package.ecosystem] if package.ecosystem else [each.name for each in ECOSYSTEMS.values()]
    if package.ecosystem in ("PyPI", ""):
        parts = _PYTHON_SEPARATORS.split(package.name)
        if len(parts) > 1:
            yield from ("-".join(parts), "_".join(parts), ".".join(parts))
    if package.ecosystem in ("Maven", "") and "/" in package.name:
        yield _maven_name(package.name)
    for ecosystem in ecosystems:
        name = _maven_name(package.name) if ecosystem == "Maven" else package.name
        for release in _releases(ecosystem, package.release):
            yield f"{ecosystem}{release}/{name}"


def _releases(ecosystem: str, release: str) -> Iterator[str]:
    """Yield how OSV writes the release of a distribution after its name."""
    yield ""
    if not release:
        return
    yield f":{release}"
    if ecosystem == "Alpine":
        yield f":v{'.'.join(release.removeprefix('v').split('.')[:2])}"
    elif ecosystem == "Ubuntu":
        yield from (f":{release}:LTS", f":Pro:{release}:LTS")
    elif "." in release:
        yield f":{release.partition('.')[0]}"


def is_same_release(package: Package, release: str) -> bool:
    """Return whether the release after the name of an ecosystem is that of the package."""
    return f":{release}" in _releases(package.ecosystem, package.release)

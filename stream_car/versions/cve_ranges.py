"""Affected versions as CVE records give them: statuses of versions and ranges, and a default.

Promise: the algorithm of the CVE record format. The first entry of `versions` that holds a version gives its status,
changed by the last of its `changes` that is not later than the version; any other version has the default status.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import msgspec
from msgspec import Struct

from stream_car.versions import orders
from stream_car.versions.orders import Order, UnreadableVersion
from stream_car.versions.packages import Package, name_key, parse_package
from stream_car.versions.verdicts import AffectedStatus, Judge, Verdict, worst

EVERYTHING = "*"  # as the end of a range: no end
STATUSES: Mapping[str, AffectedStatus] = {"affected": "affected", "unaffected": "not_affected", "unknown": "unknown"}
TYPES: Mapping[str, Order] = {
    "semver": orders.SEMVER,
    "npm": orders.SEMVER,
    "python": orders.PYPI,
    "pypi": orders.PYPI,
    "maven": orders.MAVEN,
    "rpm": orders.RPM,
    "deb": orders.DEBIAN,
    "dpkg": orders.DEBIAN,
    "apk": orders.ALPINE,
    "gem": orders.GEM,
    "nuget": orders.NUGET,
    "go": orders.GO,
    "composer": orders.COMPOSER,
}
COLLECTIONS = {  # what the address of a collection contains, and the ecosystem that it is
    "registry.npmjs.org": "npm",
    "npmjs.com": "npm",
    "pypi.org": "PyPI",
    "pypi.python.org": "PyPI",
    "repo.maven.apache.org": "Maven",
    "repo1.maven.org": "Maven",
    "central.sonatype.com": "Maven",
    "rubygems.org": "RubyGems",
    "crates.io": "crates.io",
    "pkg.go.dev": "Go",
    "proxy.golang.org": "Go",
    "nuget.org": "NuGet",
    "packagist.org": "Packagist",
    "hex.pm": "Hex",
    "pub.dev": "Pub",
}
_HOST = re.compile(r"https?://([^/]+)", re.IGNORECASE)


class CveChange(Struct, gc=False):
    """From a version on, another status."""

    at: str
    status: str


class CveVersion(Struct, gc=False):
    """The status of a version, or of a range that begins with it."""

    version: str = ""
    status: str = ""
    versionType: str = ""
    lessThan: str | None = None
    lessThanOrEqual: str | None = None
    changes: list[CveChange] = []


class CveProduct(Struct, gc=False):
    """A product, and which of its versions are affected."""

    product: str = ""
    packageName: str = ""
    packageURL: str = ""
    collectionURL: str = ""
    defaultStatus: str = "unknown"
    versions: list[CveVersion] = []


def cve_judge(affected: object) -> Judge:
    """Return what gives verdicts by all fields `affected` of a record."""
    products: list[tuple[CveProduct, str]] = []
    for entry in affected if isinstance(affected, list) else ():
        try:
            product = msgspec.convert(entry, CveProduct)
        except msgspec.ValidationError:
            continue
        products.append((product, _ecosystem(product)))
    return partial(_judge_products, products)


def _judge_products(products: Sequence[tuple[CveProduct, str]], package: Package) -> Verdict | None:
    return worst(
        [
            _judge(product, ecosystem, package)
            for product, ecosystem in products
            if _is_about(product, ecosystem, package)
        ]
    )


def _ecosystem(product: CveProduct) -> str:
    if product.packageURL:
        try:
            return parse_package(product.packageURL).ecosystem
        except ValueError:
            return ""
    host = _HOST.match(product.collectionURL)
    parts = host[1].lower() if host is not None else ""
    return next((name for domain, name in COLLECTIONS.items() if parts == domain or parts.endswith(f".{domain}")), "")


def _is_about(product: CveProduct, ecosystem: str, package: Package) -> bool:
    if ecosystem and package.ecosystem and ecosystem != package.ecosystem:
        return False
    named = ecosystem or package.ecosystem
    names = [product.packageName, product.product]
    if product.packageURL and ecosystem:
        names.append(parse_package(product.packageURL).name)
    return any(name_key(name, named) == name_key(package.name, named) for name in names if name)


def _judge(product: CveProduct, ecosystem: str, package: Package) -> Verdict:
    verdict = judge_product(product, package.version, package.order)
    if package.ecosystem and not ecosystem and verdict.status == "affected":
        return Verdict(status="unknown", basis="ecosystem", range=verdict.range, fixed_in=verdict.fixed_in)
    return verdict


def judge_product(product: CveProduct, version: str, order: Order | None = None) -> Verdict:
    """Return the verdict on a version; `order` is that of the product's ecosystem, if it is known."""
    default = STATUSES.get(product.defaultStatus, "unknown")
    shown = " or ".join(show(each) for each in product.versions if each.status == "affected")
    fixes = tuple(_fixes(product.versions))
    if not product.versions:
        return Verdict(status=default, basis="every_version" if default == "affected" else "no_ranges")
    if not version:
        is_all = default == "affected" and all(each.status == "affected" for each in product.versions)
        if is_all:
            return Verdict(status="affected", basis="every_version", range="all versions")
        return Verdict(status="unknown", basis="no_version", range=shown, fixed_in=fixes)
    is_unreadable = False
    for each in product.versions:
        try:
            status = _status(each, version, _order(each, order))
        except UnreadableVersion:
            is_unreadable = True
            continue
        if status is None:
            continue
        is_range = each.lessThan is not None or each.lessThanOrEqual is not None
        if status == "affected":
            fixed = _later(fixes, version, _order(each, order))
            return Verdict(status=status, basis="range" if is_range else "stated", range=show(each), fixed_in=fixed)
        is_fixed = status == "not_affected" and _is_after_a_fix(fixes, version, _order(each, order))
        return Verdict(status=status, basis="stated", range=show(each), is_fixed=is_fixed)
    if is_unreadable:
        is_commits = all(each.versionType == "git" for each in product.versions)
        return Verdict(status="unknown", basis="commits" if is_commits else "unreadable", range=shown, fixed_in=fixes)
    is_fixed = default == "not_affected" and any(
        _is_after_a_fix(tuple(_fixes([each])), version, _order(each, order)) for each in product.versions
    )
    fixed = fixes if default == "affected" else ()
    return Verdict(status=default, basis="default", range=shown, fixed_in=fixed, is_fixed=is_fixed)


def _is_after_a_fix(fixes: Sequence[str], version: str, order: Order | None) -> bool:
    """Return whether a version is a fix or comes after one."""
    return any(order is not None and order.is_at_or_after(version, fix) for fix in fixes)


def _order(entry: CveVersion, order: Order | None) -> Order | None:
    kind = entry.versionType.lower()
    if kind == "git":
        return None
    return TYPES.get(kind) or order or orders.NUMBERS


def _status(entry: CveVersion, version: str, order: Order | None) -> AffectedStatus | None:
    """Return the status that an entry gives a version; `None` if it does not hold it. Raises `UnreadableVersion`."""
    status = STATUSES.get(entry.status, "unknown")
    if entry.lessThan is None and entry.lessThanOrEqual is None:
        is_it = version == entry.version or (order is not None and order.is_equal(version, entry.version))
        return status if is_it else None
    if order is None:
        raise UnreadableVersion(version)
    if entry.version not in ("0", EVERYTHING, "", "unspecified") and order.is_less(version, entry.version):
        return None
    if entry.lessThan not in (None, EVERYTHING) and not order.is_less(version, str(entry.lessThan)):
        return None
    last = entry.lessThanOrEqual
    if entry.lessThan is None and last is not None and last != EVERYTHING and order.is_less(last, version):
        return None
    for change in entry.changes:
        if not order.is_less(version, change.at):
            status = STATUSES.get(change.status, "unknown")
    return status


def _fixes(versions: Sequence[CveVersion]) -> Iterator[str]:
    """Yield the versions at which a product stops being affected."""
    for entry in versions:
        if entry.status == "affected":
            changes = [change.at for change in entry.changes if change.status == "unaffected"]
            if changes:
                yield from changes
            elif entry.lessThan not in (None, EVERYTHING):
                yield str(entry.lessThan)


def _later(fixes: Sequence[str], version: str, order: Order | None) -> tuple[str, ...]:
    later = []
    for fix in fixes:
        try:
            if order is not None and order.is_less(version, fix):
                later.append(fix)
        except UnreadableVersion:
            continue
    return tuple(order.sorted(later)) if order is not None else ()


def show(entry: CveVersion) -> str:
    """Return a range for people: `>= 1.0, < 1.2.5`."""
    end = f"< {entry.lessThan}" if entry.lessThan is not None else f"<= {entry.lessThanOrEqual}"
    if entry.lessThan is None and entry.lessThanOrEqual is None:
        return f"version {entry.version}"
    start = "" if entry.version in ("0", EVERYTHING, "", "unspecified") else f">= {entry.version}"
    end = "" if end.endswith(EVERYTHING) else end
    return ", ".join(part for part in (start, end) if part) or "all versions"

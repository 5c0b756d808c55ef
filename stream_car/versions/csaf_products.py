"""Affected versions as CSAF advisories give them: products with a status, by version or by a range of versions.

Promise: each vulnerability is judged by itself, and the worst verdict decides. A product that is called fixed or not
affected is not affected by that vulnerability. A version that is in no status is unknown, unless all affected products
are ranges that can be read.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stream_car.versions import orders
from stream_car.versions.orders import Order, UnreadableVersion
from stream_car.versions.packages import ECOSYSTEMS, Package, name_key, parse_package
from stream_car.versions.verdicts import NO_RANGES, AffectedStatus, Judge, Verdict, worst

STATUSES: Mapping[str, AffectedStatus] = {
    "known_not_affected": "not_affected",
    "fixed": "not_affected",
    "first_fixed": "not_affected",
    "recommended": "not_affected",
    "known_affected": "affected",
    "first_affected": "affected",
    "last_affected": "affected",
    "under_investigation": "unknown",
}
FIXED = ("fixed", "first_fixed", "recommended")
FIXES_MAX = 50  # of an advisory, the nearest, that are compared with all of its vulnerabilities
_VERS = re.compile(r"vers:([a-z0-9.+-]+)/(.*)", re.DOTALL)
_COMPARATOR = re.compile(r"(<=|>=|<|>|!=|=)?\s*[vV]?([0-9][^\s,|<>=]*)")
_SPACE_AFTER_SIGN = re.compile(r"(?<=[<>=])\s+")
_WORDS = re.compile(r"[vV]?([0-9]\S*) (?:and|or) (?:prior|earlier|below|older)(?: versions?)?", re.IGNORECASE)
_ALL = ("*", "all", "all versions", "all/*", "any")


class CsafProduct(Struct, frozen=True, gc=False):
    """A product of an advisory with its status for one vulnerability.

    `version` is an exact one, `range` a range in words or as vers; `justification` is the label of a flag.
    """

    product: str
    status: str
    vulnerability: tuple[str, ...] = ()
    version: str = ""
    range: str = ""
    purl: str = ""
    justification: str = ""


def csaf_judge(products: object) -> Judge:
    """Return what gives verdicts by the products of an advisory."""
    try:
        return partial(_judge, msgspec.convert(products, list[CsafProduct]))
    except msgspec.ValidationError:
        return lambda _: NO_RANGES


def _judge(listed: Sequence[CsafProduct], package: Package) -> Verdict | None:
    by_vulnerability: dict[tuple[str, ...], list[CsafProduct]] = {}
    for product in listed:
        if _is_about(product, package):
            by_vulnerability.setdefault(product.vulnerability, []).append(product)
    verdicts = [(_judge_vulnerability(own, package), own) for own in by_vulnerability.values()]
    decisive = worst([verdict for verdict, _ in verdicts])
    if decisive is None or decisive.status == "unknown":
        return decisive
    if decisive.status == "not_affected":
        return replace(decisive, is_fixed=any(verdict.is_fixed for verdict, _ in verdicts))
    open_ones = [own for verdict, own in verdicts if verdict.status == "affected"]
    return replace(decisive, fixed_in=_fixes_of_all(open_ones, package))


def _fixes_of_all(vulnerabilities: Sequence[Sequence[CsafProduct]], package: Package) -> tuple[str, ...]:
    """Return the later versions that are affected by none of these vulnerabilities, the nearest first."""
    order = package.order or orders.NUMBERS
    named = [{product.version for product in own if product.status in FIXED} for own in vulnerabilities]
    later = [fix for fix in set().union(*named) if fix and not order.is_at_or_after(package.version, fix)]
    fixes: list[str] = []
    for fix in _sorted(later, order)[:FIXES_MAX]:
        at_fix = replace(package, version=fix)
        if all(
            fix in own or _judge_vulnerability(products, at_fix).status == "not_affected"
            for own, products in zip(named, vulnerabilities, strict=True)
        ):
            fixes.append(fix)
    return tuple(fixes)


def _sorted(versions: Sequence[str], order: Order) -> list[str]:
    """Return versions in their order, or as text if one cannot be read."""
    try:
        return order.sorted(versions)
    except UnreadableVersion:
        return sorted(versions)


def _judge_vulnerability(own: Sequence[CsafProduct], package: Package) -> Verdict:
    affected = [product for product in own if STATUSES.get(product.status) == "affected"]
    shown = " or ".join(dict.fromkeys(product.range or f"version {product.version or '?'}" for product in affected))
    fixed = tuple(dict.fromkeys(product.version for product in own if product.status in FIXED and product.version))
    if not package.version:
        return Verdict(status="unknown", basis="no_version", range=shown, fixed_in=fixed)
    order = package.order or orders.NUMBERS
    holding = {product: _holds(product, package.version, order) for product in own}
    statuses: tuple[AffectedStatus, ...] = ("not_affected", "affected", "unknown")
    for status in statuses:
        for product in own:
            if STATUSES.get(product.status, "unknown") == status and holding[product]:
                return _verdict(status, product, fixed if status == "affected" else ())
    if any(holds is None for holds in holding.values()):
        return Verdict(status="unknown", basis="unreadable", range=shown, fixed_in=fixed)
    if affected and all(product.range for product in affected):
        is_fixed = any(order.is_at_or_after(package.version, fix) for fix in fixed)
        return Verdict(status="not_affected", basis="outside", range=shown, is_fixed=is_fixed)
    return Verdict(status="unknown", basis="no_ranges", range=shown, fixed_in=fixed)


def _is_about(product: CsafProduct, package: Package) -> bool:
    if product.purl:
        try:
            named = parse_package(product.purl)
        except ValueError:
            return False
        return named.key == package.key and package.ecosystem in ("", named.ecosystem)
    return name_key(product.product, package.ecosystem) == package.key


def _verdict(status: AffectedStatus, product: CsafProduct, fixed: tuple[str, ...]) -> Verdict:
    shown = product.range or f"version {product.version}"
    if status == "unknown":
        return Verdict(status=status, basis="investigation", range=shown)
    return Verdict(
        status=status,
        basis="range" if product.range and status == "affected" else "stated",
        range=shown,
        fixed_in=fixed,
        justification=product.justification,
        is_fixed=product.status in FIXED,
    )


def _holds(product: CsafProduct, version: str, order: Order) -> bool | None:
    """Return whether a product is of this version; `None` if that cannot be read."""
    if product.version:
        return order.is_equal(_plain(version), _plain(product.version))
    return is_within(product.range, version, order)


def _plain(version: str) -> str:
    return version.strip().removeprefix("V").removeprefix("v")


def is_within(text: str, version: str, order: Order) -> bool | None:
    """Return whether a version is in a range: vers, comparators such as `>=1.0, <1.2`, or `1.2 and prior`.

    A version must meet all comparators, but those between bars are read as vers. `None` if the range or a version
    cannot be read, or no version can meet all comparators.
    """
    text = text.strip()
    vers = _VERS.fullmatch(text)
    if vers is not None:
        known = next((each for each in ECOSYSTEMS.values() if each.purl == vers[1]), None)
        order = known.order if known is not None and known.order is not None else order
        text = vers[2]
    if text.lower() in _ALL:
        return True
    words = _WORDS.fullmatch(text)
    text = f"<={words[1]}" if words is not None else text
    constraints = [part for part in re.split(r"[|,\s]+", _SPACE_AFTER_SIGN.sub("", text)) if part]
    matches = [_COMPARATOR.fullmatch(part) for part in constraints]
    if not constraints or any(match is None for match in matches):
        return None
    try:
        pairs = [(match[1] or "=", match[2]) for match in matches if match is not None]
        return _contains(pairs, version, order, is_vers=vers is not None or "|" in text)
    except UnreadableVersion:
        return None


def _contains(constraints: list[tuple[str, str]], version: str, order: Order, *, is_vers: bool) -> bool | None:
    """Return whether a version meets constraints: all bounds, or sorted ones as vers defines it."""
    version = _plain(version)
    order.key(version)
    bounds: list[tuple[str, str]] = []
    for sign, other in constraints:
        if sign in ("=", "!=") and order.is_equal(version, other):
            return sign == "="
        if sign not in ("=", "!="):
            bounds.append((sign, other))
    if not bounds:
        return all(sign == "!=" for sign, _ in constraints)
    return _is_in_intervals(bounds, version, order) if is_vers else _meets_all(bounds, version, order)


def _meets_all(bounds: list[tuple[str, str]], version: str, order: Order) -> bool | None:
    """Return whether a version meets all bounds; `None` if no version can."""
    lowest = order.sorted(other for sign, other in bounds if sign in (">", ">="))[-1:]
    highest = order.sorted(other for sign, other in bounds if sign in ("<", "<="))[:1]
    is_crossed = bool(lowest and highest) and not order.is_less(lowest[0], highest[0])
    if is_crossed and not all(_meets(bound, lowest[0], order) for bound in bounds):
        return None
    return all(_meets(bound, version, order) for bound in bounds)


def _meets(bound: tuple[str, str], version: str, order: Order) -> bool:
    sign, other = bound
    return _is_above(bound, version, order) if sign in (">", ">=") else _is_below(sign, other, version, order)


def _is_in_intervals(bounds: list[tuple[str, str]], version: str, order: Order) -> bool:
    """Return whether a version is in one of the intervals that pairs of sorted bounds are."""
    lower: tuple[str, str] | None = None
    for sign, other in bounds:
        if sign in (">", ">="):
            lower = sign, other
            continue
        if _is_above(lower, version, order) and _is_below(sign, other, version, order):
            return True
        lower = None
    return lower is not None and _is_above(lower, version, order)


def _is_above(lower: tuple[str, str] | None, version: str, order: Order) -> bool:
    if lower is None:
        return True
    sign, other = lower
    return order.is_less(other, version) or (sign == ">=" and order.is_equal(version, other))


def _is_below(sign: str, other: str, version: str, order: Order) -> bool:
    return order.is_less(version, other) or (sign == "<=" and order.is_equal(version, other))

"""Affected versions as OSV records give them: ranges of events, and enumerated versions.

Promise: the evaluation of the OSV schema. A version is affected if it is enumerated, or in one of the ranges. Where
the schema cannot decide (commits, unreadable versions, an unknown order), the verdict is `unknown`.
Cost: the events of a range are sorted once, and a version or a fix is found among them by bisection; an enumerated list
is searched as text first.
"""

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from functools import cmp_to_key, partial

import msgspec
from msgspec import Struct

from stream_car.versions import orders
from stream_car.versions.orders import Order, UnreadableVersion
from stream_car.versions.packages import ECOSYSTEMS, Package, is_same_release, name_key
from stream_car.versions.verdicts import NO_RANGES, Basis, Judge, Verdict, worst

START = "0"  # as the version of an `introduced` event: before every version
LIMIT = "limit"  # the kind of an event after which no version is affected
BOUND_RANKS = {"fixed": 0, "introduced": 1, "last_affected": 3}  # how they are sorted at the same version
FIX = 2  # a version itself comes after what begins there, and before what includes it
RANGES_SHOWN = 3


class Range(Struct, gc=False):
    """Affected versions. An event may be `introduced`, `fixed`, `last_affected` or `limit`."""

    type: str = ""
    repo: str | None = None
    events: list[dict[str, str]] | None = None


class PackageName(Struct, gc=False):
    """What identifies a package."""

    name: str
    ecosystem: str = ""


class AffectedPackage(Struct, gc=False):
    """A package, and which of its versions are affected."""

    package: PackageName | None = None
    ranges: list[Range] | None = None
    versions: list[str] | None = None


def osv_judge(affected: object) -> Judge:
    """Return what gives verdicts by the field `affected` of a record."""
    try:
        return partial(_judge_entries, msgspec.convert(affected, list[AffectedPackage]))
    except msgspec.ValidationError:
        return lambda _: NO_RANGES


def _judge_entries(entries: Sequence[AffectedPackage], package: Package) -> Verdict | None:
    by_ecosystem: dict[str, AffectedPackage] = {}
    for entry in entries:
        if entry.package is not None and _is_about(entry.package, package):
            own = by_ecosystem.setdefault(entry.package.ecosystem, AffectedPackage(entry.package, [], []))
            own.ranges = [*(own.ranges or ()), *(entry.ranges or ())]
            own.versions = [*(own.versions or ()), *(entry.versions or ())]
    return worst([_judge(entry, ecosystem, package) for ecosystem, entry in by_ecosystem.items()])


def _is_about(named: PackageName, package: Package) -> bool:
    ecosystem, _, release = named.ecosystem.partition(":")
    if package.ecosystem and ecosystem and ecosystem.lower() != package.ecosystem.lower():
        return False
    if release and package.release and not is_same_release(package, release):
        return False
    ecosystem = ecosystem or package.ecosystem
    return name_key(named.name, ecosystem) == name_key(package.name, ecosystem)


def _judge(entry: AffectedPackage, named_ecosystem: str, package: Package) -> Verdict:
    ecosystem, _, release = named_ecosystem.partition(":")
    known = ECOSYSTEMS.get(ecosystem.lower())
    order = known.order if known is not None else package.order
    verdict = judge_entry(entry, package.version, order)
    if release and package.ecosystem and not package.release and verdict.status == "affected":
        return Verdict(status="unknown", basis="release", range=verdict.range, fixed_in=verdict.fixed_in)
    return verdict


def judge_entry(entry: AffectedPackage, version: str, order: Order | None) -> Verdict:
    """Return the verdict on a version by one entry; `order` is that of its ecosystem."""
    ranges = [each for each in entry.ranges or () if each.type != "GIT" and each.events]
    listed = entry.versions or []
    if not ranges and not listed:
        return Verdict(status="unknown", basis="commits" if entry.ranges else "no_ranges")
    shown = _shown(ranges, listed)
    if not version:
        return _without_version(ranges, listed, order)
    unread = False
    for each in ranges:
        own_order = orders.SEMVER if each.type == "SEMVER" and order is None else order
        try:
            span = find_span(each, own_order, version)
        except UnreadableVersion:
            unread = True
            continue
        if span is not None:
            return _affected(entry, version, own_order, basis="range", range=span)
    if version in listed or (order is not None and any(order.is_equal(version, each) for each in listed)):
        return _affected(entry, version, order, basis="enumerated", range=f"version {version} is listed")
    if unread:
        basis: Basis = "unreadable" if order is not None else "no_order"
        return Verdict(status="unknown", basis=basis, range=shown, fixed_in=_fixes(entry))
    is_fixed = order is not None and any(order.is_at_or_after(version, fix) for fix in _fixes(entry))
    return Verdict(status="not_affected", basis="outside", range=shown, is_fixed=is_fixed)


def _without_version(ranges: Sequence[Range], listed: Sequence[str], order: Order | None) -> Verdict:
    """Return what a record says of a package without a version: that it depends on it, unless all are affected."""
    spans: list[Span] = []
    for each in ranges:
        with suppress(UnreadableVersion):
            spans += spans_of(each, order)
    if any(first == START and end == "" for first, _, end in spans):
        return Verdict(status="affected", basis="every_version", range="all versions")
    entry = AffectedPackage(ranges=list(ranges))
    return Verdict(status="unknown", basis="no_version", range=_shown(ranges, listed), fixed_in=_fixes(entry))


def _affected(entry: AffectedPackage, version: str, order: Order | None, *, basis: Basis, range: str) -> Verdict:
    """Return the verdict with the fixed versions that are later, and not affected themselves, nearest first."""
    if order is None:
        return Verdict(status="affected", basis=basis, range=range)
    listed = frozenset(entry.versions or ())
    later = [
        fix
        for fix in _fixes(entry)
        if fix not in listed and order.is_at_or_after(fix, version) and not order.is_equal(fix, version)
    ]
    return Verdict(status="affected", basis=basis, range=range, fixed_in=tuple(_outside(later, entry, order)))


def _outside(fixes: Sequence[str], entry: AffectedPackage, order: Order) -> list[str]:
    """Return versions that are in no range of an entry, in their order. All ranges are read in one pass.

    None is known to be outside if a range cannot be read.
    """
    points: list[tuple[str, int, int]] = [(fix, FIX, 0) for fix in fixes]  # a version, and how many spans begin there
    depth = 0
    try:
        for each in entry.ranges or ():
            for first, how, end in spans_of(each, order) if each.type != "GIT" else ():
                if first == START:
                    depth += 1
                else:
                    points.append((first, BOUND_RANKS["introduced"], 1))
                if how:
                    points.append((end, BOUND_RANKS["fixed" if how == "<" else "last_affected"], -1))
        points.sort(key=cmp_to_key(partial(_compare_points, order)))
    except UnreadableVersion:
        return []
    outside: list[str] = []
    for version, rank, change in points:
        depth += change
        if rank == FIX and not depth:
            outside.append(version)
    return outside


def _compare_points(order: Order, point: tuple[str, int, int], other: tuple[str, int, int]) -> int:
    return order.compare(point[0], other[0]) or point[1] - other[1]


def _fixes(entry: AffectedPackage) -> tuple[str, ...]:
    """Return the fixed versions of an entry, in its order."""
    events = (event for each in entry.ranges or () if each.type != "GIT" for event in each.events or ())
    return tuple(dict.fromkeys(event["fixed"] for event in events if event.get("fixed")))


Span = tuple[str, str, str]  # the first affected version, how the span ends (`<`, `<=` or nothing), and where


def spans_of(version_range: Range, order: Order | None) -> list[Span]:
    """Return the affected spans of a range. Its events need not be sorted. Raises `UnreadableVersion`."""
    events = version_range.events or ()
    bounds = [(version, kind) for event in events for kind, version in event.items() if kind in BOUND_RANKS]
    limits = [event["limit"] for event in events if event.get("limit")]
    if limits and "*" not in limits:
        bounds.append((limits[-1] if order is None else order.sorted(limits)[-1], LIMIT))
    is_sorted = len(bounds) < 2 or (len(bounds) == 2 and bounds[0] == (START, "introduced"))
    if order is not None and not is_sorted:
        bounds.sort(key=cmp_to_key(partial(_compare, order)))
    spans: list[Span] = []
    first: str | None = None
    for version, kind in bounds:
        if kind == "introduced":
            first = version if first is None else first
            continue
        if first is not None:
            spans.append((first, "<=" if kind == "last_affected" else "<", version))
            first = None
        if kind == LIMIT:
            break
    if first is not None:
        spans.append((first, "", ""))
    return spans


def _compare(order: Order, bound: tuple[str, str], other: tuple[str, str]) -> int:
    """Compare bounds by version. At the same version a span ends before the next one starts, unless it includes it."""
    for a, b, sign in ((bound, other, -1), (other, bound, 1)):
        if a == (START, "introduced"):
            return sign if b != a else 0
    return order.compare(bound[0], other[0]) or BOUND_RANKS.get(bound[1], 0) - BOUND_RANKS.get(other[1], 0)


def find_span(version_range: Range, order: Order | None, version: str) -> str | None:
    """Return the span of a range that contains a version, as text; `None` if none does.

    Raises `UnreadableVersion` if the version or a bound cannot be read, or the order is not known.
    """
    if order is None:
        raise UnreadableVersion(version)
    order.key(version)
    spans = spans_of(version_range, order)
    later = bisect_left(spans, x=True, key=lambda span: span[0] != START and order.is_less(version, span[0]))
    if later == 0:
        return None
    span = spans[later - 1]  # spans are sorted and do not overlap, so no other can contain the version
    _, how, end = span
    ends = not how or order.is_less(version, end) or (how == "<=" and order.is_equal(version, end))
    return show_span(span) if ends else None


def show_span(span: Span) -> str:
    """Return a span for people: `>= 1.0, < 1.2.5`."""
    first, how, end = span
    parts = [f">= {first}"] if first != START else []
    if how:
        parts.append(f"{how} {end}")
    return ", ".join(parts) or "all versions"


def _shown(ranges: Sequence[Range], listed: Sequence[str]) -> str:
    """Return the affected ranges for people, or how many versions are listed. Their events are not sorted."""
    spans = list(dict.fromkeys(show_span(span) for each in ranges for span in spans_of(each, None)))
    more = f" and {len(spans) - RANGES_SHOWN} more" if len(spans) > RANGES_SHOWN else ""
    if spans:
        return " or ".join(spans[:RANGES_SHOWN]) + more
    return f"{len(listed)} listed versions" if len(listed) != 1 else f"version {listed[0]}"

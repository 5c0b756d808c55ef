"""Whether a version is affected by what an OSV record says of its package."""

import random
from collections.abc import Mapping, Sequence

import pytest

from stream_car.versions.orders import Order
from stream_car.versions.osv_ranges import osv_judge
from stream_car.versions.packages import parse_package
from stream_car.versions.verdicts import Verdict

Entry = Mapping[str, object]


def entry(
    *events: str, versions: Sequence[str] = (), ecosystem: str = "PyPI", name: str = "jinja2", kind: str = "ECOSYSTEM"
) -> Entry:
    """An entry of `affected`; events are written as `introduced 1.0`."""
    pairs = [dict([event.split()]) for event in events]
    ranges = [{"type": kind, "events": pairs}] if pairs else []
    return {"package": {"ecosystem": ecosystem, "name": name}, "ranges": ranges, "versions": list(versions)}


def verdict(package: str, *entries: Entry) -> Verdict:
    judged = osv_judge(list(entries))(parse_package(package))
    assert judged is not None
    return judged


@pytest.mark.parametrize(
    ("version", "events", "status", "decides"),
    [
        ("0.1", ("introduced 0", "fixed 2.0"), "affected", "< 2.0"),
        ("2.0rc1", ("introduced 0", "fixed 2.0"), "affected", "< 2.0"),
        ("2.0", ("introduced 0", "fixed 2.0"), "not_affected", "< 2.0"),
        ("1.0", ("introduced 1.0", "fixed 2.0"), "affected", ">= 1.0, < 2.0"),
        ("0.9", ("introduced 1.0", "fixed 2.0"), "not_affected", ">= 1.0, < 2.0"),
        ("2.0", ("introduced 1.0", "last_affected 2.0"), "affected", ">= 1.0, <= 2.0"),
        ("2.0.1", ("introduced 1.0", "last_affected 2.0"), "not_affected", ">= 1.0, <= 2.0"),
        ("9", ("introduced 1.0",), "affected", ">= 1.0"),
        ("9", ("introduced 0",), "affected", "all versions"),
        ("3.1", ("introduced 1.0", "fixed 2.0", "introduced 3.0", "fixed 3.2"), "affected", ">= 3.0, < 3.2"),
        ("2.5", ("introduced 1.0", "fixed 2.0", "introduced 3.0"), "not_affected", ">= 1.0, < 2.0 or >= 3.0"),
        ("3.1", ("fixed 3.2", "introduced 3.0", "fixed 2.0", "introduced 1.0"), "affected", ">= 3.0, < 3.2"),
        ("1.10", ("introduced 1.9", "fixed 1.11"), "affected", ">= 1.9, < 1.11"),
        ("2.5", ("introduced 0", "limit 2.0"), "not_affected", "< 2.0"),
        ("1.5", ("introduced 0", "limit 2.0"), "affected", "< 2.0"),
        ("2.5", ("introduced 0", "limit 2.0", "limit 3.0"), "affected", "< 3.0"),
        ("9", ("introduced 0", "limit 2.0", "limit *"), "affected", "all versions"),
        (
            "2.5",
            ("introduced 1.0", "fixed 2.0", "introduced 2.2", "limit 2.4"),
            "not_affected",
            ">= 1.0, < 2.0 or >= 2.2, < 2.4",
        ),
    ],
)
def test_the_range_that_holds_a_version_decides(
    version: str, events: tuple[str, ...], status: str, decides: str
) -> None:
    judged = verdict(f"pkg:pypi/jinja2@{version}", entry(*events))

    assert (judged.status, judged.range) == (status, decides)


def test_an_enumerated_version_is_affected_though_no_range_holds_it() -> None:
    affected = entry("introduced 0", "fixed 1.0", versions=["1.5", "2004d-x"])

    assert verdict("jinja2@1.5.0", affected).basis == "enumerated"  # by the order of the entry's ecosystem
    assert verdict("pkg:pypi/jinja2@1.5", affected).basis == "enumerated"
    assert verdict("pkg:pypi/jinja2@2004d-x", affected).status == "affected"
    assert verdict("pkg:pypi/jinja2@1.6", affected).status == "not_affected"


def test_the_nearest_fix_comes_first_and_one_that_is_affected_itself_is_none() -> None:
    affected = [
        entry("introduced 3.0", "fixed 3.2"),
        entry("introduced 1.0", "fixed 2.10"),
        entry("introduced 0", "fixed 1.0"),
    ]

    assert verdict("pkg:pypi/jinja2@0.5", *affected).fixed_in == ("2.10", "3.2")


def test_a_range_of_many_spans_is_judged_by_few_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    spans = 200
    events = [event for nth in range(spans) for event in (f"introduced {nth}.1", f"fixed {nth}.5")]
    random.Random(1).shuffle(events)
    compared = []
    is_less = Order.is_less

    def count(order: Order, version: str, other: str) -> bool:
        compared.append(version)
        return is_less(order, version, other)

    monkeypatch.setattr(Order, "is_less", count)
    judged = verdict("pkg:pypi/jinja2@3.2", entry(*events))

    assert (judged.range, len(judged.fixed_in), judged.fixed_in[0]) == (">= 3.1, < 3.5", spans - 3, "3.5")
    assert len(compared) < spans * 200


@pytest.mark.parametrize("last", [{"fixed": "{}.9"}, {"limit": "{}.9"}, {"fixed": "{}.9", "limit": "{}.95"}])
def test_many_ranges_are_judged_by_few_comparisons(monkeypatch: pytest.MonkeyPatch, last: Mapping[str, str]) -> None:
    count = 200
    ranges = [
        {
            "type": "ECOSYSTEM",
            "events": [{"introduced": f"{nth}.1"}, *({kind: text.format(nth)} for kind, text in last.items())],
        }
        for nth in range(count)
    ]
    limits = {"type": "ECOSYSTEM", "events": [{"introduced": "0.5"}, *({"limit": f"0.{n}"} for n in range(count))]}
    compared = []
    is_less = Order.is_less

    def count_it(order: Order, version: str, other: str) -> bool:
        compared.append(version)
        return is_less(order, version, other)

    monkeypatch.setattr(Order, "is_less", count_it)
    judged = verdict("pkg:pypi/jinja2@3.2", {**entry(), "ranges": [limits, *ranges]})

    assert judged.status == "affected"
    assert len(judged.fixed_in) == (count - 3 if "fixed" in last else 0)
    assert len(compared) < count * 100


@pytest.mark.parametrize(
    ("package", "affected", "basis"),
    [
        ("pkg:pypi/jinja2@2004d-x", entry("introduced 0", "fixed 1.0"), "unreadable"),
        ("pkg:pypi/jinja2@1.0", entry("introduced abc"), "unreadable"),
        ("pkg:pypi/jinja2", entry("introduced 0", "fixed 1.0"), "no_version"),
        ("pkg:pypi/jinja2", entry("introduced 1.0", "fixed abc"), "no_version"),
        ("pkg:pypi/jinja2@1.0", entry("introduced 0", kind="GIT"), "commits"),
        ("pkg:pypi/jinja2@1.0", entry(), "no_ranges"),
        ("x@1.0", entry("introduced 0", "fixed 2", ecosystem="Nobody's", name="x"), "no_order"),
        ("pkg:deb/debian/curl@7", entry("introduced 0", "fixed 8", ecosystem="Debian:12", name="curl"), "release"),
    ],
)
def test_what_cannot_be_judged_is_unknown(package: str, affected: Entry, basis: str) -> None:
    judged = verdict(package, affected)

    assert (judged.status, judged.basis) == ("unknown", basis)


def test_a_package_of_which_every_version_is_affected_needs_no_version() -> None:
    assert verdict("pkg:pypi/jinja2", entry("introduced 0")).basis == "every_version"


def test_commits_count_for_nothing_beside_a_range() -> None:
    both = {**entry("introduced 0", "fixed 1.0")}
    both["ranges"] = [{"type": "GIT", "events": [{"introduced": "0"}]}, *_list(both["ranges"])]

    assert verdict("pkg:pypi/jinja2@2.0", both).status == "not_affected"


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


@pytest.mark.parametrize(
    ("package", "named"),
    [
        ("pkg:pypi/Jinja_2@1", ("PyPI", "jinja-2")),
        ("pkg:npm/%40angular/core@1.0.0", ("npm", "@angular/core")),
        ("pkg:golang/github.com/Gin-Gonic/gin@v1.0.0", ("Go", "github.com/gin-gonic/gin")),
        ("pkg:maven/org.x/y@1", ("Maven", "org.x:y")),
        ("pkg:deb/debian/curl@1?distro=bookworm", ("Debian:12", "curl")),
        ("pkg:deb/ubuntu/curl@1?distro=ubuntu-22.04", ("Ubuntu:22.04:LTS", "curl")),
        ("pkg:apk/alpine/curl@1?distro=alpine-3.18.4", ("Alpine:v3.18", "curl")),
        ("jinja2@1", ("PyPI", "jinja2")),
        ("Jinja2==1", ("PyPI", "jinja2")),
    ],
)
def test_a_package_is_the_same_by_all_its_names(package: str, named: tuple[str, str]) -> None:
    ecosystem, name = named

    assert verdict(package, entry("introduced 0", ecosystem=ecosystem, name=name)).status == "affected"


@pytest.mark.parametrize(
    ("package", "named"),
    [
        ("pkg:npm/jinja2@1.0.0", ("PyPI", "jinja2")),
        ("pkg:deb/debian/curl@1?distro=bookworm", ("Debian:11", "curl")),
        ("pkg:pypi/jinja@1", ("PyPI", "jinja2")),
    ],
)
def test_another_package_is_not_meant(package: str, named: tuple[str, str]) -> None:
    ecosystem, name = named

    assert osv_judge([entry("introduced 0", ecosystem=ecosystem, name=name)])(parse_package(package)) is None

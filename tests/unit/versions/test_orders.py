"""The order of versions in each ecosystem, as its own documentation lists it."""

from itertools import combinations

import pytest

from stream_car.versions import orders
from stream_car.versions.orders import Order, UnreadableVersion

ASCENDING: list[tuple[Order, str]] = [
    # semver.org, precedence: item 11
    (
        orders.SEMVER,
        "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0",
    ),
    (orders.SEMVER, "1.0.0 2.0.0 2.1.0 2.1.1"),
    # npm and Cargo follow semver; their documents name these
    (orders.SEMVER, "0.0.1-0 0.0.1 1.2.3-alpha.3 1.2.3-alpha.7 1.2.3 3.4.5-alpha.9 3.4.5"),
    (orders.SEMVER, "0.0.9 0.1.0-rc.1 0.1.0 0.1.9 0.1.10 1.0.0"),
    # PEP 440, summary of permitted suffixes and relative ordering
    (
        orders.PYPI,
        "1.dev0 1.0.dev456 1.0a1 1.0a2.dev456 1.0a12.dev456 1.0a12 1.0b1.dev456 1.0b2 1.0b2.post345.dev456 "
        "1.0b2.post345 1.0rc1.dev456 1.0rc1 1.0 1.0+abc.5 1.0+abc.7 1.0+5 1.0.post456.dev34 1.0.post456 1.0.15 "
        "1.1.dev1",
    ),
    (orders.PYPI, "0.9 0.9.1 0.9.2 0.9.10 0.9.11 1.0 1.0.1 1.1 2.0 2.0.1"),
    (orders.PYPI, "2013.10 2014.04 1!1.0 1!1.1 1!2.0"),
    # the Go modules reference, pseudo-versions: vX.0.0-time, vX.Y.Z-pre.0.time, vX.Y.(Z+1)-0.time
    (
        orders.GO,
        "v0.0.0-20170915032832-14c0d48ead0c v0.0.0-20191109021931-daa7c04131f5 v1.2.3-pre "
        "v1.2.3-pre.0.20191109021931-daa7c04131f5 v1.2.3 v1.2.4-0.20191109021931-daa7c04131f5 v1.2.4 "
        "v2.0.0+incompatible",
    ),
    (orders.GO, "go1.20.9 go1.21rc2 go1.21rc10 go1.21.0 go1.21.1"),
    # Maven's POM reference, version order specification
    (orders.MAVEN, "1 1.1"),
    (orders.MAVEN, "1-snapshot 1 1-sp"),
    (orders.MAVEN, "1-foo2 1-foo10"),
    (orders.MAVEN, "1.foo 1-1 1.1"),
    (orders.MAVEN, "1-foo 1-1 1.1"),
    (orders.MAVEN, "1-ga 1-sp"),
    (orders.MAVEN, "1-ga.1 1-sp.1"),
    (orders.MAVEN, "1-sp-1 1-ga-1"),
    (orders.MAVEN, "1.K 1.7"),
    (orders.MAVEN, "5.aardvark 5.zebra"),
    (orders.MAVEN, "1.b 1.α"),
    (orders.MAVEN, "1-alpha-1 1-beta-1 1-milestone-1 1-rc-1 1-snapshot 1 1-sp 1.1"),
    # Debian's policy manual, 5.6.12: `~~`, `~~a`, `~`, the empty part, `a`; and letters before other characters
    (orders.DEBIAN, "1.0~~ 1.0~~a 1.0~ 1.0 1.0a 1.0+"),
    (orders.DEBIAN, "1.0~beta1~svn1245 1.0~beta1 1.0"),
    (orders.DEBIAN, "1.0-1 1.0-1+deb12u1 1.0-1.1 1.0-2 1.9 1.10 1:0.5 2:0.1"),
    # RubyGems' Gem::Version: prereleases sort between releases
    (orders.GEM, "0.9 1.0.a.2 1.0.b1 1.0"),
    (orders.GEM, "1.0.a9 1.0.a10 1.0.rc1 1.0 1.0.1 1.9 1.10"),
    # others
    (orders.COMPOSER, "1.0.0-dev 1.0.0-alpha1 1.0.0-beta2 1.0.0-RC1 1.0.0 1.0.0-p1 1.0.1"),
    (orders.NUGET, "1.0.0-alpha 1.0.0-Beta 1.0.0 1.0.0.1 1.0.1"),
    (orders.RPM, "1.0~rc1 1.0 1.0^git1 1.0.1 1.1 1:0.1"),
    (orders.ALPINE, "1.0_alpha 1.0_beta 1.0_pre 1.0_rc1 1.0 1.0-r1 1.0_p1 1.0.1-r0 1.10-r0"),
    (orders.NUMBERS, "1 1.2 1.10 2-1"),
]
EQUAL: list[tuple[Order, str]] = [
    (orders.SEMVER, "1.0.0 1.0.0+20130313144700 1.0.0+exp.sha.5114f85"),
    (orders.PYPI, "1.0 1.0.0 v1.0"),
    (orders.PYPI, "1.1a1 1.1.a1 1.1-alpha.1 1.1ALPHA1"),
    (orders.GO, "v2.0.0 v2.0.0+incompatible 2.0.0"),
    (orders.MAVEN, "1.ga 1-ga 1-0 1.0 1 1-final"),
    (orders.MAVEN, "1.foo 1-foo"),
    (orders.MAVEN, "1-a1 1-alpha-1"),
    (orders.MAVEN, "1-cr1 1-rc1"),
    (orders.MAVEN, "1.0-alpha1 1.0-ALPHA1"),
    (orders.DEBIAN, "1.0 0:1.0 1.0-0"),
    (orders.GEM, "1.0 1 1.0.0"),
    (orders.NUGET, "1.0 1.0.0 1.0.0.0"),
]


@pytest.mark.parametrize(("order", "versions"), ASCENDING)
def test_versions_are_ordered_as_their_ecosystem_documents_it(order: Order, versions: str) -> None:
    for earlier, later in combinations(versions.split(), 2):
        assert order.is_less(earlier, later), (earlier, later)
        assert not order.is_less(later, earlier), (earlier, later)


@pytest.mark.parametrize(("order", "versions"), EQUAL)
def test_spellings_of_one_version_are_equal(order: Order, versions: str) -> None:
    for version, other in combinations(versions.split(), 2):
        assert order.is_equal(version, other), (version, other)
        assert order.is_equal(other, version), (version, other)


@pytest.mark.parametrize(
    ("order", "text"),
    [
        (orders.SEMVER, "1.2.3.4"),
        (orders.SEMVER, "latest"),
        (orders.PYPI, "2004d-x"),
        (orders.GO, "master"),
        (orders.GEM, "1..0!"),
        (orders.DEBIAN, "a b"),
        (orders.NUGET, "x"),
        (orders.MAVEN, ""),
        (orders.NUMBERS, "1.2b"),
    ],
)
def test_what_is_not_a_version_is_not_compared(order: Order, text: str) -> None:
    with pytest.raises(UnreadableVersion):
        order.is_less(text, "1.0.0")


def test_versions_are_sorted_by_their_order_and_not_as_text() -> None:
    assert orders.SEMVER.sorted(["1.10.0", "1.9.0", "1.9.0-rc.1"]) == ["1.9.0-rc.1", "1.9.0", "1.10.0"]

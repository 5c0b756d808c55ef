"""Limits per client count principals, else addresses; a header names the client only if a trusted proxy sends it."""

from types import SimpleNamespace

import pytest

from stream_car import InvalidRequest
from stream_car.http.clients import LOCAL, Proxies, address_of, client_of, parse_proxies

PROXIES = parse_proxies(["10.0.0.1", "192.168.0.0/16"])


def scope(address: str, *forwarded: str, proxies: Proxies = ()) -> dict[str, object]:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    received: dict[str, object] = {"type": "http", "client": (address, 4000), "headers": headers}
    return {**received, "address": address_of(received, proxies)}


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("fe80::1%eth0", "fe80::/64"),
        ("127.0.0.1", LOCAL),
        ("::1", LOCAL),
        ("::ffff:127.0.0.1", LOCAL),
        ("", LOCAL),
    ],
)
def test_a_client_is_an_address_or_the_network_of_one_customer(address: str, client: str) -> None:
    assert client_of(scope(address)) == client


def test_without_a_trusted_proxy_a_header_names_nobody() -> None:
    assert client_of(scope("203.0.113.9", "198.51.100.7")) == "203.0.113.9"
    assert client_of(scope("127.0.0.1", "198.51.100.7")) == LOCAL


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        (["198.51.100.7"], "198.51.100.7"),
        (["1.1.1.1, 198.51.100.7, 192.168.3.4"], "198.51.100.7"),
        (["1.1.1.1", "198.51.100.7:5123"], "198.51.100.7"),
        (["[2001:db8::1]:443"], "2001:db8::/64"),
        (["unknown"], "address unknown"),
        ([], LOCAL),
    ],
)
def test_a_trusted_proxy_names_the_client_last(forwarded: list[str], client: str) -> None:
    assert client_of(scope("10.0.0.1", *forwarded, proxies=PROXIES)) == client


def test_a_principal_is_one_client_wherever_it_is() -> None:
    for address in ("203.0.113.9", "127.0.0.1"):
        assert client_of({**scope(address), "principal": SimpleNamespace(name="loader")}) == "token loader"


def test_a_proxy_that_is_no_address_is_an_invalid_setting() -> None:
    with pytest.raises(InvalidRequest, match=r"A trusted proxy is an address or a network, but 'proxy\.example' "):
        parse_proxies(["proxy.example"])

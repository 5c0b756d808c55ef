"""Which addresses a webhook may reach, and that a name is resolved once, to the address that is connected."""

import asyncio
import socket
from collections.abc import Awaitable
from ipaddress import ip_address
from typing import Protocol

import pytest

from stream_car import InvalidRequest
from stream_car.webhooks.addresses import AddressDenied, PublicNetwork, is_allowed, networks

PRIVATE = [
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.1.2.3", "224.0.0.1"),
    *("255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a9fe:a9fe::1"),
    *("fec0::1", "fd12:3456::1", "::127.0.0.1", "::ffff:100.64.0.1", "64:ff9b:1::a00:1", "192.0.2.1", "2001:db8::1"),
]


@pytest.mark.parametrize("text", PRIVATE)
def test_an_address_that_is_not_public_is_denied_unless_it_is_allowed(text: str) -> None:
    assert not is_allowed(ip_address(text), ())
    assert is_allowed(ip_address(text), networks([text]))


@pytest.mark.parametrize("text", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_a_public_address_is_allowed(text: str) -> None:
    assert is_allowed(ip_address(text), ())


def test_a_network_that_is_none_is_an_error() -> None:
    with pytest.raises(InvalidRequest, match=r"such as 10\.1\.2\.3") as raised:
        networks(["10.0.0.0/33"])
    assert raised.value.code == "webhook_allow"


class Resolver(Protocol):
    def __call__(self, host: str, port: int, *, type: int = 0) -> Awaitable[object]: ...


def answers(*addresses: str) -> Resolver:
    """Return a resolver that gives one answer, and then another."""
    left = [[(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80))] for address in addresses]

    async def resolve(host: str, port: int, *, type: int = 0) -> object:
        return left.pop(0)

    return resolve


def test_a_name_is_resolved_once_and_that_address_is_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    connected: list[str] = []

    class Network:
        async def connect_tcp(self, host: str, *_: object) -> str:
            connected.append(host)
            return "stream"

    async def connect() -> object:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", answers("8.8.8.8", "127.0.0.1"))
        network = PublicNetwork()
        monkeypatch.setattr(network, "_network", Network())
        return await network.connect_tcp("rebinding.example", 80)

    assert asyncio.run(connect()) == "stream"
    assert connected == ["8.8.8.8"]


def test_a_name_with_one_address_that_is_not_public_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect() -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", answers("169.254.169.254"))
        await PublicNetwork().connect_tcp("metadata.example", 80)

    with pytest.raises(AddressDenied, match=r"metadata\.example has the address 169\.254\.169\.254"):
        asyncio.run(connect())


@pytest.mark.parametrize(
    ("address", "allowed", "port", "is_denied"),
    [
        *(("8.8.8.8", (), port, False) for port in (80, 443, 8080, 8443)),
        *(("8.8.8.8", (), port, True) for port in (22, 25, 3306, 6379, 9200)),
        ("8.8.8.8", ("8.8.8.8",), 3000, False),
        ("10.0.0.1", ("10.0.0.0/8",), 3000, False),
    ],
)
def test_a_port_that_is_not_of_the_web_is_denied_unless_the_address_is_allowed(
    address: str, allowed: tuple[str, ...], port: int, is_denied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Network:
        async def connect_tcp(self, *_: object) -> str:
            return "stream"

    async def connect() -> object:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", answers(address))
        network = PublicNetwork(networks(allowed))
        monkeypatch.setattr(network, "_network", Network())
        try:
            return await network.connect_tcp("x.example", port)
        except AddressDenied as error:
            return str(error)

    assert ("To allow it, name the address" in str(asyncio.run(connect()))) == is_denied

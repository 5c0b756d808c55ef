"""Connect only to public addresses, and to others if they are allowed.

Promise: the name of a host is resolved once for a connection, every address that it has is checked, and the connection
goes to an address that was checked. So a name that changes its mind leads nowhere else. Addresses inside others (IPv4
in IPv6, 6to4, Teredo, NAT64) are checked too.
"""

import asyncio
import socket
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpcore

from stream_car.errors import InvalidRequest

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
SITE_LOCAL = IPv6Network("fec0::/10")
NAT64 = IPv6Network("64:ff9b::/96")
PORTS = (80, 443, 8080, 8443)  # of public addresses: others are those of services that are not receivers


class AddressDenied(Exception):
    """A host has an address that is not public, or a port that is not one of `PORTS`, and neither is allowed."""


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return the networks that are allowed beside public ones. Raises `InvalidRequest` (`webhook_allow`)."""
    try:
        return tuple(ip_network(text) for text in texts)
    except ValueError as error:
        cure = "Give an address or a network, such as 10.1.2.3 or 10.0.0.0/8."
        raise InvalidRequest("webhook_allow", f"{error}. {cure}") from None


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    """Return whether a webhook may be sent to this address."""
    if is_named(address, allowed):
        return True
    inner = _inner(address)
    if inner is not None:
        return is_allowed(inner, ())
    return address.is_global and not (address.is_multicast or address.is_reserved or address in SITE_LOCAL)


def is_named(address: Address, allowed: Sequence[Network]) -> bool:
    """Return whether this address, or the one that it leads to, is in one of these networks."""
    inner = _inner(address)
    return any(address in network for network in allowed) or (inner is not None and is_named(inner, allowed))


def _inner(address: Address) -> IPv4Address | None:
    """Return the address that this one leads to, if it contains one."""
    if isinstance(address, IPv4Address):
        return None
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo is not None else None)


class PublicNetwork(httpcore.AsyncNetworkBackend):
    """The network of httpcore, without what is not allowed."""

    def __init__(self, allowed: Sequence[Network] = ()) -> None:
        self._allowed = allowed
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of a host that answers. Raises `AddressDenied`."""
        addresses = await self._addresses(host, port)
        for address in addresses:
            if not is_allowed(address, self._allowed):
                raise AddressDenied(f"{host} has the address {address}, which is not public. To allow it, name it.")
            if port not in PORTS and not is_named(address, self._allowed):
                ports = ", ".join(map(str, PORTS))
                raise AddressDenied(
                    f"Webhooks to public addresses use one of the ports {ports}, not {port}. To allow it, name the "
                    f"address {address}."
                )
        failure: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for address in addresses:
            try:
                return await self._network.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError(f"{host} has no address.")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._network.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> list[Address]:
        try:
            resolved = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved: {error.strerror}.") from error
        return [ip_address(str(sockaddr[0]).partition("%")[0]) for *_, sockaddr in resolved]

"""Who sends a request: what the limits per client count.

Promise: a client is the principal if a file of tokens names it, and otherwise an address; of IPv6, the network of 64
bits that one customer usually has. The header X-Forwarded-For counts only if a trusted proxy sends it. All programs of
this machine share one address, so without principals they are one client, `LOCAL`, which only the limits in all
restrict.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.types import Scope

from stream_car.errors import InvalidRequest
from stream_car.http.tokens import SHARED

Proxies = Sequence[IPv4Network | IPv6Network]
LOCAL = ""
PREFIX = 64  # bits of an IPv6 address
_PORT = re.compile(r"(^[0-9.]+|\]):[0-9]+$")  # some proxies add it


def parse_proxies(addresses: Sequence[str]) -> Proxies:
    """Return the networks of trusted proxies. Raises `InvalidRequest` (`settings`)."""
    try:
        return tuple(ip_network(address, strict=False) for address in addresses)
    except ValueError as error:
        reason = str(error).rstrip(".")
        raise InvalidRequest("settings", f"A trusted proxy is an address or a network, but {reason}.") from None


def client_of(scope: Scope) -> str:
    """Return the name of the client that sends a request, whose scope has an `address` by now."""
    principal = scope.get("principal")
    if principal is not None and principal.name not in ("", SHARED):
        return f"token {principal.name}"
    return client_at(scope["address"])


def address_of(scope: Scope, proxies: Proxies) -> str:
    """Return the address that a request comes from, as trusted proxies report it; it is empty if they name none."""
    peer = scope.get("client")
    address = str(peer[0]) if peer else ""
    if not is_proxy(address, proxies):
        return address
    forwarded = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
    for part in reversed(b",".join(forwarded).decode("latin-1").split(",")):
        address = _PORT.sub(r"\1", part.strip()).strip("[]")
        if not is_proxy(address, proxies):
            return address
    return ""


@lru_cache(maxsize=4096)
def is_proxy(address: str, proxies: Proxies) -> bool:
    """Return whether a trusted proxy has this address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in proxies)


@lru_cache(maxsize=4096)
def client_at(address: str) -> str:
    """Return the name of the client at an address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return f"address {address[:64]}" if address else LOCAL
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is None:
            return LOCAL if parsed.is_loopback else str(ip_network((parsed, PREFIX), strict=False))
        parsed = parsed.ipv4_mapped
    return LOCAL if parsed.is_loopback else str(parsed)

"""What both clients hand to httpx, and what they make of its errors."""

from collections.abc import Mapping
from ipaddress import ip_address

import httpx
from msgspec import Struct

from stream_car.client.retries import Ask, Heard, Lost
from stream_car.errors import InvalidRequest

NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
TIMEOUT_S = 60.0
SILENCE_S = 60.0  # of a stream: longer than the pause between two heartbeats
STREAM_TIMEOUT = httpx.Timeout(10.0, read=SILENCE_S)


class Address(Struct, frozen=True, kw_only=True):
    """Where the service is, and how one is let in."""

    url: str
    headers: Mapping[str, str]
    is_near: bool  # on this machine: no proxy stands between


def address(url: str, token: str | None) -> Address:
    """Check an address. Raises `InvalidRequest` (`url`)."""
    try:
        parsed = httpx.URL(url.rstrip("/"))
    except (httpx.InvalidURL, TypeError) as error:
        raise InvalidRequest("url", f"{url!r} is no address: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidRequest("url", f"{url!r} is no address of a service; write it as http://127.0.0.1:8377")
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise InvalidRequest("url", "the address has parts that do not belong to it; give a token as `token`")
    if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token != ""):
        raise InvalidRequest("token", "a token is letters and digits on one line")
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    return Address(url=str(parsed), headers=headers, is_near=_is_near(parsed.host))


def _is_near(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def heard(response: httpx.Response) -> Heard:
    """A response that is read."""
    return Heard(
        status=response.status_code, body=response.content, retry_after=response.headers.get("retry-after", "")
    )


def lost(error: httpx.TransportError) -> Lost:
    """No response."""
    return Lost(reason=str(error) or type(error).__name__, was_sent=not isinstance(error, NOT_SENT))


def head(ask: Ask) -> dict[str, str]:
    """The headers of a request."""
    return {"Content-Type": ask.kind} if ask.body is not None else {}

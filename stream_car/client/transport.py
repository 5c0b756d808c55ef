"""What both clients pass to httpx, and what its responses and errors mean."""

from collections.abc import Mapping
from ipaddress import ip_address

import httpx
from msgspec import Struct

from stream_car.client.retries import HttpRequest, HttpResponse, NoResponse
from stream_car.codec.expectations import must_be
from stream_car.errors import InvalidRequest

NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
TIMEOUT_S = 60.0
SILENCE_S = 60.0  # of a stream; longer than the time between two heartbeats
STREAM_TIMEOUT = httpx.Timeout(10.0, read=SILENCE_S)


class Address(Struct, frozen=True, kw_only=True):
    """The URL of a service, the headers that it requires, and whether it is on this machine, so without a proxy."""

    url: str
    headers: Mapping[str, str]
    is_local: bool


def address(url: str, token: str | None) -> Address:
    """Check a URL and a token. Raises `InvalidRequest` (`url`, `token`)."""
    if not isinstance(url, str):
        raise InvalidRequest("url", must_be("url", "a string such as http://127.0.0.1:8377", url))
    if token is not None and not isinstance(token, str):
        raise InvalidRequest("token", must_be("token", "a string", token))
    try:
        parsed = httpx.URL(url.rstrip("/"))
    except (httpx.InvalidURL, TypeError) as error:
        raise InvalidRequest("url", f"{url!r} is not a URL ({error}).") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidRequest("url", f"{url!r} is not the URL of a service. Write it like http://127.0.0.1:8377.")
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise InvalidRequest("url", "The URL must not have a user, a query or a fragment. Pass a token as `token`.")
    if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token != ""):
        raise InvalidRequest("token", "A token consists of letters and digits on one line.")
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    return Address(url=str(parsed), headers=headers, is_local=_is_local(parsed.host))


def closed(url: str) -> InvalidRequest:
    """Return the error that a client was used after `close`."""
    return InvalidRequest("closed", f"This client is closed. Connect again: {url}.")


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def headers(request: HttpRequest) -> dict[str, str]:
    """Return the headers of a request."""
    return {"Content-Type": request.content_type} if request.body is not None else {}


def response(response: httpx.Response) -> HttpResponse:
    """Return a response that has been read."""
    return HttpResponse(
        status=response.status_code, body=response.content, retry_after=response.headers.get("retry-after", "")
    )


def no_response(error: httpx.TransportError) -> NoResponse:
    """Return why there is no response."""
    return NoResponse(reason=str(error) or type(error).__name__, was_sent=not isinstance(error, NOT_SENT))

"""What an agent can read by address: documents as they were published, what is in force in a scope, and the rules."""

from urllib.parse import unquote, urlsplit

from stream_car.api.calls_aio import AsyncCalls
from stream_car.errors import InvalidRequest

SCHEME = "stream-car"
RULES = f"{SCHEME}://rules"
TEMPLATES = {  # by address: the name, and what it is
    f"{SCHEME}://documents/{{name}}": ("document", "A document as it was published, and its status now, by id."),
    f"{SCHEME}://scopes/{{scope}}": ("scope", "What is in force in a scope: KEY=VALUE, several joined by commas."),
}


async def read_resource(calls: AsyncCalls, uri: str) -> object:
    """Return what is at an address. A part of it is percent-encoded.

    Raises:
        InvalidRequest: nothing is there (`uri`), or a part of the address is not valid.
    """
    address = urlsplit(uri)
    part = unquote(address.path.removeprefix("/"))
    if address.scheme == SCHEME and address.netloc == "rules" and not part:
        return await calls.rules()
    if address.scheme == SCHEME and address.netloc == "scopes" and part:
        return await calls.frontier(part)
    if address.scheme == SCHEME and address.netloc == "documents" and part:
        [lookup] = await calls.get([part])
        if lookup.documents:
            return lookup
    raise InvalidRequest("uri", f"There is nothing at {uri:.200}. Addresses are {', '.join([RULES, *TEMPLATES])}.")

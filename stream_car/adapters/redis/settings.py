"""How to reach Redis. Loads no driver.

Promise: passwords appear in no message.
"""

from urllib.parse import urlsplit

from msgspec import Struct

TIMEOUT_S = 5.0


class RedisServer(Struct, frozen=True, kw_only=True):
    """The address (`redis://host:port`, encrypted: `rediss://`), the user, and the certificates.

    Of a cluster, name any node. `ca`, `certificate` and `key` are paths of PEM files.
    """

    url: str
    username: str | None = None
    password: str | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    timeout_s: float = TIMEOUT_S

    @property
    def place(self) -> str:
        """The address without a password."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}:{parts.port or 6379}"

    def __repr__(self) -> str:
        return f"RedisServer({self.place})"

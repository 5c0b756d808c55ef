"""How to reach Redis. Loads no driver.

Promise: passwords appear in no message.
"""

from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from stream_car.errors import StreamCarError

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
        """The address without a password. Of one that cannot be parsed, only the kind: the rest may be a password."""
        parts = _split(self.url)
        if parts is None:
            return self.url.partition("://")[0] + "://..." if "://" in self.url else "..."
        if parts.scheme == "unix":
            return f"unix://{parts.path}"
        return f"{parts.scheme}://{parts.hostname}:{parts.port or 6379}"

    def require_address(self) -> None:
        """Raise `StreamCarError` if the address or the certificates cannot be used."""
        cure = "Write redis://host:6379, or rediss://host:6379 for an encrypted connection."
        parts = _split(self.url)
        if parts is None or parts.scheme not in ("redis", "rediss", "unix"):
            note = " A password with special characters must be set separately." if "@" in self.url else ""
            raise StreamCarError(f"{self.place} is not an address of Redis. {cure}{note}")
        files = [path for path in (self.ca, self.certificate, self.key) if path is not None]
        if files and parts.scheme != "rediss":
            raise StreamCarError(
                "A certificate for Redis needs an encrypted connection. Use an address with rediss://."
            )
        for path in files:
            if not Path(path).is_file():
                raise StreamCarError(f"The certificate file {path} for Redis does not exist. Correct its path.")

    def __repr__(self) -> str:
        return f"RedisServer({self.place})"


def _split(url: str) -> SplitResult | None:
    """Return the parts of an address; `None` if it has none, or a port that is not one."""
    try:
        parts = urlsplit(url)
        return parts if parts.port != 0 else None
    except ValueError:
        return None

"""How to reach Kafka. Loads no driver.

Promise: passwords appear in no message.
"""

import ssl
from typing import Literal

from msgspec import Struct

from stream_car.errors import StreamCarError

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
DEFAULT_MECHANISM: Mechanism = "SCRAM-SHA-512"
TIMEOUT_MS = 10_000


class KafkaServer(Struct, frozen=True, kw_only=True):
    """The address (`host:port,host:port`), the user, and the certificates.

    `ca`, `certificate` and `key` are paths of PEM files. With one of them, or with `tls`, the connection is encrypted.
    """

    address: str
    username: str | None = None
    password: str | None = None
    mechanism: Mechanism = DEFAULT_MECHANISM
    tls: bool = False
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    timeout_ms: int = TIMEOUT_MS

    def __repr__(self) -> str:
        return f"KafkaServer({self.address})"

    def options(self) -> dict[str, object]:
        """Return the options for aiokafka and for kafka-python, which have the same names."""
        is_encrypted = self.tls or self.ca is not None or self.certificate is not None
        protocol = ("SASL_" if self.username else "") + ("SSL" if is_encrypted else "PLAINTEXT")
        options: dict[str, object] = {"bootstrap_servers": self.address.split(","), "security_protocol": protocol}
        if is_encrypted:
            options["ssl_context"] = self._ssl_context()
        if self.username:
            options |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.username,
                "sasl_plain_password": self.password or "",
            }
        return options

    def _ssl_context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ca)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key)
        except OSError as error:
            cure = "Check its path and that it is in PEM format."
            raise StreamCarError(f"A certificate for Kafka cannot be read ({error}). {cure}") from error
        return context

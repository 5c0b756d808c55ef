"""Sign messages as Standard Webhooks describe it (https://www.standardwebhooks.com).

Promise: a receiver that verifies the signature knows that the message comes from who has the secret, is unchanged, and
when it was sent. Each try has a timestamp of its own, and the same id.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

from stream_car.errors import InvalidRequest

PREFIX = "whsec_"
KEY_MIN, KEY_MAX = 24, 64  # bytes


def read_secret(text: str) -> bytes:
    """Return the key in a secret such as `whsec_MfKQ...`. Raises `InvalidRequest` (`webhook_secret`)."""
    try:
        key = base64.b64decode(text.strip().removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not KEY_MIN <= len(key) <= KEY_MAX:
        cure = "Create one: echo whsec_$(openssl rand -base64 32)"
        reason = f"A secret of webhooks is {KEY_MIN} to {KEY_MAX} bytes as base64. {cure}"
        raise InvalidRequest("webhook_secret", reason)
    return key


def signed_headers(key: bytes, *, message_id: str, timestamp: int, body: bytes) -> Mapping[str, str]:
    """Return the headers that sign a message; `timestamp` in seconds since 1970."""
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return {"webhook-id": message_id, "webhook-timestamp": str(timestamp), "webhook-signature": f"v1,{signature}"}

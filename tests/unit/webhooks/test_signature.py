"""Signatures: those of the specification's own example, and secrets that cannot be used."""

import pytest

from stream_car import InvalidRequest
from stream_car.webhooks.signature import read_secret, signed_headers


def test_a_signature_is_that_of_the_published_example() -> None:
    key = read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    headers = signed_headers(key, message_id="msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp=1614265330, body=body)

    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", "no base64!", "whsec_" + "A" * 200])
def test_a_secret_that_is_too_weak_or_no_base64_is_an_error_that_says_how_to_make_one(secret: str) -> None:
    with pytest.raises(InvalidRequest, match="openssl rand") as raised:
        read_secret(secret)
    assert raised.value.code == "webhook_secret"

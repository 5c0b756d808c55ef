"""What an administrator of topics is told if Kafka cannot be used."""

import pytest
from kafka import errors as driver

from stream_car.adapters.kafka import topics
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.errors import StreamCarError, Unavailable


@pytest.mark.parametrize(
    ("error", "family", "advice"),
    [
        (driver.KafkaTimeoutError, Unavailable, "Try again later"),
        (driver.SaslAuthenticationFailedError, StreamCarError, "Check the user, the password"),
        (driver.TopicAuthorizationFailedError, StreamCarError, "Check the user, the password"),
    ],
)
def test_an_error_of_the_driver_becomes_one_of_ours_with_advice(
    error: type[Exception], family: type[StreamCarError], advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**options: object) -> None:
        raise error

    monkeypatch.setattr(topics, "KafkaAdminClient", fail)
    with pytest.raises(family, match=advice):
        topics.check(KafkaServer(address="localhost:9092"), Layout())

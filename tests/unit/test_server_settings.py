"""Where Kafka and Redis are, as the environment or a caller says."""

from pathlib import Path

import pytest

from stream_car.errors import InvalidRequest
from stream_car.settings import kafka_server, redis_server, require_known_variables


def test_kafka_and_redis_are_as_the_environment_says(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a-password\n")
    said = {
        "STREAM_CAR_KAFKA": "one:9092,two:9092",
        "STREAM_CAR_KAFKA_USER": "worker",
        "STREAM_CAR_KAFKA_PASSWORD_FILE": str(secret),
        "STREAM_CAR_KAFKA_MECHANISM": "PLAIN",
        "STREAM_CAR_KAFKA_TLS": "1",
        "STREAM_CAR_REDIS": "rediss://host:6380",
        "STREAM_CAR_REDIS_PASSWORD": "another",
    }
    kafka, redis = kafka_server(environment=said), redis_server(said)

    assert (kafka.address, kafka.username, kafka.password, kafka.mechanism) == (
        "one:9092,two:9092", "worker", "a-password", "PLAIN",
    )  # fmt: skip
    assert kafka.options()["security_protocol"] == "SASL_SSL"
    assert (redis.url, redis.username, redis.password) == ("rediss://host:6380", None, "another")
    assert "password" not in repr(kafka)
    assert "another" not in repr(redis)
    require_known_variables(said)


def test_what_a_caller_says_goes_before_the_environment() -> None:
    assert kafka_server("here:1", {"STREAM_CAR_KAFKA": "there:1"}).address == "here:1"


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({}, "STREAM_CAR_KAFKA"),
        ({"STREAM_CAR_KAFKA": "a:1", "STREAM_CAR_KAFKA_MECHANISM": "GUESS"}, "mechanism"),
        ({"STREAM_CAR_KAFKA": "a:1", "STREAM_CAR_KAFKA_TLS": "perhaps"}, "tls"),
        ({"STREAM_CAR_KAFKA": "a:1", "STREAM_CAR_KAFKA_PASSWORD_FILE": "never-made"}, "PASSWORD_FILE"),
    ],
)
def test_a_wrong_setting_of_kafka_is_refused_by_name(said: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        kafka_server(environment=said)


def test_no_redis_is_refused_with_what_to_set() -> None:
    with pytest.raises(InvalidRequest, match=r"\$STREAM_CAR_REDIS="):
        redis_server({})

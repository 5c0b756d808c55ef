"""The addresses of Kafka and Redis, from the environment or a caller."""

from pathlib import Path

import pytest

from stream_car.errors import InvalidRequest
from stream_car.settings import kafka_server, redis_server, require_known_variables


def test_the_environment_names_kafka_and_redis(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a-password\n")
    environment = {
        "STREAM_CAR_KAFKA": "one:9092,two:9092",
        "STREAM_CAR_KAFKA_USER": "worker",
        "STREAM_CAR_KAFKA_PASSWORD_FILE": str(secret),
        "STREAM_CAR_KAFKA_MECHANISM": "PLAIN",
        "STREAM_CAR_KAFKA_TLS": "1",
        "STREAM_CAR_REDIS": "rediss://host:6380",
        "STREAM_CAR_REDIS_PASSWORD": "another",
    }
    kafka, redis = kafka_server(environment=environment), redis_server(environment)

    assert (kafka.address, kafka.username, kafka.password, kafka.mechanism) == (
        "one:9092,two:9092", "worker", "a-password", "PLAIN",
    )  # fmt: skip
    assert kafka.options()["security_protocol"] == "SASL_SSL"
    assert (redis.url, redis.username, redis.password) == ("rediss://host:6380", None, "another")
    assert "password" not in repr(kafka)
    assert "another" not in repr(redis)
    require_known_variables(environment)


def test_an_argument_overrides_the_environment() -> None:
    assert kafka_server("here:1", {"STREAM_CAR_KAFKA": "there:1"}).address == "here:1"


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({}, "STREAM_CAR_KAFKA"),
        ({"STREAM_CAR_KAFKA": "a:1", "STREAM_CAR_KAFKA_MECHANISM": "GUESS"}, "mechanism"),
        ({"STREAM_CAR_KAFKA": "a:1", "STREAM_CAR_KAFKA_TLS": "perhaps"}, "tls"),
        ({"STREAM_CAR_KAFKA": "a:1", "STREAM_CAR_KAFKA_PASSWORD_FILE": "never-made"}, "PASSWORD_FILE"),
    ],
)
def test_a_wrong_setting_of_kafka_is_rejected_by_name(environment: dict[str, str], name: str) -> None:
    with pytest.raises(InvalidRequest, match=name):
        kafka_server(environment=environment)


def test_a_missing_address_of_redis_is_reported_with_what_to_set() -> None:
    with pytest.raises(InvalidRequest, match=r"No address of Redis\. .* export STREAM_CAR_REDIS="):
        redis_server({})

"""`stream-car`, but it notices within two seconds that a broker is away, not within fifteen."""

from msgspec.structs import replace

from stream_car import settings
from stream_car.adapters.kafka import log
from stream_car.adapters.kafka.settings import KafkaServer

TIMEOUT_MS = 1500
VERIFY_S = 0.5

_usual = settings.kafka_server


def _kafka_server(address: str | None = None) -> KafkaServer:
    return replace(_usual(address), timeout_ms=TIMEOUT_MS)


if __name__ == "__main__":
    settings.kafka_server = _kafka_server  # type: ignore[assignment]  # without the environment, which is the process's
    log.VERIFY_S = VERIFY_S
    from stream_car.cli import main

    main()

"""Settings that all tests share: a property is judged by its truth, never by the speed of the machine."""

from hypothesis import settings

from tests.support.back_ends import pytest_generate_tests, where
from tests.support.servers import kafka, local_kafka, local_redis, pytest_terminal_summary, redis, redis_cluster

settings.register_profile("stream-car", deadline=None, print_blob=True)
settings.load_profile("stream-car")

__all__ = [
    "kafka",
    "local_kafka",
    "local_redis",
    "pytest_generate_tests",
    "pytest_terminal_summary",
    "redis",
    "redis_cluster",
    "where",
]

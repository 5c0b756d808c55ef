"""Which addresses only this machine can reach."""

import pytest

from stream_car.http.auth import is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "localhost", "::1", "[::1]"])
def test_these_addresses_are_reached_by_this_machine_alone(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.org", "example.org", ""])  # noqa: S104
def test_other_machines_can_reach_these(host: str) -> None:
    assert not is_loopback(host)

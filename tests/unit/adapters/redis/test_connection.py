"""Addresses of Redis that cannot be used, each with an error that names the cure and no password."""

import socket
from contextlib import closing

import pytest

from stream_car.adapters.redis.connection import connect
from stream_car.adapters.redis.settings import RedisServer
from stream_car.errors import StreamCarError, Unavailable


@pytest.mark.parametrize(
    "url",
    [
        "redis://host:six",
        "redis://host:99999",
        "redis://host:0",
        "redis://[::1",
        "http://host:6379",
        "host",
        "redis://:secret/word@host:6379",
        "rediss://user:secret#word@host:6379",
    ],
)
async def test_an_address_that_cannot_be_used_is_an_error_with_an_example(url: str) -> None:
    server = RedisServer(url=url)
    with pytest.raises(StreamCarError, match=r"is not an address of Redis\. Write redis://host:6379") as caught:
        await connect(server)

    assert "secret" not in f"{caught.value} {server!r}"


@pytest.mark.parametrize(
    ("server", "cure"),
    [
        (RedisServer(url="rediss://host", ca="/none.pem"), "/none.pem for Redis does not exist"),
        (RedisServer(url="redis://host", certificate="/none.pem"), "Use an address with rediss://"),
    ],
)
async def test_a_certificate_that_cannot_be_used_is_an_error_with_its_cure(server: RedisServer, cure: str) -> None:
    with pytest.raises(StreamCarError, match=cure):
        await connect(server)


async def test_a_place_where_nothing_answers_is_named() -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(Unavailable, match=f"The address is redis://127.0.0.1:{port}: check that Redis runs there."):
            await connect(RedisServer(url=f"redis://:secret@127.0.0.1:{port}", timeout_s=0.3))


def test_the_address_of_a_socket_is_its_path() -> None:
    assert RedisServer(url="unix:///run/redis.sock").place == "unix:///run/redis.sock"

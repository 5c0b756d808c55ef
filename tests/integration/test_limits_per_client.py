"""At a limit the slowest client gives way, and no client can use up what all share."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import httpx
import pytest

from stream_car.http import connections, server
from stream_car.settings import ServerSettings
from stream_car.subscriptions import hub
from tests.support.http_service import Running, as_fields, code_of, serving, take

REQUEST = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
SMALL = ServerSettings(port=0, subscriptions_max=4)
PROXY = ServerSettings(port=0, subscriptions_max=8, trusted_proxies=("127.0.0.1",))
Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(running: Running, address: str = "127.0.0.1") -> Pair:
    """Connect from an address of this machine; all of 127.0.0.0/8 are."""
    url = httpx.URL(running.url)
    return await asyncio.open_connection(url.host, url.port, local_addr=(address, 0))


async def answers(pair: Pair) -> bool:
    """Send a request, and return whether the connection is alive and not rejected."""
    reader, writer = pair
    try:
        writer.write(REQUEST)
        async with asyncio.timeout(20):
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(b"alive\n"))
    except (ConnectionError, asyncio.IncompleteReadError):
        return False
    return head.startswith(b"HTTP/1.1 200 ")


@asynccontextmanager
async def opened(*pairs: Pair) -> AsyncIterator[None]:
    try:
        yield
    finally:
        for _, writer in pairs:
            writer.close()


@pytest.fixture
def six_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six connections in all, and addresses of this machine that count as different clients."""
    monkeypatch.setattr(server, "REQUESTS_MAX", 2)
    monkeypatch.setattr(connections, "client_at", lambda address: "" if address == "127.0.0.1" else address)


@pytest.mark.usefixtures("six_connections")
async def test_idle_connections_keep_nobody_out() -> None:
    async with serving(settings=SMALL) as running:
        idle = [await connect(running) for _ in range(6)]
        assert [await answers(pair) for pair in idle] == [True] * 6
        newcomer = await connect(running)
        async with opened(*idle, newcomer):
            assert await answers(newcomer)
            assert [await answers(pair) for pair in idle] == [False, *[True] * 5]


@pytest.mark.usefixtures("six_connections")
async def test_the_client_with_most_connections_gives_way() -> None:
    async with serving(settings=SMALL) as running:
        oldest = await connect(running, "127.0.0.9")
        assert await answers(oldest)
        many = [await connect(running) for _ in range(5)]
        newcomer = await connect(running, "127.0.0.8")
        async with opened(oldest, *many, newcomer):
            assert await answers(newcomer)
            assert await answers(oldest)


@pytest.mark.usefixtures("six_connections")
async def test_a_client_beyond_its_share_takes_its_own_places_only() -> None:
    async with serving(settings=SMALL) as running:
        other = await connect(running)
        own = [await connect(running, "127.0.0.9") for _ in range(3)]
        async with opened(other, *own):
            assert [await answers(pair) for pair in own] == [False, True, True]
            assert await answers(other)


async def test_if_all_are_at_work_a_new_connection_is_rejected_for_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUESTS_MAX", 0)
    async with serving(settings=SMALL) as running, AsyncExitStack() as streams:
        subscriptions = [await streams.enter_async_context(running.subscribe()) for _ in range(4)]
        for events in subscriptions:
            await take(events, 1)
        reader, writer = await connect(running)
        answer = await reader.read()
        writer.close()

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 5\r\n" in answer


@asynccontextmanager
async def unread_answer(running: Running) -> AsyncIterator[socket.socket]:
    """Send a question whose answer is longer than a socket takes, and read the first byte."""
    url = httpx.URL(running.url)
    body = b'{"text": "claim", "k": 90}'
    head = b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((url.host, url.port or 0))
        client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await asyncio.to_thread(client.recv, 1)
        yield client


async def size_of_rest(client: socket.socket) -> int:
    """Read to the end of a connection."""
    received = 0
    client.settimeout(20)
    with suppress(ConnectionError):
        while piece := await asyncio.to_thread(client.recv, 1 << 16):
            received += len(piece)
    return received


async def publish_long_documents(running: Running) -> None:
    await running.post_documents(*(as_fields(f"claim-{n}", topic="tea") | {"text": "x" * 80_000} for n in range(90)))


async def test_an_answer_that_nobody_reads_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALL_S", 0.1)
    async with serving() as running:
        await publish_long_documents(running)
        async with unread_answer(running) as client:
            await asyncio.sleep(0.5)

            assert await size_of_rest(client) < 90 * 80_000


async def test_of_many_answers_that_nobody_reads_the_oldest_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "UNREAD_MAX", 90 * 80_000)
    async with serving() as running:
        await publish_long_documents(running)
        async with unread_answer(running) as oldest, unread_answer(running):
            assert await size_of_rest(oldest) < 90 * 80_000


async def statuses(running: Running, *clients: str) -> list[int]:
    """Return how subscriptions are answered that these clients open through a proxy, one beside the other."""
    results = []
    async with AsyncExitStack() as streams:
        for client in clients:
            headers = {"X-Forwarded-For": client}
            stream = running.client.stream("GET", "/v1/subscribe", headers=headers)
            response = await streams.enter_async_context(stream)
            if response.status_code != 200:
                await response.aread()
                assert code_of(response) == "busy"
            results.append(response.status_code)
    return results


async def test_a_client_behind_a_trusted_proxy_has_a_share_of_the_subscriptions() -> None:
    async with serving(settings=PROXY) as running:
        same_address = await statuses(running, *["198.51.100.1, 203.0.113.9"] * 3)
        same_network = await statuses(running, *[f"2001:db8::{n}" for n in range(3)])
        different = await statuses(running, *[f"198.51.100.{n}, 127.0.0.1" for n in range(3)])

    assert (same_address, same_network, different) == ([200, 200, 429], [200, 200, 429], [200, 200, 200])


async def test_without_a_trusted_proxy_the_header_changes_nothing() -> None:
    async with serving(settings=SMALL) as running:
        assert await statuses(running, *["198.51.100.1"] * 4) == [200] * 4
        assert await statuses(running, *[f"198.51.100.{n}" for n in range(5)]) == [*[200] * 4, 429]


async def test_slow_readers_of_snapshots_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "SNAPSHOTS_MAX", 3)
    async with serving() as running:
        await running.post_documents(*(as_fields(f"c{n}", topic=f"t{n}") | {"title": "x" * 900} for n in range(900)))
        url = httpx.URL(running.url)
        slow = []
        for _ in range(3):
            reader = socket.socket()
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect((url.host, url.port or 0))
            reader.sendall(b"GET /v1/subscribe?snapshot=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
            slow.append(reader)
            await asyncio.to_thread(reader.recv, 2000)
        answered = []
        for _ in range(5):
            async with asyncio.timeout(20):
                while (status := await _first_snapshot(running)) == 429:
                    await asyncio.sleep(0.05)  # until the slow ones have filled their sockets
            answered.append(status)
            for reader in slow:
                await asyncio.to_thread(reader.recv, 2000)  # they go on reading a little
        for reader in slow:
            reader.close()

    assert answered == [200] * 5


async def _first_snapshot(running: Running) -> int:
    async with running.client.stream("GET", "/v1/subscribe") as response:
        return response.status_code


async def test_the_subscriber_that_has_stalled_for_longest_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "STALLED_S", 0.0)
    async with serving(settings=ServerSettings(port=0, subscriptions_max=1)) as running:
        await running.post_documents(*(as_fields(f"c{n}", topic=f"t{n}") | {"title": "x" * 900} for n in range(900)))
        url = httpx.URL(running.url)
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect((url.host, url.port or 0))
            slow.sendall(b"GET /v1/subscribe HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await asyncio.to_thread(slow.recv, 2000)
            async with asyncio.timeout(20), running.subscribe() as events:
                [first] = await take(events, 1)

    assert first.event == "snapshot-begin"

"""Crowds of slow and idle clients, and an honest one among them: `python -m tests.attack.crowds`.

Promise: while 64 clients read snapshots slowly, and while 2,100 connections are idle, the honest client's subscriptions
and questions are all answered.
"""

import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx

from tests.support.server_process import Server

SLOW = 64
IDLE = 2100
HONEST = 20
DOCUMENTS = 5000
SUBSCRIBE = b"GET /v1/subscribe HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
PRELUDE = 10  # times that the crowd reads before the honest client comes
GAP_S = 0.3  # between two reads of a slow client
FILES = 100


def connect(server: Server, stack: ExitStack, sent: bytes = b"") -> socket.socket:
    """Open a connection that takes little at a time."""
    client = stack.enter_context(socket.socket())
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    client.connect(("127.0.0.1", server.port))
    client.sendall(sent)
    client.settimeout(0)
    return client


def publish(server: Server) -> None:
    """Publish so many documents that a snapshot does not fit into the buffers of a socket."""
    with httpx.Client(base_url=server.url, timeout=600) as client:
        for first in range(0, DOCUMENTS, 500):
            documents = [
                {
                    "id": f"a{n}",
                    "type": "advisory",
                    "time": "2024-01-31",
                    "scope": {"package": f"p{n}", "cve": f"c{n}"},
                    "title": "x" * 2000,
                }
                for n in range(first, first + 500)
            ]
            client.post("/v1/documents", json=documents).raise_for_status()


def slow_readers(server: Server, stack: ExitStack) -> Callable[[], None]:
    """Open subscriptions, and return what reads a little of each."""
    readers = [connect(server, stack, SUBSCRIBE) for _ in range(SLOW)]

    def read() -> None:
        for reader in readers:
            try:
                reader.recv(20_000)
            except OSError:
                continue

    return read


def idle_connections(server: Server, stack: ExitStack) -> Callable[[], None]:
    """Open connections that send nothing."""
    for _ in range(IDLE):
        connect(server, stack)
    return lambda: None


def honest_failures(server: Server, crowd: Callable[[], None]) -> list[str]:
    """Subscribe and ask again and again, on new connections, and return what went wrong."""
    failures = []
    for _ in range(PRELUDE):
        crowd()
        time.sleep(GAP_S)
    for _ in range(HONEST):
        crowd()
        try:
            with httpx.stream("GET", f"{server.url}/v1/subscribe", timeout=20) as response:
                event = next(response.iter_lines(), "") if response.status_code == 200 else ""
            question = httpx.post(f"{server.url}/v1/query", json={"text": "x"}, timeout=20)
            if (response.status_code, bool(event), question.status_code) != (200, True, 200):
                failures.append(f"{response.status_code} {question.status_code}")
        except httpx.HTTPError as error:
            failures.append(type(error).__name__)
        time.sleep(GAP_S)
    return failures


def main() -> int:
    """Try each crowd on a server of its own."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(IDLE + FILES, most), most))
    failed = False
    for crowd in (slow_readers, idle_connections):
        with tempfile.TemporaryDirectory(prefix="stream-car-attack-") as folder, ExitStack() as stack:
            server = stack.enter_context(Server(Path(folder), stderr=subprocess.DEVNULL))
            publish(server)
            failures = honest_failures(server, crowd(server, stack))
        failed = failed or bool(failures)
        print(f"{crowd.__name__}: {HONEST - len(failures)} of {HONEST} answered {' '.join(failures)}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())

"""Query workers that are started again whenever they end, each at its own address, and a proxy before two of them.

Promise: the first keeps its index between starts, the second never does, and the third every other time.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from deploy.local.processes import free_ports
from stream_car import AsyncClient
from tests.chaos.installation import Installation
from tests.chaos.workers import QueryWorker

SIZE = 3
TIMEOUT_S = 20.0


class Member:
    """One query worker of the fleet, with a client that never repeats a request."""

    def __init__(self, number: int, port: int, folder: Path) -> None:
        self.number = number
        self.port = port
        self.client = AsyncClient(f"http://127.0.0.1:{port}", retries=0, timeout_s=TIMEOUT_S)
        self.starts = 0
        self.process: QueryWorker | None = None
        self._folder = folder

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process is not None and self.process.is_running

    def start(self, installation: Installation) -> None:
        """Start it."""
        keeps_index = self.number == 0 or (self.number == 2 and self.starts % 2 == 0)
        self.starts += 1
        self.process = installation.query_worker(port=self.port, index=self._folder if keeps_index else None)


class Fleet:
    """All query workers of an installation."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        ports = free_ports(SIZE)
        self.members = [
            Member(number, ports[number], installation.folder / f"index-{number}") for number in range(SIZE)
        ]
        self.proxy: AsyncClient | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Fleet"]:
        """Open the proxy before the last two. Who has this starts the query workers."""
        proxy = RoundRobin([member.port for member in self.members[1:]])
        server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
        self.proxy = AsyncClient(
            f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", retries=0, timeout_s=TIMEOUT_S
        )
        try:
            yield self
        finally:
            server.close()
            proxy.close()
            await self.proxy.close()
            for member in self.members:
                await member.client.close()


class RoundRobin:
    """A proxy of TCP connections: each goes to the next server that accepts it."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = list(ports)
        self._writers: set[asyncio.StreamWriter] = set()

    def close(self) -> None:
        """Break every connection."""
        for writer in self._writers:
            writer.transport.abort()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self._writers.add(writer)
        for _ in self._ports:
            self._ports.append(self._ports.pop(0))
            with suppress(OSError):
                server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._ports[-1])
                self._writers.add(server_writer)
                await asyncio.gather(_forward(reader, server_writer), _forward(server_reader, writer))
                self._writers.discard(server_writer)
                break
        self._writers.discard(writer)
        writer.close()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
    writer.close()

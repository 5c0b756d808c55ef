"""A relay in front of a server that can cut connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Relay:
    """Forwards bytes in both directions. The next `cuts` answers are cut off before they arrive."""

    def __init__(self, url: str) -> None:
        self._server = urlsplit(url)
        self.url = ""
        self.cuts = 0
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Break every connection now."""
        for writer in self._writers:
            writer.transport.abort()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(OSError):
            server_reader, server_writer = await asyncio.open_connection(self._server.hostname, self._server.port)
            self._writers |= {writer, server_writer}
            await asyncio.gather(self._forward(reader, server_writer), self._answer(server_reader, writer))
        self._writers.discard(writer)
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65_536):
            if self.cuts:
                self.cuts -= 1
                self.cut()
                return
            writer.write(chunk)
            await writer.drain()
        writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def relaying(url: str) -> AsyncIterator[Relay]:
    """Run a relay in front of the server at this address, at an address of its own."""
    relay = Relay(url)
    server = await asyncio.start_server(relay.accept, "127.0.0.1", 0)
    relay.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield relay
    finally:
        server.close()
        relay.cut()

"""A relay before a server that cuts connections when it is told to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Relay:
    """Hands bytes on in both directions. `cuts` is how many answers are still to be cut off before they arrive."""

    def __init__(self, url: str) -> None:
        self.there = urlsplit(url)
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
            there_reader, there_writer = await asyncio.open_connection(self.there.hostname, self.there.port)
            self._writers |= {writer, there_writer}
            await asyncio.gather(self._hand_on(reader, there_writer), self._answer(there_reader, writer))
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

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def relaying(url: str) -> AsyncIterator[Relay]:
    """A relay before the server at that address, at an address of its own."""
    relay = Relay(url)
    server = await asyncio.start_server(relay.accept, "127.0.0.1", 0)
    relay.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield relay
    finally:
        server.close()
        relay.cut()

"""A kept connection to a service, with as little of a client as there can be."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

TOKEN = "the-token-of-the-benchmark"


def head(method: str, path: str) -> bytes:
    """The beginning of a request."""
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n".encode()


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, path: str, body: bytes, kind: str = "application/json") -> tuple[int, bytes]:
        """Status and body of the answer to a POST."""
        self.writer.write(
            head("POST", path) + f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )
        return await self._heard()

    async def get(self, path: str) -> bytes:
        """The body of the answer to a GET; anything but 200 is a failure."""
        self.writer.write(head("GET", path) + b"\r\n")
        status, answer = await self._heard()
        assert status == 200, answer
        return answer

    async def _heard(self) -> tuple[int, bytes]:
        said = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(said.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        return int(said.split(b" ", 2)[1]), await self.reader.readexactly(length)

    async def post(self, path: str, body: bytes, kind: str = "application/json") -> bytes:
        """The body of the answer to a POST; anything but 200 is a failure."""
        status, answer = await self.send(path, body, kind)
        assert status == 200, answer
        return answer


@asynccontextmanager
async def wired(port: int) -> AsyncIterator[Wire]:
    """A connection, open until the block ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()

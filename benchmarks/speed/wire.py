"""A persistent connection to a service, with as little client code as possible."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

TOKEN = "the-token-of-the-benchmark"


def head(method: str, path: str) -> bytes:
    """Return the request line and the first headers of a request."""
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n".encode()


class Wire:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, path: str, body: bytes, kind: str = "application/json") -> tuple[int, bytes]:
        """Send a POST; return the status and the body of the response."""
        self.writer.write(
            head("POST", path) + f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )
        return await self._read_response()

    async def get(self, path: str) -> bytes:
        """Send a GET; return the body of the response. Any status but 200 is a failure."""
        self.writer.write(head("GET", path) + b"\r\n")
        status, body = await self._read_response()
        assert status == 200, body
        return body

    async def _read_response(self) -> tuple[int, bytes]:
        headers = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(headers.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        return int(headers.split(b" ", 2)[1]), await self.reader.readexactly(length)

    async def post(self, path: str, body: bytes, kind: str = "application/json") -> bytes:
        """Send a POST; return the body of the response. Any status but 200 is a failure."""
        status, response = await self.send(path, body, kind)
        assert status == 200, response
        return response


@asynccontextmanager
async def connect(port: int) -> AsyncIterator[Wire]:
    """Open a connection until the block ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()

"""The receipts of a publication of any length, until its body is read and the answer can begin.

Promise: the answer is the JSON of `Published`, with a receipt for each document in order. Receipts are compressed, and
beyond `MEMORY_MAX` they are in a temporary file that has no name. Cost: about 2 us per receipt; on disk a few bytes.
"""

import zlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from tempfile import SpooledTemporaryFile
from types import TracebackType

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from stream_car.processing.receipts import Receipt

MEMORY_MAX = 256 << 10  # bytes, compressed
WHOLE_MAX = 1 << 20  # bytes of an answer that is sent at once
PIECE = 64 << 10  # bytes of a longer one that are in memory at a time
JSON = "application/json"


class ReceiptSpool:
    """Add the receipts, then take the answer. If an error ends the block before, the file is closed."""

    def __init__(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self._file = SpooledTemporaryFile(MEMORY_MAX)  # noqa: SIM115  closed by whoever has the answer
        self._compressor = zlib.compressobj(1)
        self._size = 0

    def __enter__(self) -> "ReceiptSpool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.close()

    def close(self) -> None:
        """Delete the receipts."""
        self._file.close()

    def add(self, receipts: Sequence[Receipt]) -> None:
        """Add the receipts of the next documents."""
        if not receipts:
            return
        separator = b"," if self._size else b""
        text = separator + msgspec.json.encode(receipts)[1:-1]
        self._size += len(text)
        self._outcomes.update(receipt.outcome for receipt in receipts)
        self._file.write(self._compressor.compress(text))

    def response(self) -> Response:
        """Return the answer."""
        self._file.write(self._compressor.flush())
        self._file.seek(0)
        outcomes = msgspec.json.encode(dict(sorted(self._outcomes.items())))
        head, tail = b'{"outcomes":%b,"receipts":[' % outcomes, b'],"converted":null}'
        size = len(head) + self._size + len(tail)
        if size <= WHOLE_MAX:
            with self._file:
                return Response(head + b"".join(self._pieces()) + tail, media_type=JSON)
        return LongAnswer(self, self._answer(head, tail), size)

    async def _answer(self, head: bytes, tail: bytes) -> AsyncIterator[bytes]:
        yield head
        for piece in self._pieces():
            yield piece
        yield tail

    def _pieces(self) -> Iterator[bytes]:
        decompressor = zlib.decompressobj()
        while compressed := decompressor.unconsumed_tail or self._file.read(PIECE):
            yield decompressor.decompress(compressed, PIECE)
        yield decompressor.flush()


class LongAnswer(StreamingResponse):
    """An answer that is decompressed while it is sent."""

    def __init__(self, spool: ReceiptSpool, pieces: AsyncIterator[bytes], size: int) -> None:
        super().__init__(pieces, media_type=JSON, headers={"Content-Length": str(size)})
        self._spool = spool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._spool.close()

"""An answer to a publication is the same however many receipts it has, and they are not all in memory."""

import tracemalloc
from collections.abc import Sequence

import msgspec
import pytest
from starlette.responses import StreamingResponse

from stream_car.http import receipt_spool
from stream_car.http.receipt_spool import ReceiptSpool
from stream_car.processing.receipts import Receipt
from stream_car.queries.answers import Published


def receipts(count: int, first: int = 0) -> list[Receipt]:
    return [Receipt(offset=n, outcome="accepted" if n % 3 else "duplicate", id=f"a{n}") for n in range(first, count)]


async def answer_of(parts: Sequence[Sequence[Receipt]]) -> bytes:
    spool = ReceiptSpool()
    for part in parts:
        spool.add(part)
    response = spool.response()
    if not isinstance(response, StreamingResponse):
        return bytes(response.body)
    answer = b"".join([bytes(piece) async for piece in response.body_iterator if not isinstance(piece, str)])
    spool.close()
    assert response.headers["content-length"] == str(len(answer))
    return answer


@pytest.mark.parametrize("whole_max", [1 << 20, 0])
@pytest.mark.parametrize("count", [0, 1, 1000])
async def test_the_answer_is_that_of_all_receipts_at_once(
    count: int, whole_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipt_spool, "WHOLE_MAX", whole_max)
    monkeypatch.setattr(receipt_spool, "MEMORY_MAX", 1000)
    given = receipts(count)

    answer = await answer_of([given[:1], [], given[1:400], given[400:]])

    assert answer == msgspec.json.encode(Published.of(given))


def test_memory_does_not_grow_with_the_receipts() -> None:
    spool = ReceiptSpool()
    tracemalloc.start()
    try:
        for first in range(0, 100_000, 1000):
            spool.add(receipts(first + 1000, first))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        spool.close()

    assert peak < 4 << 20  # the receipts are 18 MiB of JSON

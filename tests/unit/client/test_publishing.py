"""Documents on their way to the service: bounded batches, unchanged bytes, and no repeat that would change anything."""

from collections.abc import Iterator

import msgspec
import pytest

from stream_car import InvalidDocument, NewDocument, StreamCarError
from stream_car.client.publishing import BATCH_BYTES_MAX, BATCH_MAX, Batch, batches
from stream_car.client.retries import HttpResponse
from stream_car.codec import DEFAULT_LIMITS, Publishable
from stream_car.core.documents import Retraction
from stream_car.errors import InvalidRequest, Unavailable
from stream_car.http.problems import Problem
from stream_car.processing.receipts import Receipt
from stream_car.queries.answers import Published


def test_any_number_of_documents_is_sent_in_bounded_batches_as_they_arrive() -> None:
    taken = 0

    def endless() -> Iterator[dict[str, object]]:
        nonlocal taken
        while True:
            taken += 1
            yield {"id": f"d{taken}"}

    batch = batches(endless())
    first, second = next(batch), next(batch)

    assert len(first.documents) == len(second.documents) == BATCH_MAX
    assert taken == 2 * BATCH_MAX


def test_a_batch_is_bounded_in_bytes_too() -> None:
    large = b'{"id": "' + b"x" * 200_000 + b'"}'
    sent = list(batches([large] * 12))

    assert [len(batch.documents) for batch in sent] == [5, 5, 2]
    assert all(sum(map(len, batch.documents)) <= BATCH_BYTES_MAX for batch in sent)


@pytest.mark.parametrize("bytes_", [b"", b" ", b"{}\n", b'{"a":\n1}', b' {"id": "x"}', b"\r{}", b"\n\n"])
def test_bytes_that_would_not_stay_unchanged_in_lines_are_sent_alone(bytes_: bytes) -> None:
    assert list(batches([b"{}", bytes_, b"{}"])) == [
        Batch((b"{}",)),
        Batch((bytes_,), is_single=True),
        Batch((b"{}",)),
    ]


def test_of_a_document_that_is_too_long_only_enough_to_be_rejected_is_sent() -> None:
    [batch] = batches([b"x" * (10 * DEFAULT_LIMITS.document)])

    assert len(batch.documents[0]) == DEFAULT_LIMITS.document + 1


@pytest.mark.parametrize(
    "retraction",
    [
        Retraction(id="a"),
        {"id": "a", "retracted": True},
        '{"retracted" : true, "id": "a", "revision": null}',
        {"specversion": "1.0", "id": "e", "source": "s", "type": "t", "data": {"id": "a", "retracted": True}},
    ],
)
def test_a_retraction_of_the_stored_revision_is_never_repeated(retraction: Publishable) -> None:
    [batch] = batches([retraction])

    assert batch.is_single
    assert not batch.request.is_repeatable


@pytest.mark.parametrize(
    "document", [Retraction(id="a", revision=2), {"id": "a", "retracted": False}, b'"retracted', '{"retracted": [']
)
def test_everything_else_may_be_repeated(document: Publishable) -> None:
    [batch] = batches([document])

    assert batch.request.is_repeatable


def test_documents_of_every_kind_are_sent_as_json() -> None:
    document = NewDocument(id="a", type="claim", time="2024-01-31")
    [batch] = batches([document, {"id": "a", "type": "claim", "time": "2024-01-31"}])

    assert batch.documents[0] == batch.documents[1]
    assert batch.request.content_type == "application/x-ndjson"


def test_what_cannot_be_published_is_an_error_before_it_is_sent() -> None:
    with pytest.raises(StreamCarError, match="Cannot publish an int"):
        list(batches([5]))  # type: ignore[list-item]
    with pytest.raises(InvalidDocument):
        list(batches([{"id": "a", "x": object()}]))


RECEIPT = Receipt(offset=3, outcome="rejected", code="type_unknown", reason="No such type.")


def rejection(receipt: Receipt | None) -> HttpResponse:
    problem = Problem(
        type="urn:x", title="No", status=422, detail="No such type.", code="type_unknown", receipt=receipt
    )
    return HttpResponse(status=422, body=msgspec.json.encode(problem))


def test_the_receipt_of_a_single_rejected_document_is_in_the_problem() -> None:
    batch = Batch((b"{}",), is_single=True)

    assert batch.receipts(rejection(RECEIPT)) == (RECEIPT,)
    with pytest.raises(InvalidRequest):
        batch.receipts(rejection(None))


def test_the_receipts_of_several_documents_are_in_the_answer() -> None:
    answer = HttpResponse(status=200, body=msgspec.json.encode(Published.of([RECEIPT, RECEIPT])))

    assert Batch((b"{}", b"{}")).receipts(answer) == (RECEIPT, RECEIPT)
    with pytest.raises(Unavailable, match="cannot be read"):
        Batch((b"{}",)).receipts(HttpResponse(status=200, body=b"<html>"))

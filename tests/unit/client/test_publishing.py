"""Documents on their way to the service: bounded batches, nothing changed, nothing repeated that must not be."""

from collections.abc import Iterator

import pytest

from stream_car.client.publishing import BATCH_BYTES_MAX, BATCH_MAX, Batch, batches
from stream_car.codec import DEFAULTS
from stream_car.core.documents import Retraction


def test_any_number_of_documents_goes_in_bounded_batches_as_they_come() -> None:
    taken = 0

    def many() -> Iterator[dict[str, object]]:
        nonlocal taken
        while True:
            taken += 1
            yield {"id": f"d{taken}"}

    endless = batches(many())
    first, second = next(endless), next(endless)

    assert len(first.documents) == len(second.documents) == BATCH_MAX
    assert taken == 2 * BATCH_MAX


def test_a_batch_is_bounded_in_bytes_too() -> None:
    large = b'{"id": "' + b"x" * 200_000 + b'"}'
    found = list(batches([large] * 12))

    assert [len(batch.documents) for batch in found] == [5, 5, 2]
    assert all(sum(map(len, batch.documents)) <= BATCH_BYTES_MAX for batch in found)


@pytest.mark.parametrize("odd", [b"", b" ", b"{}\n", b'{"a":\n1}', b' {"id": "x"}', b"\r{}", b"\n\n"])
def test_bytes_that_would_not_stay_as_they_are_travel_alone(odd: bytes) -> None:
    assert list(batches([b"{}", odd, b"{}"])) == [Batch((b"{}",)), Batch((odd,), alone=True), Batch((b"{}",))]


def test_a_document_that_is_too_long_is_sent_as_far_as_its_refusal_needs() -> None:
    [batch] = batches([b"x" * (10 * DEFAULTS.document)])

    assert len(batch.documents[0]) == DEFAULTS.document + 1


@pytest.mark.parametrize(
    "said",
    [
        Retraction(id="a"),
        {"id": "a", "retracted": True},
        '{"retracted" : true, "id": "a", "revision": null}',
        {"specversion": "1.0", "id": "e", "source": "s", "type": "t", "data": {"id": "a", "retracted": True}},
    ],
)
def test_a_retraction_of_whatever_is_stored_is_never_repeated(said: Retraction | dict[str, object] | str) -> None:
    [batch] = batches([said])

    assert batch.alone
    assert not batch.ask.repeatable


@pytest.mark.parametrize("said", [Retraction(id="a", revision=2), {"id": "a", "retracted": False}, b'"retracted'])
def test_everything_else_may_be_repeated(said: Retraction | dict[str, object] | bytes) -> None:
    [batch] = batches([said])

    assert batch.ask.repeatable

"""Publishing any number of documents, in batches that the service takes.

Promise: a receipt for each document, in order, and each document's bytes arrive as they are. A batch may be
sent again: the service knows a repeat by id, revision and content and answers `duplicate`, so after a broken
connection the receipts of documents that had arrived say `duplicate` and nothing is published twice. The one
thing that must not be repeated, a retraction of whatever revision is then stored, travels alone and is never
sent again once it may have been heard.
"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from stream_car.api.messages import Receipts
from stream_car.client.retries import Ask, Heard, Plan, answer, failure, problem_of
from stream_car.codec import DEFAULTS, Publishable, Publishables, encode_document, iterate_documents
from stream_car.errors import StreamCarError
from stream_car.processing.receipts import Receipt
from stream_car.queries.answers import Published

PATH = "/v1/documents"
LINES = "application/x-ndjson"
ONE = "application/cloudevents+json"  # one document, whatever its bytes look like
BATCH_MAX = 1000
BATCH_BYTES_MAX = 1 << 20


class Batch(Struct, frozen=True):
    """Documents that travel together: as lines, or one alone."""

    documents: tuple[bytes, ...]
    alone: bool = False
    repeatable: bool = True

    @property
    def ask(self) -> Ask:
        """The request that publishes it."""
        body = self.documents[0] if self.alone else b"\n".join(self.documents)
        kind = ONE if self.alone else LINES
        return Ask(method="POST", path=PATH, body=body, kind=kind, repeatable=self.repeatable)


def batches(documents: Iterable[Publishable]) -> Iterator[Batch]:
    """The documents in bounded batches, in order; never more than one batch in memory."""
    waiting: list[bytes] = []
    size = 0
    for document in documents:
        sent = encode_document(document)[: DEFAULTS.document + 1]  # enough for the service to refuse it for its size
        is_open = _retracts_what_is_stored(sent)
        if is_open or not _is_line(sent):
            if waiting:
                yield Batch(tuple(waiting))
            yield Batch((sent,), alone=True, repeatable=not is_open)
            waiting, size = [], 0
            continue
        if waiting and size + len(sent) > BATCH_BYTES_MAX:
            yield Batch(tuple(waiting))
            waiting, size = [], 0
        waiting.append(sent)
        size += len(sent) + 1
        if len(waiting) == BATCH_MAX:
            yield Batch(tuple(waiting))
            waiting, size = [], 0
    if waiting:
        yield Batch(tuple(waiting))


def publish(documents: Publishables) -> Plan[Published]:
    """Batch after batch. What was published before an error stays so; a note at the error counts it."""
    receipts: list[Receipt] = []
    try:
        for batch in batches(iterate_documents(documents)):
            receipts += _receipts((yield batch.ask), batch)
    except StreamCarError as error:
        if receipts:
            error.add_note(f"{len(receipts)} documents before it were taken, so publishing all again is safe")
        raise
    return Published(receipts=tuple(receipts))


def _receipts(heard: Heard, batch: Batch) -> tuple[Receipt, ...]:
    if heard.status == 422 and batch.alone:
        said = problem_of(heard)
        if said is None or said.receipt is None:
            raise failure(heard)
        return (said.receipt,)
    return answer(heard, Receipts).receipts


def _is_line(sent: bytes) -> bool:
    """Whether the bytes stay as they are when they are one line among others."""
    return b"\n" not in sent and sent.strip(b" \t\r") == sent != b""


def _retracts_what_is_stored(sent: bytes) -> bool:
    if b'"retracted"' not in sent:
        return False
    try:
        said: object = msgspec.json.decode(sent)
    except (msgspec.DecodeError, RecursionError):
        return False
    while isinstance(said, dict) and isinstance(said.get("data"), dict) and "specversion" in said:
        said = said["data"]
    return isinstance(said, dict) and said.get("retracted") is True and said.get("revision") is None

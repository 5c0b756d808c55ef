"""Publications in a publisher's own format: converted first, then published like any others.

Promise: documents are durable before what the feed has seen is committed, so that a crash repeats and never skips. A
piece that cannot be converted changes nothing and does not stop the others, unless the call is strict. Cost: that of
the conversion, in memory.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from io import BytesIO
from typing import Protocol

from stream_car.codec import encode
from stream_car.core.rules import Ruleset
from stream_car.errors import DocumentsRejected, InvalidDocument
from stream_car.feeds import FeedState, RecordState, find_format
from stream_car.feeds.splitting import BEGINNING
from stream_car.processing.receipts import Receipt
from stream_car.processing.strict import require_strict
from stream_car.queries.answers import Converted, Published, UnreadablePiece


class FeedMemory(FeedState, Protocol):
    """What a feed has seen, and what is added to it."""

    def add(self, states: Mapping[str, RecordState]) -> None:
        """Add the states of records."""


async def publish_feed(
    name: str,
    contents: Sequence[bytes],
    memory: FeedMemory,
    publish: Callable[[Sequence[bytes]], Awaitable[Sequence[Receipt]]],
    *,
    strict_rules: Ruleset | None,
    rest: Callable[[], Awaitable[None]],
) -> Published:
    """Convert contents of files and publish their documents; with `strict_rules`, all or none.

    Args:
        name: the name of the format.
        contents: of files.
        memory: what the feed has seen; the caller commits it.
        publish: stores documents and returns their receipts.
        strict_rules: the rules to be strict about.
        rest: is awaited between pieces, so that others get their turn.
    """
    form = find_format(name)
    documents: list[bytes] = []
    unreadable: list[UnreadablePiece] = []
    records = known = 0
    for content in contents:
        for piece in form.split(BytesIO(content), "", BEGINNING):
            try:
                if piece.rejected is not None:
                    raise piece.rejected
                conversion = form.convert(memory, piece.data)
            except InvalidDocument as error:
                unreadable.append(
                    UnreadablePiece(where=piece.where, code=error.code, reason=error.reason, id=error.document_id)
                )
                continue
            memory.add(conversion.states)
            documents += map(encode, conversion.documents)
            records, known = records + conversion.records, known + conversion.known
            await rest()
    if strict_rules is not None:
        if unreadable:
            problems = tuple(f"{piece.where} ({piece.code}): {piece.reason}" for piece in unreadable)
            raise DocumentsRejected("Nothing was published, because not all could be read.", problems, code="strict")
        require_strict(documents, strict_rules)
    receipts = await publish(documents) if documents else ()
    converted = Converted(format=form.name, records=records, known=known, unreadable=tuple(unreadable))
    return Published.of(receipts, converted)

"""What a replay of rejected input sends, and what it reports."""

from collections.abc import Mapping

from msgspec import Struct

from stream_car.errors import InvalidDocument
from stream_car.ports import Message
from stream_car.processing.receipts import Receipt
from stream_car.queries.answers import Replayed


class ReplayPlan(Struct):
    """What to send, by the offset of the rejected input, and what else there is to report about each."""

    answers: dict[int, Replayed] = {}
    messages: dict[int, Message] = {}

    def add(self, offset: int, message: Message, rejection: InvalidDocument | None, sent_as: int | None = None) -> None:
        """Add an input. It is not sent if it would be rejected again, or was sent before as record `sent_as`."""
        if sent_as is not None:
            self.answers[offset] = Replayed(offset=offset, outcome="replayed_before", at=sent_as)
        elif rejection is not None:
            self.answers[offset] = Replayed(
                offset=offset, outcome="rejected", code=rejection.code, reason=rejection.reason
            )
        else:
            self.answers[offset] = Replayed(offset=offset, outcome="replayed")
            self.messages[offset] = message

    def report(self, receipts: Mapping[int, Receipt]) -> tuple[Replayed, ...]:
        """Return the answers, with the receipts of what was sent."""
        for offset, receipt in receipts.items():
            self.answers[offset] = Replayed(offset=offset, outcome="replayed", at=receipt.offset, receipt=receipt)
        return tuple(self.answers.values())

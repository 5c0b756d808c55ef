"""Places in the streams of changes, as text: one parser and one writer for each."""

from msgspec import Struct

from stream_car.errors import InvalidRequest

CURSOR_HINT = "Omit the cursor to begin with a snapshot of now."
DIGITS_MAX = 16


class Cursor(Struct, frozen=True):
    """After which change of each shard a subscription continues: `GENERATION:NUMBER.NUMBER...@MARK`.

    The mark names a record of the log, see `ports.MarkedLog`: the cursor is good for every log that contains it. Topics
    of Kafka have no marks; there the part from `@` on is missing.
    """

    generation: str
    numbers: tuple[int, ...]
    mark: str = ""

    def __str__(self) -> str:
        text = f"{self.generation}:{'.'.join(map(str, self.numbers))}"
        return f"{text}@{self.mark}" if self.mark else text

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Read a cursor. Raises `InvalidRequest` (`cursor`)."""
        generation, colon, rest = text.rpartition(":")
        rest, _, mark = rest.partition("@")
        numbers = rest.split(".")
        if not (colon and generation and all(map(_is_number, numbers))):
            raise InvalidRequest("cursor", f"A cursor is GENERATION:NUMBER, as events carry it. {CURSOR_HINT}")
        return cls(generation, tuple(map(int, numbers)), mark)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX

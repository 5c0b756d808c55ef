"""Places in the streams of changes, as text: one parser and one writer for each."""

from msgspec import Struct

from stream_car.errors import InvalidRequest

CURSOR_HINT = "Omit the cursor to begin with a snapshot of now."
DIGITS_MAX = 16


class Cursor(Struct, frozen=True):
    """After which change of each shard a subscription continues: `GENERATION:NUMBER.NUMBER...`."""

    generation: str
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.generation}:{'.'.join(map(str, self.numbers))}"

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Read a cursor. Raises `InvalidRequest` (`cursor`)."""
        generation, colon, rest = text.rpartition(":")
        numbers = rest.split(".")
        if not (colon and generation and all(map(_is_number, numbers))):
            raise InvalidRequest("cursor", f"A cursor is GENERATION:NUMBER, as events carry it. {CURSOR_HINT}")
        return cls(generation, tuple(map(int, numbers)))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX

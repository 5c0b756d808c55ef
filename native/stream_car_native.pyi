"""The codec of Stream-CAR for ordinary input, compiled. See `stream_car/native.py`."""

from collections.abc import Callable
from typing import Generic, TypeVar

D = TypeVar("D")

VERSION: str
IS_ENABLED: bool

class DocumentDecoder(Generic[D]):
    def __init__(
        self,
        document: type[D],
        *,
        document_max: int,
        id_max: int,
        line_max: int,
        scope_value_max: int,
        text_max: int,
    ) -> None: ...
    def decode(self, value: bytes) -> tuple[D, bytes] | None: ...

class TermJoiner:
    def __init__(self, term_of: Callable[[str], str], *, words_max: int) -> None: ...
    def join(self, text: str) -> tuple[str, int] | None: ...

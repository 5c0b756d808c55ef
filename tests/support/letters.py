"""An encoder for tests: no model, the same vectors everywhere."""

from array import array
from collections.abc import Sequence
from math import sqrt


class Letters:
    """Implements `ports.Encoder`: how often each letter occurs in a text, as a vector of length one."""

    name = "letters"

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        vectors = []
        for text in texts:
            counts = [text.lower().count(chr(97 + letter)) for letter in range(26)]
            length = sqrt(sum(count * count for count in counts)) or 1
            vectors.append(array("f", [count / length for count in counts]).tobytes())
        return vectors

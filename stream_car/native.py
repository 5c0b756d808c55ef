"""The compiled form of parts of the codec, if the package `stream-car-native` is installed.

Promise: each function returned from here gives exactly what its twin in Python gives, or `None`; then the caller asks
the twin. Without the package, or with STREAM_CAR_NATIVE=0, there are no functions.
"""

from collections.abc import Callable
from typing import TypeVar

from stream_car.errors import StreamCarError
from stream_car.version import __version__

D = TypeVar("D")

try:
    import stream_car_native as extension
except ModuleNotFoundError:
    IS_USED = False
else:
    if __version__ != extension.VERSION:
        raise StreamCarError(
            f"stream-car-native {extension.VERSION} is installed beside stream-car {__version__}. "
            "Install the same version of both, or uninstall stream-car-native."
        )
    IS_USED = extension.IS_ENABLED


def document_decoder(
    document: type[D], *, document_max: int, id_max: int, line_max: int, scope_value_max: int, text_max: int
) -> Callable[[bytes], tuple[D, bytes] | None] | None:
    """Return a function from bytes to a value of the class `document`, and its content digest.

    The limits are in bytes.
    """
    if not IS_USED:
        return None
    return extension.DocumentDecoder(
        document,
        document_max=document_max,
        id_max=id_max,
        line_max=line_max,
        scope_value_max=scope_value_max,
        text_max=text_max,
    ).decode


def term_joiner(term_of: Callable[[str], str], *, words_max: int) -> Callable[[str], tuple[str, int] | None] | None:
    """Return a function from a text in ASCII to its joined terms and their number.

    `term_of` is called once for each word, as long as no more than `words_max` are known.
    """
    return extension.TermJoiner(term_of, words_max=words_max).join if IS_USED else None

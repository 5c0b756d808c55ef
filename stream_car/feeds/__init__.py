"""Publishers' own formats, converted to documents.

Promise: each format is a pure function `(state, bytes) -> conversion`, without clock or environment. Input that
it cannot convert raises `InvalidDocument` and leaves the state unchanged, so a broken piece never changes
anything. `FORMATS` lists the formats by name.
"""

from stream_car.feeds.editions import Conversion, Edition, FeedState, RecordState
from stream_car.feeds.formats import FORMATS, Format, find_format, guess_format

__all__ = ["FORMATS", "Conversion", "Edition", "FeedState", "Format", "RecordState", "find_format", "guess_format"]

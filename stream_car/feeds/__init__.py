"""Publishers' own formats, read into documents.

Promise: each format is a pure function `(position, bytes) -> (documents, position)` without clock or
environment. What it cannot read raises `InvalidDocument` and leaves the position as it was, so a broken
piece never changes anything. `FORMATS` lists them by name.
"""

from stream_car.feeds.editions import Converted, Edition, Position, Seen
from stream_car.feeds.formats import FORMATS, Format, format_called

__all__ = ["FORMATS", "Converted", "Edition", "Format", "Position", "Seen", "format_called"]

"""Where a subscription continues: after which event, kept in a file if one is named.

Promise: the bookmark moves when an event has been dealt with, never before, and never into the middle of a snapshot. So
a program that ends at any point, killed or not, and continues from the bookmark misses nothing and may receive a
little twice. The file is replaced atomically.
"""

from pathlib import Path

from stream_car.api.requests import CURSOR_MAX
from stream_car.errors import InvalidRequest
from stream_car.files.atomic import replace_file
from stream_car.subscriptions.cursor import CURSOR_HINT
from stream_car.subscriptions.events import Event, Reset, SnapshotBegin, SnapshotEnd


class Bookmark:
    """The cursor of the last event that was dealt with."""

    def __init__(self, after: str | None, path: Path | None) -> None:
        self.path = path
        self.cursor = after if after is not None or path is None else _read(path)
        self.is_in_snapshot = False
        self._saved = self.cursor
        self._handed_out: Event | None = None

    def hand_out(self, event: Event) -> None:
        """Note the event that the program receives now."""
        self._handed_out = event

    def settle(self) -> None:
        """Move past the event that was handed out last: it has been dealt with."""
        if self._handed_out is not None:
            self.move_past(self._handed_out)
            self._handed_out = None

    def drop(self) -> None:
        """Forget the event that was handed out last: it will be received again."""
        self._handed_out = None

    def move_past(self, event: Event) -> None:
        """Continue after this event."""
        if isinstance(event, Reset | SnapshotBegin):
            self.is_in_snapshot = True
        elif isinstance(event, SnapshotEnd):
            self.is_in_snapshot = False
        if event.cursor is not None and not self.is_in_snapshot:
            self.cursor = event.cursor

    def explain(self, error: InvalidRequest) -> InvalidRequest:
        """Return the error, naming the file if the cursor came from it."""
        if self.path is None or not error.code.startswith("cursor"):
            return error
        reason = str(error).removesuffix(CURSOR_HINT).rstrip()
        return InvalidRequest(error.code, f"{self.path}: {reason} Remove {self.path}, or name another file.")

    def save(self) -> None:
        """Write the cursor to the file if it has moved."""
        if self.path is None or self.cursor is None or self.cursor == self._saved:
            return
        try:
            replace_file(self.path, f"{self.cursor}\n".encode("ascii"))
        except OSError as error:
            raise InvalidRequest("cursor", f"The cursor cannot be saved in {self.path}: {error.strerror}.") from error
        self._saved = self.cursor


def _read(path: Path) -> str | None:
    try:
        cursor = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest("cursor", f"The cursor in {path} cannot be read: {error}.") from error
    if len(cursor) > CURSOR_MAX or len(cursor.split()) > 1:
        raise InvalidRequest("cursor", f"{path} does not contain a cursor. Remove it, or name another file.")
    return cursor or None

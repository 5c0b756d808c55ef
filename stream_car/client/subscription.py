"""A subscription from the client's side: bytes to events, and the place to go on from.

Promise: the place moves when an event has been dealt with, never before, and never into the middle of a
snapshot; so whoever ends at any point, killed or not, and goes on from the place misses nothing and may hear
a little twice. In a file the place is replaced atomically.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from stream_car.api.json import read
from stream_car.api.messages import CURSOR_MAX
from stream_car.client.retries import Ask, Heard, Lost, Patience, asked_pause, failure, pause_after, unanswered
from stream_car.errors import InvalidRequest, StreamCarError, Unavailable
from stream_car.queries.answers import Told
from stream_car.subscriptions.events import (
    ActiveDocument,
    DocumentChange,
    Event,
    Reset,
    ScopeState,
    SnapshotBegin,
    SnapshotEnd,
    View,
)


class Events:
    """Server-sent events out of bytes, however these are cut."""

    def __init__(self, view: View) -> None:
        self._is_scope = view == "scope"
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that these bytes complete; kinds of events that are not known are left out."""
        *whole, self._rest = (self._rest + chunk).split(b"\n\n")
        for block in whole:
            said = self._event(block)
            if said is not None:
                yield said

    def _event(self, block: bytes) -> Event | None:
        fields = dict(_field(line) for line in block.split(b"\n"))
        cursor = fields[b"id"].decode() if b"id" in fields else None
        data = fields.get(b"data")
        if data is None:
            return Event("heartbeat", None, cursor)
        try:
            return self._told(fields.get(b"event", b"").decode(), data, cursor)
        except (ValueError, KeyError, TypeError) as error:
            raise Unavailable(f"an event cannot be read ({error}); is this client older than the service?") from None

    def _told(self, name: str, data: bytes, cursor: str | None) -> Event | None:
        if name == "change":
            return Event("change", read(data, Told) if self._is_scope else read(data, DocumentChange), cursor)
        if name == "snapshot":
            return Event("snapshot", read(data, ScopeState) if self._is_scope else read(data, ActiveDocument), cursor)
        if name == "snapshot-begin":
            return Event("snapshot-begin", read(data, SnapshotBegin), cursor)
        if name == "snapshot-end":
            return Event("snapshot-end", read(data, SnapshotEnd), cursor)
        if name == "reset":
            return Event("reset", read(data, Reset), cursor)
        return None


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name, value.removeprefix(b" ")


class Place:
    """Behind which event to go on, kept in a file if one is named."""

    def __init__(self, after: str | None, path: Path | None) -> None:
        self.path = path
        self.cursor = after if after is not None or path is None else _kept(path)
        self.is_in_snapshot = False
        self._saved = self.cursor

    def passed(self, said: Event) -> None:
        """An event has been dealt with."""
        if said.event in ("reset", "snapshot-begin"):
            self.is_in_snapshot = True
        elif said.event == "snapshot-end":
            self.is_in_snapshot = False
        if said.cursor is not None and not self.is_in_snapshot:
            self.cursor = said.cursor

    def refused(self, error: InvalidRequest) -> InvalidRequest:
        """The error in the words of whoever keeps the place in a file."""
        if self.path is None or not error.code.startswith("cursor"):
            return error
        why = str(error).partition(";")[0]
        return InvalidRequest(error.code, f"{self.path}: {why}; remove {self.path}, or name another file")

    def save(self) -> None:
        """Put it into the file, if it moved."""
        if self.path is None or self.cursor is None or self.cursor == self._saved:
            return
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with beside.open("w", encoding="ascii") as file:
                file.write(self.cursor + "\n")
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        except OSError as error:
            raise InvalidRequest("cursor", f"the cursor cannot be kept in {self.path}: {error.strerror}") from error
        self._saved = self.cursor


def _kept(path: Path) -> str | None:
    try:
        said = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest("cursor", f"the cursor in {path} cannot be read: {error}") from error
    if len(said) > CURSOR_MAX or len(said.split()) > 1:
        raise InvalidRequest("cursor", f"{path} holds no cursor; remove it, or name another file")
    return said or None


class Following:
    """A subscription across its connections: what to ask for, what was heard, how long to wait."""

    def __init__(self, ask: Ask, view: View, place: Place, patience: Patience, url: str) -> None:
        self.place = place
        self._ask = ask
        self._view = view
        self._patience = patience
        self._url = url
        self._events = Events(view)
        self._last: Event | None = None
        self._failures = 0
        self._has_begun = False

    @property
    def path(self) -> str:
        """Where the stream is."""
        return self._ask.path

    @property
    def headers(self) -> dict[str, str]:
        """What a request for the stream carries."""
        going_on = {"Last-Event-ID": self.place.cursor} if self.place.cursor is not None else {}
        return {"Accept": "text/event-stream", **going_on}

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """The parameters of a request: a snapshot that was told whole is not asked for again."""
        if not self._has_begun or self.place.cursor is None or self.place.is_in_snapshot:
            return self._ask.parameters
        return tuple((name, value) for name, value in self._ask.parameters if name != "snapshot")

    def opened(self) -> None:
        """The stream begins, or goes on."""
        self._events = Events(self._view)
        self._has_begun = True

    def taken(self, chunk: bytes) -> Iterator[Event]:
        """The events that have arrived; take the next one when the last has been dealt with."""
        self._failures = 0
        for said in self._events.feed(chunk):
            if said.data is None:
                self.place.passed(said)
                continue
            self._last = said
            yield said

    def settle(self) -> None:
        """The event handed out last has been dealt with."""
        if self._last is not None:
            self.place.passed(self._last)
            self._last = None

    def pause(self, why: Heard | Lost | None) -> float:
        """How long to wait before asking again. Raises where that is of no use."""
        self._last = None
        if isinstance(why, Heard) and why.status not in (429, 503):
            raise self._refused(why)
        if not self._has_begun and self._failures >= self._patience.retries:
            raise failure(why) if isinstance(why, Heard) else unanswered(self._url, why.reason if why else "it ended")
        self._failures += 1
        return max(pause_after(self._failures - 1), asked_pause(why.retry_after) if isinstance(why, Heard) else 0.0)

    def _refused(self, heard: Heard) -> StreamCarError:
        error = failure(heard)
        return self.place.refused(error) if isinstance(error, InvalidRequest) else error

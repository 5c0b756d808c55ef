"""A consumer of events that keeps what it makes of them, and its cursor, together in one SQLite file.

Promise: after a crash at any point, the file holds what the events up to its cursor made of it, and nothing else; the
next run continues there. Asking for the next event commits what was written for the last one. A service that does not
answer, at the start or later, is waited for.
"""

import logging
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from stream_car.adapters.sqlite.event_state import EventState
from stream_car.api.subscription import Subscription
from stream_car.client.retries import pause_after
from stream_car.errors import Overloaded, Unavailable
from stream_car.subscriptions.events import Event

LOG = logging.getLogger(__name__)


class Consumer:
    """The events of a subscription, one at a time, each in a transaction of `state`: iterate over it.

    `state` is a connection to the file, for tables of your own. A `SnapshotBegin` means: empty them, for what follows
    is all that holds. If the loop ends by an exception or a `break`, what was written for the last event is rolled
    back, unless `keep` was called, and the event comes again.
    """

    def __init__(self, subscription: Subscription, path: Path | str) -> None:
        """Open the file. Nothing is requested yet.

        Args:
            subscription: what `subscribe` returned. It continues from the cursor in the file; if it selects something
                else than the one before, it begins with a snapshot.
            path: the SQLite file, which is created if need be.
        """
        self._subscription = subscription
        self._file = EventState(Path(path), subscription.request)
        self._event: Event | None = None

    @property
    def state(self) -> sqlite3.Connection:
        """The connection to the file."""
        return self._file.connection

    def __enter__(self) -> "Consumer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Event]:
        failures = 0
        try:
            while True:
                try:
                    for event in self._events():
                        failures = 0
                        yield event
                    return
                except (Unavailable, Overloaded) as error:
                    self._file.roll_back()
                    if not failures:
                        LOG.warning("%s Waiting for it.", error)
                    failures += 1
                    time.sleep(pause_after(failures))
        finally:
            self._file.roll_back()

    def keep(self) -> None:
        """Commit what was written for the last event: it has been dealt with."""
        event, self._event = self._event, None
        if event is not None:
            self._file.settle(event)

    def close(self) -> None:
        """Close the file. The last event comes again unless it was kept."""
        self._file.close()

    def _events(self) -> Iterator[Event]:
        with self._subscription.continued(self._file.cursor) as events:
            for event in events:
                self._event = event
                self._file.begin()
                yield event
                self.keep()

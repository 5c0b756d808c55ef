"""What an engine tells of itself and of changes, beside its answers.

Promise: as of the last record applied, by whichever generation is in force; nothing here changes anything
but what `forget_changes` lets go of.
"""

from collections.abc import Sequence
from pathlib import Path

from stream_car.core.rules import Ruleset
from stream_car.core.stored import StoredDocument
from stream_car.local.projection import Built
from stream_car.local.run_sync import at_once
from stream_car.processing.fold import CHANGES
from stream_car.processing.headers import Header
from stream_car.queries.cache import AnswerCache
from stream_car.subscriptions.events import Filter, Notice
from stream_car.subscriptions.subscription import Subscription


class Tellings:
    """Where an engine stands, and the stream of its changes."""

    _built: Built

    @property
    def ruleset(self) -> Ruleset:
        """The rules that answers go by."""
        return self._built.ruleset

    @property
    def generation(self) -> str:
        """Names the rules and the format that the state was built with."""
        return self._built.shard.generation

    @property
    def next_offset(self) -> int:
        """How many records of the log have been applied."""
        return self._built.next_offset

    @property
    def lag(self) -> int:
        """How many records of the log have not been applied yet."""
        return self._built.end - self.next_offset

    @property
    def index_lag(self) -> int:
        """How many records would be fed to the index again after a crash."""
        return self.next_offset - self._built.index.committed

    @property
    def cache(self) -> AnswerCache | None:
        """The answers that are remembered."""
        return self._built.queries.cache

    @property
    def built_in(self) -> Path:
        """Where what follows from the log is kept."""
        return self._built.folder

    def standing(self, name: str) -> StoredDocument | None:
        """What is known of an id: the revision that stands, whether it is retracted or waits."""
        return self._built.held(name)

    def header(self) -> Header:
        """What the engine counts: documents, those that wait, outcomes."""
        return self._built.header()

    def last_change(self) -> int:
        """The number of the last change told."""
        return at_once(self._built.journal.last(0))

    def deleted_up_to(self) -> int:
        """Changes up to this number may no longer be kept."""
        return at_once(self._built.journal.deleted_up_to(0))

    def forget_changes(self, keep: int, limit: int) -> bool:
        """Let go of changes beyond the last `keep`, at most `limit` now; whether there may be more to let go of."""
        upto = self.last_change() - keep
        return (
            upto > self.deleted_up_to() and at_once(self._built.journal.delete_up_to(0, CHANGES, upto, limit)) == limit
        )

    def subscription(self, selection: Filter, *, cursor: Sequence[int], with_snapshot: bool) -> Subscription:
        """A place in the stream of changes; `pull` from it."""
        return Subscription(self._built.sources(), selection, cursor=cursor, with_snapshot=with_snapshot)

    def pull(self, subscription: Subscription) -> tuple[list[Notice], bool]:
        """The next notices, and whether the subscription has caught up; one of another generation is to begin anew."""
        if subscription.generation == self.generation:
            subscription.sources = self._built.sources()  # the same rules may have been built anew meanwhile
        return at_once(subscription.step()), at_once(subscription.has_caught_up())

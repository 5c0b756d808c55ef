"""A cache of answers. Each cached answer is validated before it is given again.

Promise: an answer from the cache equals what would be computed at the present cut. That holds under two conditions:
no key that its Stage 2 read has been written since, and Stage 1 finds the same anchors in the same order. The result
of Stage 1 is not predicted: if the index has changed, the search runs again, and the answer is dropped only if its
anchors or their order differ. Every applied record must be reported to `invalidate`; after a gap the cache is emptied.
Cost: per applied record, one look-up for each key that it wrote. Per hit, one read of the shard's header, one
comparison per key, and one search if the index has changed. Memory: at most `bytes_max`, by estimate.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stream_car.core.stored import Scope
from stream_car.ports import AnchorIndex, Pairs
from stream_car.queries.answers import Answer, Evidence
from stream_car.queries.retrieval import Question, replay_plan, with_probabilities
from stream_car.queries.shards import Overview
from stream_car.queries.snapshot import Snapshot
from stream_car.ranking.anchor_order import AnchorPlan, AnchorSummary, Hit, plan_anchors
from stream_car.ranking.settings import SETTINGS

BYTES_MAX = 64 << 20
EVIDENCE_BYTES = 1300  # a document in an answer and the path to it, without its text
KEY_BYTES = 300  # a key that an answer read
HIT_BYTES = 150  # a hit of a search


class CachedAnswer(Struct):
    """An answer and what it was computed from: searches and keys, as of a cut and a version of the index."""

    answer: Answer
    cut: tuple[int, ...]
    index_version: int
    has_links: bool
    searches: Mapping[tuple[str, int, Pairs], Sequence[Hit]]
    plan: AnchorPlan
    keys: tuple[bytes, ...]
    size: int
    fingerprints: tuple[object, ...] = ()  # of the values of `keys`; only used where writes are not reported


class _TrackedKey(Struct, gc=False):
    """A key that cached answers read."""

    last_write: int  # offset of the last record that wrote it while tracked; -1 if there was none
    readers: int  # how many cached answers read it


class AnswerCache:
    """The answers of one shard and one generation. The least recently used is evicted first."""

    def __init__(self, bytes_max: int = BYTES_MAX, *, superseded_bonus: float = SETTINGS.superseded_bonus) -> None:
        self.bytes_max = bytes_max
        self.superseded_bonus = superseded_bonus
        self.size = 0
        self.hits = 0
        self.misses = 0
        self._answers: dict[Question, CachedAnswer] = {}  # the most recently used is the last
        self._tracked_keys: dict[bytes, _TrackedKey] = {}
        self._next_offset = 0

    def __len__(self) -> int:
        return len(self._answers)

    def invalidate(self, offset: int, touched: Iterable[bytes]) -> None:
        """Report that the record at `offset` was applied and wrote these keys."""
        if offset != self._next_offset:
            self.clear()
        self._next_offset = offset + 1
        tracked_keys = self._tracked_keys
        for key in touched:
            if key in tracked_keys:
                tracked_keys[key].last_write = offset

    def clear(self) -> None:
        """Forget every answer."""
        self._answers.clear()
        self._tracked_keys.clear()
        self.size = 0

    async def find(self, question: Question, snapshot: Snapshot, index: AnchorIndex) -> Answer | None:
        """The answer to this question as of the snapshot's cut; `None` if it is not cached or no longer valid."""
        cached = self._answers.pop(question, None)
        if cached is not None:
            self.size -= cached.size
            is_valid = False
            try:
                overview = await snapshot.overview()
                is_valid = await self._is_current(cached, overview, snapshot) and await self._revalidate_search(
                    question, cached, snapshot, index
                )
            finally:
                if not is_valid:
                    self._untrack(cached)
            if is_valid:
                self._put(question, cached)
                self.hits += 1
                return _with_current_cut(cached, overview, snapshot)
        self.misses += 1
        return None

    async def _is_current(self, cached: CachedAnswer, overview: Overview, snapshot: Snapshot) -> bool:
        """Return whether no key that Stage 2 read has been written since."""
        if snapshot.cut != (self._next_offset,) or cached.has_links != overview.has_links:
            return False
        tracked_keys, [cut] = self._tracked_keys, cached.cut
        return all((key := tracked_keys.get(name)) is not None and key.last_write < cut for name in cached.keys)

    async def _revalidate_search(
        self, question: Question, cached: CachedAnswer, snapshot: Snapshot, index: AnchorIndex
    ) -> bool:
        """Search again if the index has changed. Return whether the anchors and their order are the same.

        If they are, the cached answer gets the new scores.
        """
        if await index.version() == cached.index_version:
            return True
        searches = {
            (text, depth, within): await index.search(text, depth, snapshot.yield_hook, within=within)
            for text, depth, within in cached.searches
        }
        if searches != cached.searches:
            plan = self._replay(question, cached, searches)
            if plan is None:
                return False
            cached.searches, cached.plan = searches, plan
            cached.answer = await with_probabilities(cached.answer, plan, snapshot.yield_control)
        cached.index_version = await index.version()
        return True

    def _replay(
        self, question: Question, cached: CachedAnswer, searches: Mapping[tuple[str, int, Pairs], Sequence[Hit]]
    ) -> AnchorPlan | None:
        """The plan that follows from new hits, if it shows the same anchors in the same order as the cached one."""
        if len(searches) != 1 or question.budget is not None:
            return None
        [hits], [old_hits] = searches.values(), cached.searches.values()
        remaining = {hit.id for hit in cached.plan.remaining}
        # A hit that was neither examined nor remained is not part of the corpus: its summary is None.
        summaries: dict[str, AnchorSummary | None] = {hit.id: None for hit in old_hits if hit.id not in remaining}
        summaries |= {summary.anchor: summary for _, summary in cached.plan.examined}
        steps = plan_anchors(hits, k=question.k, depth=question.depth, superseded_bonus=self.superseded_bonus)
        plan = replay_plan(steps, summaries)
        return plan if plan is not None and _outline(plan) == _outline(cached.plan) else None

    async def keep(
        self, question: Question, answer: Answer, plan: AnchorPlan, snapshot: Snapshot, index: AnchorIndex
    ) -> None:
        """Cache an answer of this snapshot, unless it is too large or state or index have changed meanwhile."""
        overview = await snapshot.overview()
        size = _estimated_size(answer, len(snapshot.values), sum(map(len, snapshot.searches.values())))
        if len(snapshot.index_versions) != 1 or size > self.bytes_max // 4:
            return
        searches, keys = dict(snapshot.searches), tuple(snapshot.values)
        cached = CachedAnswer(
            answer, snapshot.cut, next(iter(snapshot.index_versions)), overview.has_links, searches, plan, keys, size
        )
        if not self._track(cached, snapshot):
            return
        self._put(question, cached)
        while self.size > self.bytes_max:
            self._remove(next(iter(self._answers)))

    def _put(self, question: Question, cached: CachedAnswer) -> None:
        self._remove(question)  # another task may have put one meanwhile
        self.size += cached.size
        self._answers[question] = cached

    def _remove(self, question: Question) -> None:
        cached = self._answers.pop(question, None)
        if cached is not None:
            self.size -= cached.size
            self._untrack(cached)

    def _track(self, cached: CachedAnswer, snapshot: Snapshot) -> bool:
        """Track the writes to the keys of an answer. Return whether none can have been missed since its cut."""
        [cut] = cached.cut
        if cut < self._next_offset:
            return False
        if cut > self._next_offset:  # records before the cut were not reported; older answers may be outdated by them
            self.clear()
            self._next_offset = cut
        for key in cached.keys:
            self._tracked_keys.setdefault(key, _TrackedKey(-1, 0)).readers += 1
        return True

    def _untrack(self, cached: CachedAnswer) -> None:
        """Stop tracking the keys that only this answer read."""
        tracked_keys = self._tracked_keys
        for name in cached.keys:
            key = tracked_keys.get(name)
            if key is not None:
                key.readers -= 1
                if not key.readers:
                    del tracked_keys[name]


def _outline(plan: AnchorPlan) -> tuple[list[str], list[str], bool]:
    """What an answer shows of a plan, apart from scores and probabilities."""
    return [summary.anchor for _, summary in plan.examined], [hit.id for hit in plan.remaining], plan.is_settled


def _with_current_cut(cached: CachedAnswer, overview: Overview, snapshot: Snapshot) -> Answer:
    """The same answer with the present cut and the present number of pending documents."""
    answer = cached.answer
    if snapshot.cut != cached.cut or answer.pending != overview.pending:
        certificate = replace(answer.certificate, cut=snapshot.cut, pending=overview.pending)
        cached.answer = answer = replace(answer, certificate=certificate, pending=overview.pending)
        cached.cut = snapshot.cut
    return answer


def _shown_documents(answer: Answer) -> dict[str, Evidence]:
    """The documents that an answer shows, by id."""
    shown: dict[str, Evidence] = {}
    for group in answer.groups:
        amending = (amendment.document for control in group.controlling for amendment in control.amendments)
        for evidence in (
            group.anchor,
            *(control.document for control in group.controlling),
            *group.superseded,
            *amending,
        ):
            shown[evidence.id] = evidence
    return shown


def _estimated_size(answer: Answer, keys: int, hits: int) -> int:
    """About how many bytes a cached answer takes."""
    shown = _shown_documents(answer)
    text = sum(len(e.title) + len(e.text) + len(e.source) + len(e.url) for e in shown.values())
    return len(answer.question) + text + EVIDENCE_BYTES * len(shown) + KEY_BYTES * keys + HIT_BYTES * hits


class ManyShardsCache(AnswerCache):
    """The answers of many shards and one generation. Writes are not reported, so the values are compared instead."""

    async def _is_current(self, cached: CachedAnswer, overview: Overview, snapshot: Snapshot) -> bool:
        if cached.has_links != overview.has_links:
            return False
        await snapshot.load(cached.keys)
        return tuple(_fingerprint(snapshot.values[key]) for key in cached.keys) == cached.fingerprints

    async def keep(
        self, question: Question, answer: Answer, plan: AnchorPlan, snapshot: Snapshot, index: AnchorIndex
    ) -> None:
        """Cache an answer, unless the index lags behind the state: the cached texts would stay outdated."""
        shown = _shown_documents(answer)
        bodies = await index.documents(list(shown))
        if all(name in bodies and bodies[name].revision == document.revision for name, document in shown.items()):
            await super().keep(question, answer, plan, snapshot, index)

    def _track(self, cached: CachedAnswer, snapshot: Snapshot) -> bool:
        """Take the fingerprints of the keys that were read. Return whether values and texts were exact."""
        if not snapshot.is_exact:
            return False
        # Pages are immutable, and the header of their scope names them: it is enough to compare the header.
        cached.keys = tuple(key for key in snapshot.values if key[:1] != b"p")
        cached.fingerprints = tuple(_fingerprint(snapshot.values[key]) for key in cached.keys)
        return True


def _fingerprint(value: object) -> object:
    return (value.version, value.applied) if isinstance(value, Scope) else value

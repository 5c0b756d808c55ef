"""Answers that are given again as long as asking anew would give the same.

Promise: an answer from here equals, at the present cut, what a recomputation would say: neither a key
that its Stage 2 read was written since, nor does Stage 1 find other anchors or find them in another
order. Stage 1 is not predicted: where the index has changed it is asked again, and only an answer whose
anchors really are others is dropped. Whoever applies records tells of every one; after a gap nothing
kept is trusted. Cost: a record applied, one look-up a key that it wrote; a hit, one read of the
shard's header, a comparison a key, and one search where the index has changed. At most `bytes_max`.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stream_car.core.stored import Scope
from stream_car.ports import AnchorIndex
from stream_car.queries.answers import Answer, Evidence
from stream_car.queries.retrieval import Question, replay_plan, with_probabilities
from stream_car.queries.shards import Overview
from stream_car.queries.snapshot import Snapshot
from stream_car.ranking.anchor_order import AnchorPlan, AnchorSummary, Hit, plan_anchors
from stream_car.ranking.settings import SETTINGS

BYTES_MAX = 64 << 20
EVIDENCE_BYTES = 1300  # a document in an answer with what leads to it, its words apart
KEY_BYTES = 300  # a key that an answer read
HIT_BYTES = 150  # an anchor that was looked at


class CachedAnswer(Struct):
    """An answer, and what it was worked out from: searches and keys, as of a cut and a version of the index."""

    answer: Answer
    cut: tuple[int, ...]
    version: int
    has_links: bool
    searches: Mapping[tuple[str, int], Sequence[Hit]]
    plan: AnchorPlan
    keys: tuple[bytes, ...]
    size: int
    marks: tuple[object, ...] = ()  # what tells the values of the keys, where nobody tells of writes


class _Mark(Struct, gc=False):
    """A key that kept answers read: the offset that wrote it last since, and how many answers read it."""

    offset: int
    readers: int


class AnswerCache:
    """Answers of one shard and one generation, the least lately used given up first."""

    def __init__(self, bytes_max: int = BYTES_MAX, *, superseded_bonus: float = SETTINGS.superseded_bonus) -> None:
        self.bytes_max = bytes_max
        self.moved = superseded_bonus
        self.size = 0
        self.hits = 0
        self.misses = 0
        self._kept: dict[Question, CachedAnswer] = {}
        self._written: dict[bytes, _Mark] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._kept)

    def invalidate(self, offset: int, touched: Iterable[bytes]) -> None:
        """A record was applied and wrote these keys."""
        if offset != self._next:
            self.clear()
        self._next = offset + 1
        written = self._written
        for key in touched:
            if key in written:
                written[key].offset = offset

    def clear(self) -> None:
        """Forget every answer."""
        self._kept.clear()
        self._written.clear()
        self.size = 0

    async def find(self, question: Question, snapshot: Snapshot, index: AnchorIndex) -> Answer | None:
        """The answer to this question as of the reader's cut, if it is known."""
        kept = self._kept.pop(question, None)
        if kept is not None:
            self.size -= kept.size
            is_known = False
            try:
                overview = await snapshot.overview()
                is_known = await self._is_current(kept, overview, snapshot) and await self._found_again(
                    question, kept, snapshot, index
                )
            finally:
                if not is_known:
                    self._evict(kept)
            if is_known:
                self._put(question, kept)  # the latest used is the last
                self.hits += 1
                return _as_of_now(kept, overview, snapshot)
        self.misses += 1
        return None

    async def _is_current(self, kept: CachedAnswer, overview: Overview, reader: Snapshot) -> bool:
        """Whether nothing that Stage 2 read was written since."""
        if reader.cut != (self._next,) or kept.has_links != overview.has_links:
            return False
        written, [cut] = self._written, kept.cut
        return all((mark := written.get(key)) is not None and mark.offset < cut for key in kept.keys)

    async def _found_again(self, asked: Question, kept: CachedAnswer, reader: Snapshot, index: AnchorIndex) -> bool:
        """Whether Stage 1 leads to the same anchors in the same order; their scores may be new."""
        if await index.version() == kept.version:
            return True
        found = {(text, depth): await index.search(text, depth, reader.gently) for text, depth in kept.searches}
        if found != kept.searches:
            course = self._followed(asked, kept, found)
            if course is None:
                return False
            kept.searches, kept.plan = found, course
            kept.answer = with_probabilities(kept.answer, course)
        kept.version = await index.version()
        return True

    def _followed(
        self, asked: Question, kept: CachedAnswer, found: Mapping[tuple[str, int], Sequence[Hit]]
    ) -> AnchorPlan | None:
        """Where the new scores lead, if that is where the old ones led."""
        if len(found) != 1 or asked.budget is not None:
            return None
        [hits], [before] = found.values(), kept.searches.values()
        left = {hit.id for hit in kept.plan.remaining}
        gists: dict[str, AnchorSummary | None] = {hit.id: None for hit in before if hit.id not in left}
        gists |= {gist.anchor: gist for _, gist in kept.plan.examined}
        course = replay_plan(plan_anchors(hits, k=asked.k, depth=asked.depth, superseded_bonus=self.moved), gists)
        return course if course is not None and _outline(course) == _outline(kept.plan) else None

    async def keep(
        self, question: Question, answer: Answer, plan: AnchorPlan, snapshot: Snapshot, index: AnchorIndex
    ) -> None:
        """Remember an answer that this reader gave, unless state or index moved meanwhile."""
        overview = await snapshot.overview()
        size = _size(answer, len(snapshot.values), sum(map(len, snapshot.searches.values())))
        if snapshot.version != await index.version() or size > self.bytes_max // 4:
            return
        searches, keys = dict(snapshot.searches), tuple(snapshot.values)
        kept = CachedAnswer(answer, snapshot.cut, snapshot.version, overview.has_links, searches, plan, keys, size)
        if not self._is_cacheable(kept, snapshot):
            return
        self._put(question, kept)
        while self.size > self.bytes_max:
            oldest = self._kept.pop(next(iter(self._kept)))
            self.size -= oldest.size
            self._evict(oldest)

    def _put(self, asked: Question, kept: CachedAnswer) -> None:
        """The latest, in place of one that somebody else put there meanwhile."""
        before = self._kept.pop(asked, None)
        if before is not None:
            self.size -= before.size
            self._evict(before)
        self.size += kept.size
        self._kept[asked] = kept

    def _is_cacheable(self, kept: CachedAnswer, reader: Snapshot) -> bool:
        """Whether what is written from now on can be compared with it."""
        [cut] = kept.cut
        if cut < self._next:
            return False
        if cut > self._next:  # nobody told of the records before this cut, and nothing is left that they could void
            self.clear()
            self._next = cut
        for key in kept.keys:
            self._written.setdefault(key, _Mark(-1, 0)).readers += 1
        return True

    def _evict(self, kept: CachedAnswer) -> None:
        """Forget what only this answer had read."""
        written = self._written
        for key in kept.keys:
            mark = written.get(key)
            if mark is not None:
                mark.readers -= 1
                if not mark.readers:
                    del written[key]


def _outline(course: AnchorPlan) -> tuple[list[str], list[str], bool]:
    """What of a course shows in an answer, scores and beliefs apart."""
    return [gist.anchor for _, gist in course.examined], [hit.id for hit in course.remaining], course.is_settled


def _as_of_now(kept: CachedAnswer, overview: Overview, reader: Snapshot) -> Answer:
    """The same answer with the present cut, and as many waiting documents as there are now."""
    answer = kept.answer
    if reader.cut != kept.cut or answer.pending != overview.pending:
        certificate = replace(answer.certificate, cut=reader.cut)
        kept.answer = answer = replace(answer, certificate=certificate, pending=overview.pending)
        kept.cut = reader.cut
    return answer


def shown_in(answer: Answer) -> dict[str, Evidence]:
    """The documents that an answer shows."""
    shown: dict[str, Evidence] = {}
    for group in answer.groups:
        amending = (one.document for control in group.controlling for one in control.amendments)
        for evidence in (group.anchor, *(one.document for one in group.controlling), *group.passed, *amending):
            shown[evidence.id] = evidence
    return shown


def _size(answer: Answer, keys: int, hits: int) -> int:
    """About how many bytes an answer takes."""
    shown = shown_in(answer)
    words = sum(len(one.title) + len(one.text) + len(one.source) + len(one.url) for one in shown.values())
    return len(answer.question) + words + EVIDENCE_BYTES * len(shown) + KEY_BYTES * keys + HIT_BYTES * hits


class ManyShardsCache(AnswerCache):
    """Answers of many shards and one generation."""

    async def _is_current(self, kept: CachedAnswer, overview: Overview, reader: Snapshot) -> bool:
        """Whether everything that Stage 2 read is as it was."""
        if kept.has_links != overview.has_links:
            return False
        await reader.load(kept.keys)
        return tuple(_mark(reader.values[key]) for key in kept.keys) == kept.marks

    async def keep(
        self, question: Question, answer: Answer, plan: AnchorPlan, snapshot: Snapshot, index: AnchorIndex
    ) -> None:
        """Remember an answer, unless the index was behind the state: its words would stay old."""
        shown = shown_in(answer)
        bodies = await index.documents(list(shown))
        if all(name in bodies and bodies[name].revision == one.revision for name, one in shown.items()):
            await super().keep(question, answer, plan, snapshot, index)

    def _is_cacheable(self, kept: CachedAnswer, reader: Snapshot) -> bool:
        """What it was worked out from; pages are immutable, and their scope's header names them."""
        if not reader.source.is_exact:
            return False
        kept.keys = tuple(key for key in reader.values if key[:1] != b"p")
        kept.marks = tuple(_mark(reader.values[key]) for key in kept.keys)
        return True


def _mark(value: object) -> object:
    return (value.version, value.applied) if isinstance(value, Scope) else value

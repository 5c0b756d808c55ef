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

from stream_car.engine.answers import Answer, Evidence, Group
from stream_car.engine.reader import Reader
from stream_car.engine.sources import Overview
from stream_car.ports import AnchorIndex, Hit

BYTES_MAX = 64 << 20
EVIDENCE_BYTES = 400  # a document in an answer, its words apart
KEY_BYTES = 150  # a key that an answer read


class Asked(Struct, frozen=True):
    """A question with all that its answer depends on, the input apart."""

    text: str
    k: int
    depth: int
    as_of: int | None = None


class Kept(Struct):
    """An answer, and what it was worked out from: searches and keys, as of a cut and a version of the index."""

    answer: Answer
    cut: int
    version: int
    has_links: bool
    searches: Mapping[tuple[str, int], Sequence[Hit]]
    keys: tuple[bytes, ...]
    size: int


class Cache:
    """Answers of one shard and one generation, the least lately used given up first."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.size = 0
        self.hits = 0
        self.misses = 0
        self._kept: dict[Asked, Kept] = {}
        self._written: dict[bytes, int] = {}  # keys that kept answers read -> the offset that wrote them last
        self._next = 0

    def __len__(self) -> int:
        return len(self._kept)

    def note(self, offset: int, touched: Iterable[bytes]) -> None:
        """A record was applied and wrote these keys."""
        if offset != self._next:
            self.clear()
        self._next = offset + 1
        written = self._written
        for key in touched:
            if key in written:
                written[key] = offset

    def clear(self) -> None:
        """Forget every answer."""
        self._kept.clear()
        self._written.clear()
        self.size = 0

    async def find(self, asked: Asked, reader: Reader, index: AnchorIndex) -> Answer | None:
        """The answer to this question as of the reader's cut, if it is known."""
        kept = self._kept.pop(asked, None)
        if kept is not None:
            overview = await reader.overview()
            if self._stands(kept, overview, reader) and await self._found_again(kept, index):
                self._kept[asked] = kept  # the latest used is the last
                self.hits += 1
                return _as_of_now(kept, overview, reader)
            self.size -= kept.size
        self.misses += 1
        return None

    def _stands(self, kept: Kept, overview: Overview, reader: Reader) -> bool:
        """Whether nothing that Stage 2 read was written since."""
        if reader.cut != (self._next,) or kept.has_links != overview.has_links:
            return False
        written, cut = self._written, kept.cut
        return all(written[key] < cut for key in kept.keys)

    async def _found_again(self, kept: Kept, index: AnchorIndex) -> bool:
        """Whether Stage 1 finds the same anchors in the same order; their scores may be new."""
        if await index.version() == kept.version:
            return True
        found = {(text, depth): await index.search(text, depth) for text, depth in kept.searches}
        if any(_names(found[asked]) != _names(hits) for asked, hits in kept.searches.items()):
            return False
        if found != kept.searches:
            kept.searches = found
            kept.answer = _rescored(kept.answer, {hit.id: hit.score for hits in found.values() for hit in hits})
        kept.version = await index.version()
        return True

    async def keep(self, asked: Asked, answer: Answer, reader: Reader, index: AnchorIndex) -> None:
        """Remember an answer that this reader gave, unless state or index moved meanwhile."""
        overview = await reader.overview()
        [cut] = reader.cut
        size = _size(answer, len(reader.values))
        if cut < self._next or reader.version != await index.version() or size > self.bytes_max // 4:
            return
        if cut > self._next:  # nobody told of the records before this cut, and nothing is left that they could void
            self.clear()
            self._next = cut
        keys = tuple(reader.values)
        self._kept[asked] = Kept(answer, cut, reader.version, overview.has_links, dict(reader.searches), keys, size)
        for key in keys:
            self._written.setdefault(key, -1)
        self.size += size
        if self.size > self.bytes_max:
            self._make_room()

    def _make_room(self) -> None:
        """Give up the answers used longest ago until a quarter is free, and what only they had read."""
        for asked in list(self._kept):
            if self.size <= self.bytes_max * 3 // 4:
                break
            self.size -= self._kept.pop(asked).size
        read = {key for kept in self._kept.values() for key in kept.keys}
        self._written = {key: offset for key, offset in self._written.items() if key in read}


def _names(hits: Sequence[Hit]) -> list[str]:
    return [hit.id for hit in hits]


def _rescored(answer: Answer, scores: Mapping[str, float]) -> Answer:
    groups: tuple[Group, ...] = tuple(
        replace(group, score=scores.get(group.anchor.id, group.score)) for group in answer.groups
    )
    return replace(answer, groups=groups)


def _as_of_now(kept: Kept, overview: Overview, reader: Reader) -> Answer:
    """The same answer with the present cut, and as many waiting documents as there are now."""
    answer = kept.answer
    [cut] = reader.cut
    if cut != kept.cut:
        certificate = replace(answer.certificate, cut=reader.cut)
        kept.answer = answer = replace(answer, certificate=certificate, pending=overview.waiting)
        kept.cut = cut
    return answer


def _size(answer: Answer, keys: int) -> int:
    """About how many bytes an answer takes."""
    shown: dict[str, Evidence] = {}
    for group in answer.groups:
        amending = (one.document for control in group.controlling for one in control.amendments)
        for evidence in (group.anchor, *(one.document for one in group.controlling), *group.passed, *amending):
            shown[evidence.id] = evidence
    words = sum(len(one.title) + len(one.text) + len(one.source) + len(one.url) for one in shown.values())
    return words + EVIDENCE_BYTES * len(shown) + KEY_BYTES * keys

"""A text index in memory, straight from the formula: BM25 over whatever is there now, and a store that only peeks."""

from collections import Counter
from collections.abc import Collection, Sequence
from math import log

from stream_car.core.documents import Document
from stream_car.ports import Claim, Emission, IndexedDocument, YieldControl
from stream_car.processing.state import Value, encode_value
from stream_car.ranking.anchor_order import Hit
from tests.support.memory_shard import Memory

K1, B = 1.2, 0.75


class PlainIndex:
    """Implements `ports.AnchorIndex`; every document changes the statistics that all scores depend on."""

    def __init__(self) -> None:
        self.postings: dict[str, IndexedDocument] = {}
        self.counted: dict[str, Counter[str]] = {}
        self.applied = 0
        self.at = 0
        self.asked = 0

    async def apply(
        self, documents: Sequence[IndexedDocument], dropped: Sequence[str], position: int, scopes: Collection[str] = ()
    ) -> None:
        """Take documents in and out."""
        for name in dropped:
            self.postings.pop(name, None)
            self.counted.pop(name, None)
        for posting in documents:
            self.postings[posting.document.id] = posting
            self.counted[posting.document.id] = Counter(posting.document.text.split())
        self.applied += bool(documents or dropped)
        self.at = position

    async def position(self) -> int:
        """The input offset from which to feed."""
        return self.at

    async def vectors_pending(self) -> int:
        """There are no vectors."""
        return 0

    async def version(self) -> int:
        """How often something was applied."""
        return self.applied

    async def search(self, text: str, depth: int, yield_control: YieldControl | None = None) -> Sequence[Hit]:
        """The best anchors by BM25."""
        self.asked += 1
        lengths = {name: counted.total() for name, counted in self.counted.items()}
        mean = sum(lengths.values()) / len(lengths) if lengths else 1.0
        scores: dict[str, float] = {}
        for word in text.split():
            having = {name: counted[word] for name, counted in self.counted.items() if counted[word]}
            weight = log(1 + (len(lengths) - len(having) + 0.5) / (len(having) + 0.5))
            for name, count in having.items():
                part = count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[name] / mean))
                scores[name] = scores.get(name, 0.0) + weight * part
        hits = [Hit(name, score) for name, score in scores.items() if self.postings[name].anchor]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:depth]

    async def ignored_terms(self, text: str) -> int:
        """All words count."""
        return 0

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents kept under these ids."""
        return {name: self.postings[name].document for name in ids if name in self.postings}

    async def scopes(self, pairs: Sequence[tuple[str, str]], limit: int) -> Sequence[str]:
        """Nobody asks here."""
        raise NotImplementedError


class PeekedStore:
    """What queries use of `ports.Store`, over a fold's values in memory."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.bytes: dict[bytes, bytes] = {}

    def write(self, touched: Sequence[bytes]) -> None:
        """Keep what a record wrote."""
        for key in touched:
            value: Value = self.memory.values.get(key)
            raw = encode_value(value)
            if raw is None:
                self.bytes.pop(key, None)
            else:
                self.bytes[key] = raw

    async def peek(self, shard: int, keys: Sequence[bytes]) -> tuple[int, dict[bytes, bytes]]:
        """The values of these keys as of now."""
        return self.memory.offset, {key: self.bytes[key] for key in keys if key in self.bytes}

    async def claim(self, shard: int) -> Claim:
        """Nobody writes here."""
        raise NotImplementedError

    async def read(self, claim: Claim, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Nobody writes here."""
        raise NotImplementedError

    async def commit(self, claim: Claim, next_offset: int, writes: object, outbox: Sequence[Emission]) -> Claim:
        """Nobody writes here."""
        raise NotImplementedError

    async def outbox(self, claim: Claim) -> Sequence[Emission]:
        """Nobody writes here."""
        raise NotImplementedError

    async def trim(self, claim: Claim, up_to: int) -> Claim:
        """Nobody writes here."""
        raise NotImplementedError

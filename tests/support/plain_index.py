"""A text index in memory, straight from the formula of BM25, and a store that can only be peeked into."""

from collections import Counter
from collections.abc import Collection, Sequence
from math import log

from stream_car.core.documents import Document
from stream_car.core.scope_names import scope_parts
from stream_car.ports import Claim, Emission, IndexedDocument, Pairs, YieldControl
from stream_car.processing.state import Value, encode_value
from stream_car.ranking.anchor_order import Hit
from tests.support.memory_shard import Memory

K1, B = 1.2, 0.75


class PlainIndex:
    """Implements `ports.AnchorIndex`. Every document changes the statistics that all scores depend on."""

    def __init__(self) -> None:
        self.indexed: dict[str, IndexedDocument] = {}
        self.word_counts: dict[str, Counter[str]] = {}
        self.applied = 0
        self.at = 0
        self.searches = 0

    async def apply(
        self, documents: Sequence[IndexedDocument], dropped: Sequence[str], position: int, scopes: Collection[str] = ()
    ) -> None:
        for name in dropped:
            self.indexed.pop(name, None)
            self.word_counts.pop(name, None)
        for entry in documents:
            self.indexed[entry.document.id] = entry
            self.word_counts[entry.document.id] = Counter(entry.document.text.split())
        self.applied += bool(documents or dropped)
        self.at = position

    async def position(self) -> int:
        return self.at

    async def vectors_pending(self) -> int:
        return 0

    async def version(self) -> int:
        return self.applied

    async def search(
        self, text: str, depth: int, yield_control: YieldControl | None = None, *, within: Pairs = ()
    ) -> Sequence[Hit]:
        self.searches += 1
        lengths = {name: counts.total() for name, counts in self.word_counts.items()}
        mean = sum(lengths.values()) / len(lengths) if lengths else 1.0
        scores: dict[str, float] = {}
        for word in text.split():
            with_word = {name: counts[word] for name, counts in self.word_counts.items() if counts[word]}
            weight = log(1 + (len(lengths) - len(with_word) + 0.5) / (len(with_word) + 0.5))
            for name, count in with_word.items():
                part = count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[name] / mean))
                scores[name] = scores.get(name, 0.0) + weight * part
        pairs = {
            name: {pair for scope in entry.scopes for pair in scope_parts(scope)}
            for name, entry in self.indexed.items()
        }
        hits = [
            Hit(name, score)
            for name, score in scores.items()
            if self.indexed[name].anchor and set(within) <= pairs[name]
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:depth]

    async def closeness(self, text: str, ids: Sequence[str]) -> float:
        return 1.0

    async def ignored_terms(self, text: str) -> int:
        return 0

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        return {name: self.indexed[name].document for name in ids if name in self.indexed}

    async def scopes(self, pairs: Sequence[tuple[str, str]], limit: int, start: str = "") -> Sequence[str]:
        names = self._scope_names()
        return sorted(name for name in names if name >= start and set(pairs) <= set(scope_parts(name)))[:limit]

    async def known_pairs(self, pairs: Collection[tuple[str, str]]) -> Collection[tuple[str, str]]:
        return set(pairs) & {part for name in self._scope_names() for part in scope_parts(name)}

    def _scope_names(self) -> set[str]:
        return {name for entry in self.indexed.values() for name in entry.scopes}


class PeekedStore:
    """Implements the part of `ports.Store` that queries use, over the values of a fold in memory."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.bytes: dict[bytes, bytes] = {}

    def write(self, touched: Sequence[bytes]) -> None:
        """Store the values of these keys as they are now."""
        for key in touched:
            value: Value = self.memory.values.get(key)
            raw = encode_value(value)
            if raw is None:
                self.bytes.pop(key, None)
            else:
                self.bytes[key] = raw

    async def peek(self, shard: int, keys: Sequence[bytes]) -> tuple[int, dict[bytes, bytes]]:
        return self.memory.offset, {key: self.bytes[key] for key in keys if key in self.bytes}

    async def claim(self, shard: int) -> Claim:
        raise NotImplementedError

    async def read(self, claim: Claim, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        raise NotImplementedError

    async def commit(self, claim: Claim, next_offset: int, writes: object, outbox: Sequence[Emission]) -> Claim:
        raise NotImplementedError

    async def outbox(self, claim: Claim) -> Sequence[Emission]:
        raise NotImplementedError

    async def trim(self, claim: Claim, up_to: int) -> Claim:
        raise NotImplementedError

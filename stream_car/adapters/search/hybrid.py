"""Stage 1 by words and vectors together: a text index with vectors beside it.

Promise: that of `ports.AnchorIndex`. A document is found by its words at once, and by its vector as soon as that is
made; `vectors_pending` counts the vectors to come. Cost: that of the text index, plus encoding one text and one product
over all vectors.
"""

from collections.abc import Collection, Sequence

from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.search.schema import indexed_text, replace_surrogates
from stream_car.adapters.search.vectors import Vectors
from stream_car.core.documents import Document
from stream_car.ports import IndexedDocument, Pairs, YieldControl
from stream_car.ranking.anchor_order import Hit
from stream_car.ranking.fusion import fuse
from stream_car.ranking.settings import SETTINGS, Settings


class HybridIndex:
    """Implements `ports.AnchorIndex` over a text index and vectors."""

    def __init__(self, texts: TantivyIndex, vectors: Vectors, *, settings: Settings = SETTINGS) -> None:
        self._texts = texts
        self.vectors = vectors
        self._settings = settings

    async def apply(
        self, documents: Sequence[IndexedDocument], dropped: Sequence[str], position: int, scopes: Collection[str] = ()
    ) -> None:
        await self._texts.apply(documents, dropped, position, scopes)
        anchors = [(indexed.document.id, indexed_text(indexed.document)) for indexed in documents if indexed.anchor]
        others = [indexed.document.id for indexed in documents if not indexed.anchor]
        self.vectors.apply(anchors, [*dropped, *others], position)

    async def position(self) -> int:
        return min(await self._texts.position(), self.vectors.position)

    @property
    def committed(self) -> int:
        """The input offset at which indexing continues after a crash."""
        return min(self._texts.committed, self.vectors.position)

    async def version(self) -> int:
        return await self._texts.version() + self.vectors.version

    async def vectors_pending(self) -> int:
        return self.vectors.pending()

    async def search(
        self, text: str, depth: int, yield_control: YieldControl | None = None, *, within: Pairs = ()
    ) -> Sequence[Hit]:
        count = max(depth, self._settings.candidates)
        hits = await self._texts.search(text, count, yield_control, within=within)
        if depth <= 0 or not text.strip():
            return ()
        among = self._texts.anchors_within(within) if within else None
        cosines = self.vectors.cosines(replace_surrogates(text), [hit.id for hit in hits], count, among)
        return tuple(fuse(hits, cosines, dense=self._settings.dense)[:depth])

    async def closeness(self, text: str, ids: Sequence[str]) -> float:
        return 1.0  # what has the meaning of the query need not have its words

    async def ignored_terms(self, text: str) -> int:
        return await self._texts.ignored_terms(text)  # the vector of the query is that of all words

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        return await self._texts.documents(ids)

    async def scopes(self, pairs: Sequence[tuple[str, str]], limit: int, start: str = "") -> Sequence[str]:
        return await self._texts.scopes(pairs, limit, start)

    async def known_pairs(self, pairs: Collection[tuple[str, str]]) -> Collection[tuple[str, str]]:
        return await self._texts.known_pairs(pairs)

    def prepare(self) -> bool:
        """Return whether a search need not wait for a commit. If it would have to, begin one."""
        return self._texts.prepare()

    def settle(self) -> None:
        """Wait until every vector is made. Raises the error of the encoder."""
        self.vectors.settle()

    def reset(self) -> None:
        """Delete everything. The position is 0 again."""
        self._texts.reset()
        self.vectors.reset()

    def close(self) -> None:
        """Commit everything and close the files."""
        self.vectors.close()
        self._texts.close()

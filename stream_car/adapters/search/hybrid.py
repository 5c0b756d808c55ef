"""Stage 1 by words and vectors together: a text index with vectors beside it.

Promise: what `ports.AnchorIndex` promises; a document is found by its words at once, and by its vector
once that is made: `behind` counts those to come. Cost: that of the text index, one text encoded, and
one product over all vectors.
"""

from collections.abc import Collection, Sequence

from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.search.schema import readable, words
from stream_car.adapters.search.vectors import Vectors
from stream_car.core.documents import Document
from stream_car.ports import IndexedDocument, YieldControl
from stream_car.ranking.anchor_order import Hit
from stream_car.ranking.fusion import fused
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
        """Add or replace documents by id, drop others; all input before `position` is now in."""
        await self._texts.apply(documents, dropped, position, scopes)
        anchors = [(one.document.id, words(one.document)) for one in documents if one.anchor]
        others = [one.document.id for one in documents if not one.anchor]
        self.vectors.apply(anchors, [*dropped, *others], position)

    async def position(self) -> int:
        """The input offset from which to feed after opening."""
        return min(await self._texts.position(), self.vectors.position)

    @property
    def committed(self) -> int:
        """The input offset from which to feed after a crash."""
        return min(self._texts.committed, self.vectors.position)

    async def version(self) -> int:
        """A number that goes up whenever a search could answer otherwise than before."""
        return await self._texts.version() + self.vectors.version

    async def vectors_pending(self) -> int:
        """Documents whose vectors are still to come."""
        return self.vectors.pending()

    async def search(self, text: str, depth: int, yield_control: YieldControl | None = None) -> Sequence[Hit]:
        """The `depth` best anchors by words and vectors, best first; ties by id."""
        count = max(depth, self._settings.candidates)
        hits = await self._texts.search(text, count, yield_control)
        if depth <= 0 or not text.strip():
            return ()
        cosines = self.vectors.cosines(readable(text), [hit.id for hit in hits], count)
        return tuple(fused(hits, cosines, dense=self._settings.dense)[:depth])

    async def ignored_terms(self, text: str) -> int:
        """How many words of a question the text index leaves out; its meaning is that of all."""
        return await self._texts.ignored_terms(text)

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents kept under these ids."""
        return await self._texts.documents(ids)

    async def scopes(self, pairs: Sequence[tuple[str, str]], limit: int) -> Sequence[str]:
        """Names of scopes that have all these pairs, in order of name."""
        return await self._texts.scopes(pairs, limit)

    def prepare(self) -> bool:
        """Whether a search need not wait for a commit; if it would, one is begun."""
        return self._texts.prepare()

    def settle(self) -> None:
        """Wait until no vector is behind."""
        self.vectors.settle()

    def reset(self) -> None:
        """Forget everything; the position is 0 again."""
        self._texts.reset()
        self.vectors.reset()

    def close(self) -> None:
        """Keep everything and let go of the files."""
        self.vectors.close()
        self._texts.close()

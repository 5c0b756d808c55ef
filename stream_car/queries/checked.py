"""The cache over shards that others move: nobody tells what was written, so what an answer read is read again.

Promise: as `Cache`; a key counts as unwritten if it has the value that the answer was worked out from, and an
answer is kept only if the index had the very revisions that it shows. A scope's value is told by the last
input that each intake shard changed it with. Cost: a hit is one round of reads, of the headers and documents
that the answer read, and one search where the index has changed.
"""

from stream_car.core.members import Scope
from stream_car.ports import AnchorIndex
from stream_car.queries.answers import Answer
from stream_car.queries.cache import Cache, Kept, shown_in
from stream_car.queries.retrieval import Asked
from stream_car.queries.shards import Overview
from stream_car.queries.snapshot import Reader
from stream_car.ranking.anchor_order import Course


class CheckedCache(Cache):
    """Answers of many shards and one generation."""

    async def _stands(self, kept: Kept, overview: Overview, reader: Reader) -> bool:
        """Whether everything that Stage 2 read is as it was."""
        if kept.has_links != overview.has_links:
            return False
        await reader.load(kept.keys)
        return tuple(_mark(reader.values[key]) for key in kept.keys) == kept.marks

    async def keep(self, asked: Asked, answer: Answer, course: Course, reader: Reader, index: AnchorIndex) -> None:
        """Remember an answer, unless the index was behind the state: its words would stay old."""
        shown = shown_in(answer)
        bodies = await index.documents(list(shown))
        if all(name in bodies and bodies[name].revision == one.revision for name, one in shown.items()):
            await super().keep(asked, answer, course, reader, index)

    def _takes(self, kept: Kept, reader: Reader) -> bool:
        """What it was worked out from; pages are immutable, and their scope's header names them."""
        if not reader.source.is_exact:
            return False
        kept.keys = tuple(key for key in reader.values if key[:1] != b"p")
        kept.marks = tuple(_mark(reader.values[key]) for key in kept.keys)
        return True


def _mark(value: object) -> object:
    return (value.stamp, value.applied) if isinstance(value, Scope) else value

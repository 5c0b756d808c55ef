"""Stream-CAR under the paper's own scorer: `python evaluate.py --retriever_path paper_retriever.py --k 5`.

The scorer makes one `Retriever` of its corpus and asks it for document ids, best first. A document of the
corpus has `doc_id`, `text`, `event_type`, `timestamp` and `entities`, the keys and values it speaks about.
For another of the paper's sets name its rule pack in `DOMAIN`.
"""

from collections.abc import Mapping, Sequence

import stream_car

DOMAIN = "compliance"


class Retriever:
    """Two-stage answers: only documents in force, each reached from an anchor that the words point at."""

    name = "stream-car"

    def __init__(self, corpus: Sequence[Mapping[str, object]] = ()) -> None:
        self._corpus: Sequence[Mapping[str, object]] | None = None
        self._engine: stream_car.Engine | None = None
        if corpus:
            self._open(corpus)

    def retrieve(self, query: str, corpus: Sequence[Mapping[str, object]], k: int) -> list[str]:
        """The ids of at most `k` controlling documents; another corpus than before is read anew."""
        if self._engine is None or corpus is not self._corpus:
            self._open(corpus)
        assert self._engine is not None
        return [document.id for document in self._engine.query(query, k=k).results]

    def _open(self, corpus: Sequence[Mapping[str, object]]) -> None:
        if self._engine is not None:
            self._engine.close()
        self._corpus = corpus
        self._engine = stream_car.open(domains=[DOMAIN], future="apply")
        receipts = self._engine.publish(map(_document, corpus)).receipts
        refused = [receipt for receipt in receipts if receipt.outcome == "rejected"]
        if refused:
            raise ValueError(f"{len(refused)} documents were refused, for one: {refused[0].reason}")


def _document(said: Mapping[str, object]) -> dict[str, object]:
    """A document of the scorer's corpus as Stream-CAR takes it; times without a zone are UTC."""
    time = str(said["timestamp"])
    has_zone = time.endswith("Z") or "+" in time[10:] or "-" in time[10:]
    entities = said["entities"]
    assert isinstance(entities, Mapping)
    return {
        "id": said["doc_id"],
        "type": said["event_type"],
        "time": time if has_zone else f"{time}Z",
        "scope": {key: [value] for key, value in entities.items() if value},
        "text": said["text"],
    }

"""Stream-CAR under the paper's own scorer: `python evaluate.py --retriever_path paper_retriever.py --k 5`.

The scorer makes one `Retriever` of its corpus and requests document ids from it, best first. A document of the corpus
has `doc_id`, `text`, `event_type`, `timestamp` and `entities`, the keys and values that it is about. For another of
the paper's sets, name its rule pack in `RULE_PACK`.
"""

from collections.abc import Mapping, Sequence

import stream_car

RULE_PACK = "compliance"


class Retriever:
    """Two-stage answers: only documents in force, each reached from an anchor that matches the words."""

    name = "stream-car"

    def __init__(self, corpus: Sequence[Mapping[str, object]] = ()) -> None:
        self._corpus: Sequence[Mapping[str, object]] | None = None
        self._engine: stream_car.Engine | None = None
        if corpus:
            self._open(corpus)

    def retrieve(self, query: str, corpus: Sequence[Mapping[str, object]], k: int) -> list[str]:
        """Return the ids of at most `k` controlling documents. Another corpus than before is loaded first."""
        if self._engine is None or corpus is not self._corpus:
            self._open(corpus)
        assert self._engine is not None
        return [document.id for document in self._engine.query(query, k=k).results]

    def _open(self, corpus: Sequence[Mapping[str, object]]) -> None:
        if self._engine is not None:
            self._engine.close()
        self._corpus = corpus
        self._engine = stream_car.open(rules=RULE_PACK, future="apply")
        receipts = self._engine.publish(map(_document, corpus)).receipts
        rejected = [receipt for receipt in receipts if receipt.outcome == "rejected"]
        if rejected:
            raise ValueError(f"{len(rejected)} documents were rejected. The first reason: {rejected[0].reason}")


def _document(item: Mapping[str, object]) -> dict[str, object]:
    """Return a document of the scorer's corpus as Stream-CAR accepts it. Times without a zone are UTC."""
    time = str(item["timestamp"])
    has_zone = time.endswith("Z") or "+" in time[10:] or "-" in time[10:]
    entities = item["entities"]
    assert isinstance(entities, Mapping)
    return {
        "id": item["doc_id"],
        "type": item["event_type"],
        "time": time if has_zone else f"{time}Z",
        "scope": {key: [value] for key, value in entities.items() if value},
        "text": item["text"],
    }

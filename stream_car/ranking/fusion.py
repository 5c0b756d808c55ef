"""Terms and vectors in one score, in nats.

A cosine of one is worth `dense` nats. Ranks alone are not fused: they lose how clear a lead is.
"""

from collections.abc import Mapping, Sequence

from stream_car.ranking.anchor_order import Hit


def fuse(hits: Sequence[Hit], cosines: Mapping[str, float], *, dense: float) -> list[Hit]:
    """Return the documents found by terms (`hits`) or by vectors (`cosines`), best first; ties by id.

    A document that only vectors found gets no score from terms. A document without a vector yet gets the average
    cosine of those that terms found, so that new documents are not held back.
    """
    known = [cosines[hit.id] for hit in hits if hit.id in cosines]
    average = sum(known) / len(known) if known else 0.0
    scores = {name: dense * cosine for name, cosine in cosines.items()}
    for hit in hits:
        scores[hit.id] = hit.score + scores.get(hit.id, dense * average)
    fused_hits = [Hit(name, float(f"{score:.5g}")) for name, score in scores.items()]
    return sorted(fused_hits, key=lambda hit: (-hit.score, hit.id))

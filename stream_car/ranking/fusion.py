"""Words and vectors together: one score in nats.

A cosine is worth `dense` nats. Plain ranks are not fused: they forget how clear a lead is.
"""

from collections.abc import Mapping, Sequence

from stream_car.ranking.anchor_order import Hit


def fused(hits: Sequence[Hit], cosines: Mapping[str, float], *, dense: float) -> list[Hit]:
    """All hits of either kind, best first; ties by id.

    What only vectors found has no evidence from words. What has no vector yet counts as the average of
    the others that words found, so that new documents are not held back.
    """
    known = [cosines[hit.id] for hit in hits if hit.id in cosines]
    usual = sum(known) / len(known) if known else 0.0
    scores = {name: dense * cosine for name, cosine in cosines.items()}
    for hit in hits:
        scores[hit.id] = hit.score + scores.get(hit.id, dense * usual)
    found = [Hit(name, float(f"{score:.5g}")) for name, score in scores.items()]
    return sorted(found, key=lambda hit: (-hit.score, hit.id))

"""What fits into a budget of tokens."""

from collections.abc import Callable, Iterable

from stream_car.memory.shapes import MemoryItem

TokenCounter = Callable[[str], int]
BYTES_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has: a quarter of its bytes, at least one."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN) or 1


def pack(items: Iterable[MemoryItem], budget: int | None, count_tokens: TokenCounter) -> list[MemoryItem]:
    """Return the items in order as long as their sentences fit; one that is too long is left out, shorter ones follow.

    A sentence that several items share counts once.
    """
    packed: list[MemoryItem] = []
    sentences: set[str] = set()
    for item in items:
        cost = 0 if budget is None or item["memory"] in sentences else count_tokens(item["memory"])
        if budget is not None:
            if cost > budget:
                continue
            budget -= cost
        sentences.add(item["memory"])
        packed.append(item)
    return packed

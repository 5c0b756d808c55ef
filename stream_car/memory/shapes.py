"""What the calls of a memory return: dictionaries in the shape that mem0 made common, with more fields."""

from typing import Literal, TypedDict

MemoryEvent = Literal["ADD", "SUPERSEDE", "REINFORCE", "TENTATIVE"]
MemoryStatus = Literal["in_force", "superseded", "tentative"]


class Memorized(TypedDict):
    """What one `add` did. `retired` are the ids of the memories that it ended; `reason` says why it is tentative."""

    id: str
    memory: str
    event: MemoryEvent
    key: str
    object: str
    retired: list[str]
    reason: str


class AddResults(TypedDict):
    """What `add` returns."""

    results: list[Memorized]


class MemoryItem(TypedDict):
    """One memory. `object` is its value and `memory` the sentence that gave it; times are RFC 3339 text.

    `status` is `tentative` for a value that awaits confirmation. `superseded` are the values that it ended, latest
    first, if they were asked for. `review_due` says that its `review_after` has passed.
    """

    id: str
    memory: str
    key: str
    object: str
    status: MemoryStatus
    outcome: str
    score: float
    created_at: str
    updated_at: str
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    source: str
    confidence: float | None
    protected: bool
    review_due: bool
    metadata: dict[str, object]
    superseded: list["MemoryItem"]


class SearchResults(TypedDict):
    """What `search` and `get_all` return. `complete` is that of the answer's certificate."""

    results: list[MemoryItem]
    complete: bool


class HistoryItem(TypedDict):
    """One value that a key had, oldest first: in force from `created_at` until `ended_at`, if it has ended."""

    id: str
    memory_id: str
    old_memory: str | None
    new_memory: str | None
    event: Literal["ADD", "UPDATE", "REINFORCE", "TENTATIVE", "DELETE"]
    created_at: str
    ended_at: str | None
    outcome: str
    is_deleted: bool


class Forgotten(TypedDict):
    """What `forget`, `delete` and their like did."""

    message: str
    count: int

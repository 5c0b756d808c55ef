"""Memories as documents of the `memory` pack, and documents as memories."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Final, Literal
from uuid import uuid4

from stream_car.api import arguments
from stream_car.codec.publishable import NewDocument
from stream_car.errors import InvalidRequest
from stream_car.memory.extraction import Fact
from stream_car.memory.keys import ANY, Owner, comparable, key_in
from stream_car.memory.shapes import HistoryItem, MemoryItem, MemoryStatus
from stream_car.queries.answers import DocumentStatus, Evidence, OriginalDocument, Rules, TimelineMember
from stream_car.subscriptions.events import SnapshotDocument

PACK = "memory"  # the rule pack, and
MEMORY: Final = "memory"  # its types
PROTECTED: Final = "memory_protected"
PROPOSAL: Final = "memory_proposal"
RETIREMENT: Final = "memory_retirement"
EXPIRY: Final = "memory_expiry"
HELD = (MEMORY, PROTECTED)  # the types whose values hold
FORMS = (*HELD, PROPOSAL)  # the types that have a value
FORGOTTEN = "forgotten"  # the reason of a retirement before which nothing is shown
TEXT_MAX = 100_000  # bytes of one memory
UNFIT = re.compile("[\x00\ud800-\udfff]")  # characters that no text may contain
_TITLE_MAX = 200
_VALUE_MAX = 200  # characters of a value that is compared as it is; a longer one by its digest
_KEYS = ("user", "agent", "session", "subject", "relation")

Source = Evidence | OriginalDocument | SnapshotDocument | NewDocument


def require_pack(rules: Rules) -> None:
    """Raise `InvalidRequest` (`rules`) unless the rules know memories: otherwise nothing could ever be recalled."""
    if all(MEMORY not in pack.types for pack in rules.packs):
        options = " ".join(f"--rules {name}" for name in [*(pack.name for pack in rules.packs), PACK])
        cure = f"Add the pack: stream-car rebuild {options}."
        raise InvalidRequest("rules", f"The rules of this data do not include the pack {PACK!r}. {cure}")


class MemoryClock:
    """The time of day, never the same twice, so that of two memories the later one is later."""

    def __init__(self) -> None:
        self._last = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        """Return the time, in UTC."""
        self._last = max(datetime.now(UTC), self._last + timedelta(microseconds=1))
        return self._last


def read_time(name: str, value: datetime | str | None) -> datetime | None:
    """Return a time. Raises `InvalidRequest` with the name of the argument as its code."""
    try:
        return arguments.time(value)
    except InvalidRequest as error:
        raise InvalidRequest(name, str(error).replace("as_of", name)) from None


def message_texts(messages: object) -> list[str]:
    """Return what to remember of a text, or of messages with `role` and `content`: what the user wrote.

    Raises:
        InvalidRequest: it is neither (`messages`).
    """
    if isinstance(messages, str):
        return [messages]
    if isinstance(messages, Mapping):
        messages = [messages]
    texts: list[str] = []
    if isinstance(messages, Sequence) and not isinstance(messages, bytes):
        for message in messages:
            content = message.get("content") if isinstance(message, Mapping) else None
            if not isinstance(content, str):
                break
            if message.get("role", "user") == "user":
                texts.append(content)
        else:
            return texts
    raise InvalidRequest("messages", "`messages` must be a text, or a list of {'role': ..., 'content': text}.")


def new_memory(
    fact: Fact,
    text: str,
    owner: Owner,
    time: datetime,
    *,
    source: str = "",
    confidence: float | None = None,
    review_after: datetime | None = None,
    metadata: Mapping[str, object] | None = None,
) -> NewDocument:
    """Return the document of a value that holds from a time on."""
    value = comparable(fact.object)
    attributes = {
        "value": value if len(value) <= _VALUE_MAX else _digest(value),
        "object": fact.object,
        "confidence": confidence,
        "review_after": review_after.isoformat() if review_after is not None else None,
        "metadata": dict(metadata) if metadata else None,
    }
    return NewDocument(
        id=new_id(value),
        type=MEMORY,
        time=time,
        scope={**owner.scope, **fact.key.scope},
        title=" ".join(fact.object.split())[:_TITLE_MAX],
        text=text,
        source=source,
        attributes={name: item for name, item in attributes.items() if item is not None},
    )


def new_id(value: str) -> str:
    """Return a new id, which begins with the digest of a value."""
    return f"{_digest(value)}-{uuid4().hex}"


def digest_of(memory_id: str) -> str:
    """Return the digest of the value from the id of its memory."""
    return memory_id.partition("-")[0]


def _digest(value: str) -> str:
    return blake2b(value.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def scope_of(document: Source) -> dict[str, str]:
    """Return owner and key of a memory, as pairs of its scope."""
    maps = [document.scope] if isinstance(document.scope, Mapping) else document.scope
    pairs = maps[0] if maps else {}
    values = ((key, pairs.get(key, ANY)) for key in _KEYS)
    return {key: value if isinstance(value, str) else value[0] for key, value in values}


def value_in(document: Source) -> object:
    """Return the value of a memory, as values are compared."""
    return document.attributes.get("value")


def item_of(
    document: Evidence | OriginalDocument,
    status: DocumentStatus | None = None,
    outcome: str = "",
    score: float = 0.0,
) -> MemoryItem:
    """Return a memory as programs see it."""
    if isinstance(document, Evidence):
        status, outcome = document.status, document.outcome
    attributes, scope, time = document.attributes, scope_of(document), document.time.isoformat()
    shown: MemoryStatus = (
        "superseded" if status != "in_force" else "tentative" if document.type == PROPOSAL else "in_force"
    )
    owner = {key: value if value != ANY else None for key, value in scope.items()}
    confidence, metadata = attributes.get("confidence"), attributes.get("metadata")
    return {
        "id": document.id,
        "memory": document.text,
        "key": str(key_in(scope)),
        "object": _object(document),
        "status": shown,
        "outcome": outcome,
        "score": score,
        "created_at": time,
        "updated_at": time,
        "user_id": owner["user"],
        "agent_id": owner["agent"],
        "run_id": owner["session"],
        "source": document.source,
        "confidence": float(confidence) if isinstance(confidence, int | float) else None,
        "protected": document.type == PROTECTED,
        "review_due": _is_due(attributes.get("review_after")),
        "metadata": dict(metadata) if isinstance(metadata, Mapping) else {},
        "superseded": [],
    }


def _object(document: Source) -> str:
    return str(document.attributes.get("object", document.attributes.get("value", document.title)))


def _is_due(review_after: object) -> bool:
    try:
        time = datetime.fromisoformat(review_after) if isinstance(review_after, str) else None
    except ValueError:
        return False
    return time is not None and time.tzinfo is not None and time <= datetime.now(UTC)


HistoryEvent = Literal["ADD", "UPDATE", "REINFORCE", "TENTATIVE", "DELETE"]


def history_of(members: Iterable[TimelineMember], documents: Mapping[str, OriginalDocument]) -> list[HistoryItem]:
    """Return what a key was, oldest first, without what a later word to forget covers."""
    items: list[HistoryItem] = []
    latest: str | None = None
    for member in sorted(members, key=lambda member: (member.time, member.order, member.id)):
        document = documents.get(member.id)
        if document is None:
            continue
        if member.type == RETIREMENT and document.attributes.get("reason") == FORGOTTEN:
            items, latest = [], None
            continue
        value = _object(document) if member.type in FORMS else None
        event: HistoryEvent = "ADD" if latest is None else "UPDATE"
        if member.type == PROPOSAL:
            event = "TENTATIVE"
        elif value is None:
            event = "DELETE"
        elif latest is not None and comparable(latest) == comparable(value):
            event = "REINFORCE"
        items.append(
            {
                "id": member.id,
                "memory_id": member.id,
                "old_memory": latest,
                "new_memory": value,
                "event": event,
                "created_at": member.time.isoformat(),
                "ended_at": member.ended.time.isoformat() if member.ended is not None else None,
                "outcome": member.outcome,
                "is_deleted": event == "DELETE",
            }
        )
        latest = value if event != "TENTATIVE" else latest
    return items

"""LangGraph: a store whose items are memories, so that what an agent puts has a history and is retracted, not lost.

    from stream_car.integrations.langgraph import CarStore

    graph = builder.compile(store=CarStore(stream_car.open("agent.car")))

Promise: a store answers what LangGraph's store in memory answers, and search finds items by their words. Cost: a `put`
reads what its key holds; all that one batch puts is published at once. Needs `stream-car[langgraph]`.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from operator import eq, ge, gt, le, lt, ne
from string import ascii_lowercase, digits
from urllib.parse import unquote

import msgspec

from stream_car.api.calls import Calls
from stream_car.codec.publishable import NewDocument
from stream_car.errors import InvalidRequest
from stream_car.integrations.evidence import taking_turns
from stream_car.memory.calls import MemoryCalls
from stream_car.memory.documents import HELD, MEMORY, PROTECTED, MemoryClock, new_id, require_pack
from stream_car.memory.keys import ANY, KEY_BYTES_MAX, MemoryKey, owner
from stream_car.memory.shapes import HistoryItem
from stream_car.queries.answers import Evidence
from stream_car.subscriptions.events import SnapshotDocument, SnapshotEnd

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise ImportError(f"{error}. Run: pip install 'stream-car[langgraph]'.") from error

OWNERS = ("user", "agent", "session")
PLAIN = frozenset(f"{ascii_lowercase}{digits} -_/@".encode())  # what stays as it is in a subject and a relation
FOUND_MAX = 100  # items that words can find in one search
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "$eq": eq,
    "$ne": ne,
    "$gt": gt,
    "$gte": ge,
    "$lt": lt,
    "$lte": le,
}

Namespace = tuple[str, ...]
Address = tuple[Namespace, str]  # of an item


class CarStore(BaseStore):
    """Keep the items of LangGraph as memories: the latest value of a key holds, and its history stays in the log.

    The first labels of a namespace are the values of `owners`, so `("ada", "notes")` belongs to the user `ada` and the
    agent `notes`, as `Memory(user_id="ada", agent_id="notes")` does. Pass `owners=("agent", "user", "session")` if your
    namespaces begin with something else. Further labels and the key say what it is about. Whatever else is published
    about the same scope, by `Memory` or over Kafka, changes the item.
    """

    supports_ttl = False

    def __init__(self, calls: Calls, *, owners: Sequence[str] = OWNERS, fields: Sequence[str] = ("$",)) -> None:
        """Use an engine or a client, which the caller closes.

        Args:
            calls: its rules must include the pack `memory`, as those of new data do.
            owners: the scope keys `user`, `agent` and `session`, in the order of the labels.
            fields: the paths of what search reads of an item, unless its `put` says otherwise; by default all of it.

        Raises:
            InvalidRequest: an argument is not valid (`owners`), or the rules do not include the pack (`rules`).
        """
        if sorted(owners) != sorted(OWNERS):
            raise InvalidRequest(
                "owners", f"`owners` must be the keys {', '.join(OWNERS)}, in the order of the labels."
            )
        with taking_turns(calls):
            require_pack(calls.rules())
        self._calls, self._owners, self._fields = calls, tuple(owners), list(fields)
        self._clock = MemoryClock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations. What they read is as it was before they write; of two writes of a key the last counts.

        Raises:
            InvalidRequest: a label or a key cannot be a value of a scope (`namespace`, `key`), or what holds there is
                protected (`protected`).
        """
        operations = list(ops)
        for operation in operations:
            validate_op_namespace(operation)
        with taking_turns(self._calls):
            results = [self._read(operation) for operation in operations]
            puts = {(op.namespace, op.key): op for op in operations if isinstance(op, PutOp)}
            values = [self._document(put) for put in puts.values() if put.value is not None]
            if values:
                self._calls.publish(values, on_rejected="raise", strict=True)
            for put in puts.values():
                if put.value is None:
                    self._forget((put.namespace, put.key))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def history(self, namespace: Namespace, key: str) -> list[HistoryItem]:
        """List what an item was, oldest first: since when, until when, and what became of it."""
        with taking_turns(self._calls):
            return self._memory(namespace).history(str(self._about(namespace, key)))

    def _read(self, operation: Op) -> Result:
        if isinstance(operation, GetOp):
            return self._get((operation.namespace, operation.key))
        if isinstance(operation, SearchOp):
            return self._search(operation)
        if isinstance(operation, ListNamespacesOp):
            return self._namespaces(operation)
        return None

    def _get(self, address: Address) -> Item | None:
        held = self._held(address)
        return self._item(held, address) if held is not None else None

    def _search(self, operation: SearchOp) -> list[SearchItem]:
        scores: dict[str, float] = {}
        if operation.query and not operation.query.isspace():
            documents, scores = self._find_by_words(operation.query, operation.namespace_prefix)
        else:
            documents = sorted(self._all(operation.namespace_prefix), key=_age, reverse=True)
        items: dict[Address, SearchItem] = {}
        for document in documents:
            address = self._address(document)
            if address is not None and _begins(address[0], operation.namespace_prefix):
                item = self._item(document, address)
                if all(_matches(item.value.get(name), wanted) for name, wanted in (operation.filter or {}).items()):
                    fields = {name: getattr(item, name) for name in Item.__slots__}
                    items.setdefault(address, SearchItem(**fields, score=scores.get(document.id)))
        return list(items.values())[operation.offset : operation.offset + operation.limit]

    def _find_by_words(self, query: str, prefix: Namespace) -> tuple[list[Evidence], dict[str, float]]:
        """Return what the words find in a namespace itself and in all that its owners have, with the scores."""
        owners = self._owner_scope(prefix)
        labels = prefix[len(self._owners) :]
        own = [owners | {"subject": self._about(prefix, "-").subject}] if labels else []
        documents: list[Evidence] = []
        scores: dict[str, float] = {}
        for scope in [*own, owners]:
            answer = self._calls.query(query, k=FOUND_MAX, scope=scope or None, include=["attributes"])
            scores |= {c.document.id: group.score for group in reversed(answer.groups) for c in group.controlling}
            documents += answer.results
        return documents, scores

    def _namespaces(self, operation: ListNamespacesOp) -> list[Namespace]:
        conditions = operation.match_conditions or ()
        prefixes = [condition.path for condition in conditions if condition.match_type == "prefix"]
        prefix = tuple(takewhile(lambda label: label != "*", prefixes[0])) if prefixes else ()
        addresses = filter(None, map(self._address, self._all(prefix)))
        namespaces = {
            namespace[: operation.max_depth]
            for namespace, _ in addresses
            if all(_has(namespace, condition) for condition in conditions)
        }
        return sorted(namespaces)[operation.offset : operation.offset + operation.limit]

    def _document(self, put: PutOp) -> NewDocument:
        """Return the memory of a value; it keeps the time at which its item began."""
        held, now = self._held((put.namespace, put.key)), self._clock.now()
        value = msgspec.json.encode(put.value, order="deterministic").decode()
        if held is not None and held.type == PROTECTED:
            cure = "Replace it with `Memory.add(..., replace_protected=True)`."
            raise InvalidRequest("protected", f"The value of {put.key!r} in {put.namespace} is protected. {cure}")
        created = held.attributes.get("created_at", held.time.isoformat()) if held is not None else now.isoformat()
        paths = [] if put.index is False else self._fields if put.index is None else put.index
        texts = [text for path in paths for text in _texts(put.value, path)]
        id = new_id(value)
        return NewDocument(
            id=id,
            type=MEMORY,
            time=now,
            scope=self._scope((put.namespace, put.key)),
            text="\n".join(texts),
            attributes={
                "value": id.partition("-")[0],
                "object": value,
                "item": put.value,
                "created_at": created,
            },
        )

    def _forget(self, address: Address) -> None:
        if self._held(address) is not None:
            self._memory(address[0]).forget(str(self._about(*address)))

    def _held(self, address: Address) -> Evidence | None:
        """Return the latest value that holds, a protected one first."""
        frontiers = self._calls.frontier(self._scope(address), types=HELD, include=["attributes"])
        held = [evidence for frontier in frontiers for evidence in frontier.in_force]
        return max(held, key=lambda evidence: (evidence.type == PROTECTED, *_age(evidence)), default=None)

    def _all(self, prefix: Namespace) -> list[Evidence]:
        """Return the memories that hold, of the owners that the labels name."""
        scopes = [self._owner_scope(prefix)] if prefix else self._first_owners()
        frontiers = (self._calls.frontier(scope, types=HELD, include=["attributes"]) for scope in scopes)
        return [evidence for batch in frontiers for frontier in batch for evidence in frontier.in_force]

    def _first_owners(self) -> list[dict[str, str]]:
        """Return what first labels can be, as scopes."""
        values: set[str] = set()
        with self._calls.subscribe(types=HELD, snapshot=True) as events:
            for event in events:
                if isinstance(event, SnapshotEnd):
                    break
                if isinstance(event, SnapshotDocument):
                    values |= {value for pairs in event.scope for value in pairs.get(self._owners[0], ())}
        return [{self._owners[0]: value} for value in sorted(values - {ANY})]

    def _memory(self, namespace: Namespace) -> MemoryCalls:
        scope = self._owner_scope(namespace)
        return MemoryCalls(self._calls, owner(scope.get("user"), scope.get("agent"), scope.get("session")))

    def _owner_scope(self, prefix: Namespace) -> dict[str, str]:
        """Return the owners that the first labels name."""
        return {key: _owner_label(label) for key, label in zip(self._owners, prefix, strict=False)}

    def _about(self, namespace: Namespace, key: str) -> MemoryKey:
        if not key:
            raise InvalidRequest("key", "The key of an item must not be empty.")
        labels = namespace[len(self._owners) :]
        about = MemoryKey(".".join(map(_encode, labels)) or ANY, _encode(key))
        if max(map(len, about.scope.values())) > KEY_BYTES_MAX:
            cure = (
                f"Each has at most {KEY_BYTES_MAX} bytes; a capital or a letter beyond ASCII counts as three or more."
            )
            raise InvalidRequest("key", f"The key {key!r:.40}... or its namespace is too long. {cure}")
        return about

    def _scope(self, address: Address) -> dict[str, str]:
        return dict.fromkeys(OWNERS, ANY) | self._owner_scope(address[0]) | self._about(*address).scope

    def _address(self, document: Evidence) -> Address | None:
        """Return where a memory is; `None` if no namespace leads there, so that `get` could not find it."""
        pairs = {key: values[0] for key, values in document.scope[0].items()} if document.scope else {}
        if document.type not in HELD or not {*OWNERS, "subject", "relation"} <= pairs.keys():
            return None
        owners = takewhile(lambda label: label != ANY, (pairs[key] for key in self._owners))
        subject = pairs["subject"]
        labels = [] if subject == ANY else [unquote(label) for label in subject.split(".")]
        address = (*owners, *labels), unquote(pairs["relation"])
        leads_there = address[0] and self._scope(address).items() <= pairs.items()
        return address if leads_there else None

    def _item(self, document: Evidence, address: Address) -> Item:
        """Return an item. A memory that the store did not write has its sentence as `text`, and its attributes."""
        value, created = document.attributes.get("item"), document.attributes.get("created_at")
        return Item(
            value=dict(value) if isinstance(value, Mapping) else {"text": document.text, **document.attributes},
            key=address[1],
            namespace=address[0],
            created_at=datetime.fromisoformat(created) if isinstance(created, str) else document.time,
            updated_at=document.time,
        )


def _owner_label(label: str) -> str:
    """Return a label as the value of a scope key. Raises `InvalidRequest` (`namespace`) if it cannot stay as it is."""
    try:
        text = owner(label, None, None).user
    except InvalidRequest as error:
        raise InvalidRequest("namespace", f"The label {label!r:.100} cannot be stored: {error}") from None
    if text != label:
        raise InvalidRequest("namespace", f"The label {label!r:.100} would be stored as {text!r:.100}. Use that.")
    return label


def _encode(text: str) -> str:
    """Return a text in small letters of which no two are the same: scopes do not tell cases apart, items do."""
    encoded = "".join(chr(byte) if byte in PLAIN else f"%{byte:02x}" for byte in text.encode())
    return encoded if encoded == " ".join(encoded.split()) else encoded.replace(" ", "%20")


def _age(document: Evidence) -> tuple[datetime, int, str]:
    return document.time, document.order, document.id


def _texts(value: object, path: str) -> list[str]:
    """Return what search reads at a path: at `$`, every text and number in the value."""
    if path != "$":
        return get_text_at_path(value, path)
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _texts(item, path)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item, path)]
    return [str(value)] if isinstance(value, str | int | float) and not isinstance(value, bool) else []


def _matches(value: object, wanted: object) -> bool:
    """Return whether a value is as a filter wants it, by the filters of LangGraph."""
    if isinstance(wanted, Mapping):
        operators = [name for name in wanted if str(name).startswith("$")]
        if not operators:
            return isinstance(value, Mapping) and all(_matches(value.get(name), item) for name, item in wanted.items())
        if unknown := set(wanted) - COMPARISONS.keys():
            raise InvalidRequest("filter", f"Unknown operator {sorted(unknown)[0]!r}: use {', '.join(COMPARISONS)}.")
        return all(_compares(value, name, limit) for name, limit in wanted.items())
    if isinstance(wanted, list | tuple):
        if not isinstance(value, list | tuple) or len(value) != len(wanted):
            return False
        return all(_matches(item, other) for item, other in zip(value, wanted, strict=True))
    return value == wanted


def _compares(value: object, operator: str, limit: object) -> bool:
    """Compare two values: numbers by size, others only for being equal."""
    if operator in ("$eq", "$ne"):
        return (value == limit) is (operator == "$eq")
    if not isinstance(value, int | float) or not isinstance(limit, int | float):
        return False
    return COMPARISONS[operator](value, limit)


def _begins(namespace: Namespace, prefix: Namespace) -> bool:
    return namespace[: len(prefix)] == prefix


def _has(namespace: Namespace, condition: MatchCondition) -> bool:
    """Return whether a namespace begins or ends as a condition says; `*` is any label."""
    path, count = condition.path, len(condition.path)
    labels = namespace[:count] if condition.match_type == "prefix" else namespace[-count:]
    return len(labels) == count and all(wanted in ("*", label) for label, wanted in zip(labels, path, strict=True))

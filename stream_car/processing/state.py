"""The decoded state of a shard: a mapping by the store's keys, and for the fold by document id and scope name.

Promise: an id, a scope's name and an entry are in memory once, no matter how many values refer to them. `None` means
that the store has no value for the key. A value that was set by key can be read by id or name. Cost: a dictionary
look-up. Sharing an entry when it is loaded costs one search in each of its scopes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import chain, islice
from math import ceil
from sys import intern
from typing import TypeVar, cast

import msgspec
from msgspec.structs import force_setattr

from stream_car.core.revisions import document_key
from stream_car.core.stored import EMPTY_DIRECTORY, Entry, Folder, Page, PageEntry, Scope, StoredDocument
from stream_car.core.timeline import FOLDER, scope_key, share_entry
from stream_car.errors import Halted
from stream_car.processing.headers import ForwardedOffsets, FrontierHeader, Header
from stream_car.processing.outcomes import OUTCOMES, OutcomePage
from stream_car.processing.quarantine import QUARANTINE, Quarantine, touched_keys

HEADER = b"h"
PENDING = b"w"

_DOCUMENT = document_key("")
_SCOPE = scope_key("")

K = TypeVar("K")
V = TypeVar("V")
Value = (
    Header
    | FrontierHeader
    | ForwardedOffsets
    | OutcomePage
    | Quarantine
    | StoredDocument
    | Scope
    | Page
    | Folder
    | None
)


class State(MutableMapping[bytes, Value]):
    """The values that a shard has loaded: `documents` by id, `scopes` by name, and `pages` and `others` by key.

    `others` are the headers, the queue and the outcomes. While `is_whole` is true, the store has no value that is
    missing here.
    """

    def __init__(self, *, is_whole: bool = False) -> None:
        self.is_whole = is_whole
        self.documents: dict[str, StoredDocument | None] = {}
        self.scopes: dict[str, Scope | None] = {}
        self.pages: dict[bytes, Page] = {}
        self.others: dict[bytes, Value] = {}

    def missing(self, name: str, scopes: Iterable[str]) -> list[bytes]:
        """Return the keys of the document and the scopes that must be loaded before they can be used."""
        if self.is_whole:
            return []
        keys = [document_key(name)] if name not in self.documents else []
        return keys + [scope_key(scope) for scope in scopes if scope not in self.scopes]

    def put(self, stored: StoredDocument) -> None:
        """Set the document of an id. The key is the document's own `id` object, so that it is in memory once."""
        name = stored.entry.id
        if not self.is_whole and self.documents.get(name) is None:
            self.documents.pop(name, None)
        self.documents[name] = stored

    def scope(self, name: str) -> Scope:
        """Return the scope of this name, or a new empty one if there is none."""
        scope = self.scopes.get(name)
        if scope is None:
            self.scopes.pop(name, None)
            scope = self.scopes[name] = Scope(name)
        return scope

    def shared_names(self, scopes: Sequence[str]) -> tuple[str, ...]:
        """Return the same names as objects that are already in memory: a member's tuple, or the scopes' own names."""
        if len(scopes) == 1 and (scope := self.scopes.get(scopes[0])) is not None and scope.entries:
            member = self.documents.get(scope.entries[0].id)
            if member is not None and len(member.scopes) == 1 and member.scopes[0] is scope.name:
                return member.scopes
        return tuple([scope.name if (scope := self.scopes.get(name)) is not None else name for name in scopes])

    def shrink(self, limit: int) -> None:
        """If there are more than `limit` values, evict the oldest until about seven eighths of the limit remain."""
        if len(self) <= limit:
            return
        share = 1 - limit * 7 / 8 / len(self)
        _evict(self.documents, share)
        _evict(self.scopes, share)
        _evict(self.pages, share)
        self.is_whole = False

    def __getitem__(self, key: bytes) -> Value:
        if key.startswith(_DOCUMENT):
            return self.documents[key[2:].decode()]
        if key.startswith(_SCOPE):
            return self.scopes[key[2:].decode()]
        return self.pages[key] if key in self.pages else self.others[key]

    def __setitem__(self, key: bytes, value: Value) -> None:
        if isinstance(value, StoredDocument):
            self.put(value)
            self._share(value)
        elif isinstance(value, list):
            self.pages[key] = page = cast(Page, value)
            if not key.startswith(FOLDER):
                self._share_all(page)
        elif key.startswith(_DOCUMENT):
            self.documents[key[2:].decode()] = None
        elif key.startswith(_SCOPE) and isinstance(value, Scope):
            self.scopes[value.name] = value
            value.directory = value.directory or EMPTY_DIRECTORY
            self._share_all(value.entries)
        elif key.startswith(_SCOPE):
            self.scopes[key[2:].decode()] = None
        else:
            self.others[key] = value

    def _share(self, stored: StoredDocument) -> None:
        """Make the scopes of a document that was just loaded share its entry."""
        force_setattr(stored, "scopes", self.shared_names(stored.scopes))
        force_setattr(stored.entry, "type", intern(stored.entry.type))
        for name in stored.scopes:
            scope = self.scopes.get(name)
            if scope is not None:
                share_entry(scope, self.pages, stored.entry)

    def _share_all(self, members: list[Entry]) -> None:
        """Replace members that were just loaded by the equal entries of documents that are in memory."""
        for index, member in enumerate(members):
            stored = self.documents.get(member.id)
            if stored is not None and stored.entry == member:
                members[index] = stored.entry
                force_setattr(stored, "scopes", self.shared_names(stored.scopes))
            else:
                force_setattr(member, "type", intern(member.type))

    def __contains__(self, key: object) -> bool:
        assert isinstance(key, bytes)
        if key.startswith(_DOCUMENT):
            return key[2:].decode() in self.documents
        if key.startswith(_SCOPE):
            return key[2:].decode() in self.scopes
        return key in self.pages or key in self.others

    def __delitem__(self, key: bytes) -> None:
        if key.startswith(_DOCUMENT):
            del self.documents[key[2:].decode()]
        elif key.startswith(_SCOPE):
            del self.scopes[key[2:].decode()]
        elif key in self.pages:
            del self.pages[key]
        else:
            del self.others[key]

    def __iter__(self) -> Iterator[bytes]:
        return chain(map(document_key, self.documents), map(scope_key, self.scopes), self.pages, self.others)

    def __len__(self) -> int:
        return len(self.documents) + len(self.scopes) + len(self.pages) + len(self.others)


def _evict(values: dict[K, V], share: float) -> None:
    """Remove this share of the values, oldest first."""
    for key in list(islice(values, ceil(share * len(values)))):
        del values[key]


_encode = msgspec.msgpack.Encoder().encode
_DECODERS: dict[bytes, Callable[[bytes], Value]] = {
    b"h": msgspec.msgpack.Decoder(Header).decode,
    b"f": msgspec.msgpack.Decoder(FrontierHeader).decode,
    b"r": msgspec.msgpack.Decoder(ForwardedOffsets).decode,
    b"d:": msgspec.msgpack.Decoder(StoredDocument).decode,
    b"s:": msgspec.msgpack.Decoder(Scope).decode,
    b"w": msgspec.msgpack.Decoder(Scope).decode,
    b"p:": msgspec.msgpack.Decoder(list[Entry]).decode,
    QUARANTINE: msgspec.msgpack.Decoder(Quarantine).decode,
    OUTCOMES: msgspec.msgpack.Decoder(OutcomePage).decode,
    FOLDER: msgspec.msgpack.Decoder(list[PageEntry]).decode,
}


def encode_value(value: Value) -> bytes | None:
    """Return the bytes of a value. `None` stays `None`, which deletes the key."""
    return None if value is None else _encode(value)


def decode_value(key: bytes, value: bytes | None) -> Value:
    """Return the value in the bytes under a key.

    Raises:
        Halted: the bytes are not a value of the kind that the key stands for (`damaged`).
    """
    if value is None:
        return None
    try:
        return _DECODERS[key[:2]](value)
    except (msgspec.DecodeError, KeyError) as error:
        reason = f"The stored value of {key!r} cannot be read. Rebuild the state from the log."
        raise Halted("damaged", reason) from error


def quarantined_keys(states: Iterable[Mapping[bytes, bytes]]) -> frozenset[bytes] | None:
    """Return the keys that the records in quarantine might have changed, or `None` if it may be any.

    `states` are what was read of each shard, with the key `QUARANTINE`.
    """
    values = [decode_value(QUARANTINE, raw[QUARANTINE]) for raw in states if QUARANTINE in raw]
    return touched_keys(value for value in values if isinstance(value, Quarantine)) if values else frozenset()

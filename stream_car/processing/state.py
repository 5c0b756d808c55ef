"""What a shard has decoded: a mapping by the store's keys, and for the fold by id and by name.

Promise: an id, a scope's name and an entry are kept once, however many places speak of them; `None`
says that the store has nothing there. Whoever reads by id or name finds what was written by key.
Cost: a dictionary look-up; sharing an entry as it is read costs one search in each of its scopes.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from itertools import chain, islice
from math import ceil
from sys import intern
from typing import TypeVar, cast

import msgspec
from msgspec.structs import force_setattr

from stream_car.core.revisions import document_key
from stream_car.core.stored import EMPTY_DIRECTORY, Entry, Folder, Page, PageEntry, Scope, StoredDocument
from stream_car.core.timeline import FOLDER, scope_key, share
from stream_car.errors import Halted
from stream_car.processing.headers import ForwardedOffsets, FrontierHeader, Header

HEADER = b"h"
PENDING = b"w"

_HELD = document_key("")
_SCOPE = scope_key("")


Name = TypeVar("Name")
Kept = TypeVar("Kept")
Value = Header | FrontierHeader | ForwardedOffsets | StoredDocument | Scope | Page | Folder | None


class State(MutableMapping[bytes, Value]):
    """`held` by id, `scopes` by name, and by key the `pages` and the `others`: the header and the queue.

    While it `is_whole` the store has nothing that is not here.
    """

    def __init__(self, *, is_whole: bool = False) -> None:
        self.is_whole = is_whole
        self.documents: dict[str, StoredDocument | None] = {}
        self.scopes: dict[str, Scope | None] = {}
        self.pages: dict[bytes, Page] = {}
        self.others: dict[bytes, Value] = {}

    def missing(self, name: str, scopes: Iterable[str]) -> list[bytes]:
        """The keys of an id and of scopes that must be read before anyone can tell what they are."""
        if self.is_whole:
            return []
        keys = [document_key(name)] if name not in self.documents else []
        return keys + [scope_key(scope) for scope in scopes if scope not in self.scopes]

    def keep(self, stored: StoredDocument) -> None:
        """What an id is known as from now on; the document's own id is the key, so that it is kept once."""
        name = stored.entry.id
        if not self.is_whole and self.documents.get(name) is None:
            self.documents.pop(name, None)
        self.documents[name] = stored

    def scope(self, name: str) -> Scope:
        """The scope of this name; one that was never seen begins empty."""
        scope = self.scopes.get(name)
        if scope is None:
            self.scopes.pop(name, None)
            scope = self.scopes[name] = Scope(name)
        return scope

    def names(self, scopes: Sequence[str]) -> tuple[str, ...]:
        """The same names, as they are kept already: those of a member of the scope, or the scopes' own."""
        if len(scopes) == 1 and (scope := self.scopes.get(scopes[0])) is not None and scope.entries:
            member = self.documents.get(scope.entries[0].id)
            if member is not None and len(member.scopes) == 1 and member.scopes[0] is scope.name:
                return member.scopes
        return tuple([scope.name if (scope := self.scopes.get(name)) is not None else name for name in scopes])

    def shrink(self, limit: int) -> None:
        """Forget what is longest known where it is more than `most`."""
        if len(self) <= limit:
            return
        part = 1 - limit * 7 / 8 / len(self)
        _forget(self.documents, part)
        _forget(self.scopes, part)
        _forget(self.pages, part)
        self.is_whole = False

    def __getitem__(self, key: bytes) -> Value:
        if key.startswith(_HELD):
            return self.documents[key[2:].decode()]
        if key.startswith(_SCOPE):
            return self.scopes[key[2:].decode()]
        return self.pages[key] if key in self.pages else self.others[key]

    def __setitem__(self, key: bytes, value: Value) -> None:
        if isinstance(value, StoredDocument):
            self.keep(value)
            self._share(value)
        elif isinstance(value, list):
            self.pages[key] = page = cast(Page, value)
            if not key.startswith(FOLDER):
                self._share_all(page)
        elif key.startswith(_HELD):
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
        """A document that was just read is the member that its scopes have."""
        force_setattr(stored, "scopes", self.names(stored.scopes))
        force_setattr(stored.entry, "type", intern(stored.entry.type))
        for name in stored.scopes:
            scope = self.scopes.get(name)
            if scope is not None:
                share(scope, self.pages, stored.entry)

    def _share_all(self, members: list[Entry]) -> None:
        """Members that were just read are the documents that are known, where they are."""
        for at, member in enumerate(members):
            held = self.documents.get(member.id)
            if held is not None and held.entry == member:
                members[at] = held.entry
                force_setattr(held, "scopes", self.names(held.scopes))
            else:
                force_setattr(member, "type", intern(member.type))

    def __contains__(self, key: object) -> bool:
        assert isinstance(key, bytes)
        if key.startswith(_HELD):
            return key[2:].decode() in self.documents
        if key.startswith(_SCOPE):
            return key[2:].decode() in self.scopes
        return key in self.pages or key in self.others

    def __delitem__(self, key: bytes) -> None:
        if key.startswith(_HELD):
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


def _forget(kept: dict[Name, Kept], part: float) -> None:
    for name in list(islice(kept, ceil(part * len(kept)))):
        del kept[name]


_encode = msgspec.msgpack.Encoder().encode
_DECODERS: dict[bytes, Callable[[bytes], Value]] = {
    b"h": msgspec.msgpack.Decoder(Header).decode,
    b"f": msgspec.msgpack.Decoder(FrontierHeader).decode,
    b"r": msgspec.msgpack.Decoder(ForwardedOffsets).decode,
    b"d:": msgspec.msgpack.Decoder(StoredDocument).decode,
    b"s:": msgspec.msgpack.Decoder(Scope).decode,
    b"w": msgspec.msgpack.Decoder(Scope).decode,
    b"p:": msgspec.msgpack.Decoder(list[Entry]).decode,
    FOLDER: msgspec.msgpack.Decoder(list[PageEntry]).decode,
}


def encode_value(value: Value) -> bytes | None:
    """The bytes of a value; `None` stays `None`, which deletes."""
    return None if value is None else _encode(value)


def decode_value(key: bytes, value: bytes | None) -> Value:
    """The value under a key. Raises `Halted` (`damaged`) where the bytes are not what the key promises."""
    if value is None:
        return None
    try:
        return _DECODERS[key[:2]](value)
    except (msgspec.DecodeError, KeyError) as error:
        raise Halted(
            "damaged", f"the stored value of {key!r} cannot be read; rebuild the state from the log"
        ) from error

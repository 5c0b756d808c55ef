"""Whose memory it is, and what a memory is about: the scope keys of the `memory` pack."""

import unicodedata
from collections.abc import Mapping
from hashlib import blake2b

from msgspec import Struct

from stream_car.codec import unicode
from stream_car.errors import InvalidDocument, InvalidRequest

ANY = "*"  # the value of a key that does not apply
SEPARATOR = "::"
KEY_BYTES_MAX = 500
NOTE = "note"  # the relation of memories without a key
IS = "is"  # the relation of a key that names none


class Owner(Struct, frozen=True):
    """Whose memory it is. Memories of different owners never meet."""

    user: str = ANY
    agent: str = ANY
    session: str = ANY

    @property
    def scope(self) -> dict[str, str]:
        """The pairs that every memory of this owner has in its scope."""
        return {"user": self.user, "agent": self.agent, "session": self.session}

    @property
    def given(self) -> dict[str, str]:
        """The pairs of the ids that are given."""
        return {key: value for key, value in self.scope.items() if value != ANY}


def owner(user_id: str | None, agent_id: str | None, run_id: str | None, default: Owner | None = None) -> Owner:
    """Return the owner with these ids; the others are those of `default`. Raises `InvalidRequest` for a bad one."""
    default = default or Owner()
    return Owner(
        _part("user_id", user_id, default.user),
        _part("agent_id", agent_id, default.agent),
        _part("run_id", run_id, default.session),
    )


class MemoryKey(Struct, frozen=True):
    """What a memory is about. In text: `subject::relation`."""

    subject: str
    relation: str

    def __str__(self) -> str:
        return f"{self.subject}{SEPARATOR}{self.relation}"

    @property
    def scope(self) -> dict[str, str]:
        """The pairs of the key in a scope."""
        return {"subject": self.subject, "relation": self.relation}


def parse_key(text: str) -> MemoryKey:
    """Return the key that a text names: `subject::relation`, or a subject alone.

    Raises `InvalidRequest` (`key`) for an empty part, a control character, or a part of more than 500 bytes.
    """
    subject, separator, relation = text.rpartition(SEPARATOR)
    if not separator:
        return MemoryKey(_checked("key", text), IS)
    return MemoryKey(_checked("key", subject), _checked("key", relation))


def note_key(text: str) -> MemoryKey:
    """Return the key of a text that has none: its own, so that the same text again reinforces it."""
    return MemoryKey(
        f"note {blake2b(comparable(text).encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}", NOTE
    )


def key_in(scope: Mapping[str, str]) -> MemoryKey:
    """Return the key of a memory from the scope of its document."""
    return MemoryKey(scope["subject"], scope["relation"])


def comparable(value: str) -> str:
    """Return a value as values are compared: without differences in case, width and spaces."""
    return " ".join(unicodedata.normalize("NFKC", value).casefold().split())


def _part(name: str, value: str | None, default: str) -> str:
    if value is None:
        return default
    if value == ANY:
        raise InvalidRequest(name, f"`{name}` cannot be {ANY!r}, which stands for none. Omit it instead.")
    return _checked(name, value)


def _checked(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequest(name, f"`{name}` must be a text that is not empty.")
    try:
        text = unicode.normalize(value.strip(), f"`{name}`")
    except InvalidDocument as error:
        raise InvalidRequest(name, error.reason) from None
    if len(text.encode("utf-8", "surrogatepass")) > KEY_BYTES_MAX:
        raise InvalidRequest(name, f"`{name}` has more than {KEY_BYTES_MAX} bytes. Shorten it.")
    return text

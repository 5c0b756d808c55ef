"""What a publisher sent, to a statement: the strict decoder.

Promise: equal bytes get equal verdicts everywhere; every refusal is an `InvalidDocument` with a stable
code, and it names the document as soon as its id is known. What needs more than one document (conflicts,
unknown types, the number of scopes, the future, cycles, routing) is judged by the intake. Cost: about
10 microseconds for 1 KB.

Fields. `id`, `type`, `time` must be there. `order`, `revision`, `scope`, `supersedes`, `superseded_by`,
`amends`, `title`, `text`, `source`, `url` may be; null is not a way to leave one out. Every other field is
an attribute, and so is every member of the object `attributes`; a name in both places is refused (`field`).
`v` is the major version of this format: absent or 1. Ids and links are opaque and kept byte for byte,
because a record's key must equal its id; a scope is kept in normal form C, and where that changed a
word the publisher's spelling stays in the attribute `scope_original`. A time finer than microseconds is
cut and stays in `time_original`.

Retractions. `retracted: true` needs nothing but the id, and a `revision` to retract another than the one
then stored. The rest of such an object must be sound JSON and is not read.

A document may come in a CloudEvent, structured or in binary mode: `envelopes` says what it lends.
"""

from collections.abc import Sequence
from sys import intern
from typing import Any

from stream_car.codec.cloudevents import unwrap
from stream_car.codec.json_scan import DEFAULTS, GREATEST, Limits, parse
from stream_car.codec.times import finer_than_microseconds, parse_time
from stream_car.codec.unicode import has_control, is_normal, normalize, shown
from stream_car.core.documents import Document, Retraction, ScopeMap, Statement
from stream_car.errors import InvalidDocument

FORMAT = 1

_LINKS = ("supersedes", "superseded_by", "amends")
_LINES = ("type", "title", "source", "url")
_OTHERS = ("id", "time", "order", "revision", "scope", "text", "retracted", "attributes", "v")
_FIELDS = frozenset((*_LINKS, *_LINES, *_OTHERS))
_RESERVED_KEYS = frozenset({"document", "amended"})  # the scopes in which explicit links are kept


def decode(
    value: bytes | None,
    *,
    key: bytes | None = None,
    headers: Sequence[tuple[str, bytes]] = (),
    limits: Limits = DEFAULTS,
) -> Statement:
    """The document or retraction that a record holds; raises `InvalidDocument` and nothing else.

    A null value retracts the document that the key names. Headers are weighed, and those of CloudEvents read.
    """
    name: str | None = None
    try:
        if headers:
            _require_light(headers, limits)
        if value is None:
            return Retraction(id=_key_id(key, limits))
        said = unwrap(parse(value, limits), headers)
        version = said.get("v", FORMAT)
        if version.__class__ is not int or version != FORMAT:
            raise InvalidDocument("version", f"`v` must be {FORMAT} or absent; this reader knows no other format")
        name = _id(said.get("id"), "`id`", limits)
        if key is not None and key != name.encode():
            raise InvalidDocument("key", "the record's key must be the document's id in UTF-8, or absent")
        retracted = said.get("retracted", False)
        if retracted is True:
            return Retraction(id=name, revision=_revision(said) if "revision" in said else None)
        if retracted is not False:
            raise InvalidDocument("type", "`retracted` must be true or false")
        return _document(name, said, limits)
    except InvalidDocument as refusal:
        if name is None:
            raise
        raise InvalidDocument(refusal.code, refusal.reason, name) from None


def _document(name: str, said: dict[str, Any], limits: Limits) -> Document:
    time_text = said.get("time")
    if time_text.__class__ is not str:
        raise InvalidDocument("time", "`time` must be an RFC 3339 text such as 2024-01-31T09:30:00Z")
    try:
        time = parse_time(time_text)
    except ValueError as error:
        raise InvalidDocument("time", f"`time` is {shown(time_text)}: {error}") from None
    kind = _line(said, "type")
    if not kind or _exceeds(kind, limits.id):
        raise InvalidDocument("type", f"`type` must be a text of 1 to {limits.id} bytes")
    text = said.get("text", "")
    if text.__class__ is not str:
        raise InvalidDocument("type", "`text` must be a string")
    if "\0" in text:
        raise InvalidDocument("control_char", "`text` holds a NUL character")
    if _exceeds(text, limits.text):
        raise InvalidDocument("size", f"`text` may have {limits.text} bytes; cut it and keep the rest behind `url`")
    attributes = _attributes(said)
    if finer_than_microseconds(time_text):
        _keep(attributes, "time_original", time_text)
    scope: tuple[ScopeMap, ...] = ()
    if "scope" in said:
        scope = _scope(said["scope"], limits)
        if _respelled(said["scope"]):
            _keep(attributes, "scope_original", said["scope"])
    supersedes, superseded_by, amends = _links(said, name, limits)
    return Document(
        id=name,
        type=intern(kind),  # types are few: each is kept once in memory
        time=time,
        order=_integer(said["order"], "`order`") if "order" in said else 0,
        revision=_revision(said) if "revision" in said else 1,
        scope=scope,
        supersedes=supersedes,
        superseded_by=superseded_by,
        amends=amends,
        attributes=attributes,
        title=_line(said, "title"),
        text=text,
        source=_line(said, "source"),
        url=_line(said, "url"),
    )


def _require_light(headers: Sequence[tuple[str, bytes]], limits: Limits) -> None:
    if (
        len(headers) > limits.headers
        or sum(len(name.encode(errors="surrogatepass")) + len(content) for name, content in headers)
        > limits.header_bytes
    ):
        raise InvalidDocument(
            "size", f"a record may have {limits.headers} headers of {limits.header_bytes} bytes together"
        )


def _key_id(key: bytes | None, limits: Limits) -> str:
    if key is None:
        raise InvalidDocument("empty", "a null value retracts the document its key names, and there is no key")
    try:
        return _id(key.decode(), "the key", limits)
    except UnicodeDecodeError:
        raise InvalidDocument("encoding", "the key of a retraction must be the id in UTF-8") from None


def _id(text: Any, what: str, limits: Limits) -> str:
    if text.__class__ is not str or not text or _exceeds(text, limits.id):
        raise InvalidDocument("id", f"{what} must be a text of 1 to {limits.id} bytes")
    if has_control(text):
        raise InvalidDocument("control_char", f"{what} holds a control character")
    return text


def _line(said: dict[str, Any], field: str) -> str:
    text = said.get(field, "")
    if text.__class__ is not str:
        raise InvalidDocument("type", f"`{field}` must be a string")
    if has_control(text):
        raise InvalidDocument("control_char", f"`{field}` must be one line without control characters")
    return text


def _integer(number: Any, what: str) -> int:
    if number.__class__ is not int:
        raise InvalidDocument("type", f"{what} must be an integer, written without quotes, point or exponent")
    return number


def _revision(said: dict[str, Any]) -> int:
    revision = _integer(said["revision"], "`revision`")
    if not 1 <= revision <= GREATEST:
        raise InvalidDocument("range", "revisions count from 1")
    return revision


def _links(said: dict[str, Any], name: str, limits: Limits) -> list[tuple[str, ...]]:
    """The ids that each kind of link names, each once."""
    links: list[tuple[str, ...]] = []
    room = limits.links
    for field in _LINKS:
        if field not in said:
            links.append(())
            continue
        named = said[field]
        if named.__class__ is not list:
            raise InvalidDocument("type", f"`{field}` must be a list of ids")
        room -= len(named)
        if room < 0:
            raise InvalidDocument("size", f"a document may name {limits.links} others")
        ids = dict.fromkeys([_id(other, f"a member of `{field}`", limits) for other in named])
        if name in ids:
            raise InvalidDocument("self", f"`{field}` names the document itself")
        links.append(tuple(ids))
    return links


def _attributes(said: dict[str, Any]) -> dict[str, Any]:
    unknown = {} if said.keys() <= _FIELDS else {field: said[field] for field in said if field not in _FIELDS}
    if "attributes" not in said:
        return unknown
    explicit = said["attributes"]
    if explicit.__class__ is not dict:
        raise InvalidDocument("type", "`attributes` must be an object")
    for field in explicit:
        if field in unknown:
            raise InvalidDocument("field", f"{shown(field)} stands both beside and in `attributes`")
    return unknown | explicit


def _keep(attributes: dict[str, Any], name: str, original: Any) -> None:
    if name in attributes:
        raise InvalidDocument("field", f"the attribute `{name}` is where the publisher's own spelling is kept")
    attributes[name] = original


def _scope(said: Any, limits: Limits) -> tuple[ScopeMap, ...]:
    """The maps in normal form, each once. An empty map claims nothing and is dropped."""
    if said.__class__ is dict:
        said = [said]
    elif said.__class__ is not list:
        raise InvalidDocument("scope", "`scope` must be a map, or a list of maps, from keys to values")
    parts: dict[frozenset[tuple[str, tuple[str, ...]]], ScopeMap] = {}
    for claimed in said:
        if claimed.__class__ is not dict:
            raise InvalidDocument("scope", "each member of `scope` must be a map from keys to values")
        part = _scope_map(claimed, limits)
        if len(said) == 1:
            return (part,) if part else ()
        if part:
            parts.setdefault(frozenset(part.items()), part)
    return tuple(parts.values())


def _scope_map(claimed: dict[str, Any], limits: Limits) -> dict[str, tuple[str, ...]]:
    part: dict[str, tuple[str, ...]] = {}
    for key, values in claimed.items():
        name = _scope_key(key, limits)
        if name in _RESERVED_KEYS:
            raise InvalidDocument("scope", f"the scope key `{name}` is reserved; use `supersedes` or `amends`")
        if name in part:
            raise InvalidDocument("duplicate_key", f"the scope key {shown(name)} comes twice in normal form")
        if values.__class__ is str:
            part[name] = (_scope_value(values, name, limits),)
            continue
        if values.__class__ is not list or not values:
            raise InvalidDocument("scope", f"the scope key {shown(name)} needs a text or a list of texts")
        found = tuple([_scope_value(value, name, limits) for value in values])
        part[name] = found if len(found) == 1 else tuple(dict.fromkeys(found))
    return part


def _scope_key(key: str, limits: Limits) -> str:
    if key.isascii() and key.isidentifier() and len(key) <= limits.id:
        return key
    if not key or any(sign in key for sign in '=," \u00a0'):
        raise InvalidDocument("scope", f'the scope key {shown(key)} must be a word without spaces and any of = , "')
    return _word(key, "the scope key", limits.id)


def _scope_value(value: Any, name: str, limits: Limits) -> str:
    if value.__class__ is not str or not value:
        raise InvalidDocument("scope", f"each value of the scope key {shown(name)} must be a text that is not empty")
    return _word(value, "the scope value", limits.scope_value)


def _word(text: str, what: str, most: int) -> str:
    """The text in normal form; its size counts before, because long runs of accents are slow to sort, and after."""
    if not _exceeds(text, most):
        word = normalize(text, what)
        if word is text or not _exceeds(word, most):
            return word
    raise InvalidDocument("size", f"{what} {shown(text)} may have {most} bytes")


def _exceeds(text: str, most: int) -> bool:
    return len(text) > most // 4 and len(text.encode()) > most


def _respelled(said: Any) -> bool:
    """Whether normal form changed any key or value of an accepted scope."""
    for claimed in [said] if said.__class__ is dict else said:
        for key, values in claimed.items():
            if not is_normal(key) or not all(map(is_normal, [values] if values.__class__ is str else values)):
                return True
    return False

"""The names of scopes: how a name is made, and which pairs it contains.

Promise: `scope_name` and `scope_parts` are inverses, and equal scopes have equal names. Cost: about a microsecond.
"""

from collections.abc import Iterable, Iterator

import msgspec

LINK = "document"  # the scope `document=<id>` contains the documents that void this id by name
AMENDED = "amended"  # the scope `amended=<id>` contains the documents that amend this id by name
RECORD = "record"  # every document that has this key joins `record=<value>`
ALIAS = ""  # the key under which the index lists the scope of a record, or the link scope of an id, by other names
RESERVED_KEYS = frozenset({LINK, AMENDED})

_QUOTED = frozenset('",=\\')


def part_name(key: str, value: str) -> str:
    """Return `key=value`; a value with a comma, an equals sign or a quote is written as a JSON string."""
    if value.isalnum():
        return f"{key}={value}"
    if not _QUOTED.isdisjoint(value) or value[:1] == " " or value[-1:] == " ":
        return f"{key}={msgspec.json.encode(value).decode()}"
    return f"{key}={value}"


def scope_name(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the name of a scope: its pairs, sorted, as in `cve=CVE-1, package=axios`."""
    return ", ".join(part_name(key, value) for key, value in sorted(pairs))


def scope_parts(scope: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a scope's name, the inverse of `scope_name`. Raises `ValueError` if the text is no name."""
    if '"' not in scope:  # most names: nothing is quoted, so commas separate the parts
        parts = [part.partition("=") for part in scope.split(", ")]
        if all(equals and key.isidentifier() and "," not in value for key, equals, value in parts):
            return tuple([(key, value) for key, _, value in parts])
    return tuple(_parts(scope))


def is_scope_name(text: str) -> bool:
    """Return whether a scope may have this name."""
    try:
        return bool(scope_parts(text))
    except ValueError:
        return False


def _parts(scope: str) -> Iterator[tuple[str, str]]:
    index = 0
    while index < len(scope):
        key, equals, rest = scope[index:].partition("=")
        if not equals or not key.strip():
            raise ValueError(f"Expected KEY=VALUE, not {scope[index:]!r}.")
        if rest.startswith('"'):
            end = _closing_quote(rest)
            value = msgspec.json.decode(rest[: end + 1].encode(), type=str)
            after = rest[end + 1 :]
            if after and not after.startswith(","):
                raise ValueError(f"Expected a comma after {value!r}.")
            index += len(key) + 1 + end + 1
        else:
            value = rest.split(",", 1)[0]
            index += len(key) + 1 + len(value)
        yield key.strip(), value
        if index < len(scope):
            index += 1  # the comma
            while index < len(scope) and scope[index] == " ":
                index += 1


def _closing_quote(text: str) -> int:
    index = 1
    while index < len(text):
        if text[index] == "\\":
            index += 2
        elif text[index] == '"':
            return index
        else:
            index += 1
    raise ValueError("A quoted value has no closing quotation mark.")


def link_scope(name: str) -> str:
    """Return the scope of the documents that void the document or record `name` by name."""
    return part_name(LINK, name)


def record_scope(name: str) -> str:
    """Return the scope of the editions of a record."""
    return part_name(RECORD, name)


def amended_scope(name: str) -> str:
    """Return the scope of the documents that amend the document or record `name` by name."""
    return part_name(AMENDED, name)


def keys_of(scope: str) -> str:
    """Return the keys of a scope's name, as one string."""
    if '"' in scope:
        return ", ".join(key for key, _ in scope_parts(scope))
    if ", " not in scope:
        return scope.partition("=")[0]
    return ", ".join(part.partition("=")[0] for part in scope.split(", "))

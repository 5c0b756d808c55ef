"""The names of scopes: what they are made of, and what a name says.

Promise: `scope_name` and `scope_parts` are inverses, and equal scopes have equal names. Cost: a microsecond or so.
"""

from collections.abc import Iterable, Iterator

import msgspec

LINK = "document"  # the scope `document=<id>` holds those who void that id by name


AMENDED = "amended"  # the scope `amended=<id>` holds those who amend that id by name


RECORD = "record"  # every document that has this key joins `record=<value>`


RESERVED_KEYS = frozenset({LINK, AMENDED})


_QUOTED = frozenset('",=\\')


def part_name(key: str, value: str) -> str:
    """`key=value`; a value with a comma, an equals sign or a quote is written as a JSON string."""
    if value.isalnum():
        return f"{key}={value}"
    if not _QUOTED.isdisjoint(value) or value[:1] == " " or value[-1:] == " ":
        return f"{key}={msgspec.json.encode(value).decode()}"
    return f"{key}={value}"


def scope_name(pairs: Iterable[tuple[str, str]]) -> str:
    """A scope's identity: its sorted pairs, `cve=CVE-1, package=axios`."""
    return ", ".join(part_name(key, value) for key, value in sorted(pairs))


def scope_parts(scope: str) -> tuple[tuple[str, str], ...]:
    """The pairs of a scope's name, the inverse of `scope_name`; `ValueError` where the text is none."""
    if '"' not in scope:  # most names: nothing is quoted, and the parts are what stands between commas
        parts = [part.partition("=") for part in scope.split(", ")]
        if all(equals and key.isidentifier() and "," not in value for key, equals, value in parts):
            return tuple([(key, value) for key, _, value in parts])
    return tuple(_parts(scope))


def _parts(scope: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(scope):
        key, equals, rest = scope[at:].partition("=")
        if not equals or not key.strip():
            raise ValueError(f"expected key=value, got {scope[at:]!r}")
        if rest.startswith('"'):
            end = _closing_quote(rest)
            value = msgspec.json.decode(rest[: end + 1].encode(), type=str)
            after = rest[end + 1 :]
            if after and not after.startswith(","):
                raise ValueError(f"expected a comma after {value!r}")
            at += len(key) + 1 + end + 1
        else:
            value = rest.split(",", 1)[0]
            at += len(key) + 1 + len(value)
        yield key.strip(), value
        if at < len(scope):
            at += 1  # the comma
            while at < len(scope) and scope[at] == " ":
                at += 1


def _closing_quote(text: str) -> int:
    at = 1
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == '"':
            return at
        else:
            at += 1
    raise ValueError("a quoted value does not end")


def link_scope(name: str) -> str:
    """The scope of those who void the document or record called `name`."""
    return part_name(LINK, name)


def record_scope(name: str) -> str:
    """The scope of the editions of a record."""
    return part_name(RECORD, name)


def amended_scope(name: str) -> str:
    """The scope of those who amend the document or record called `name`."""
    return part_name(AMENDED, name)


def keys_of(scope: str) -> str:
    """The keys of a scope's name, as one string."""
    if '"' in scope:
        return ", ".join(key for key, _ in scope_parts(scope))
    if ", " not in scope:
        return scope.partition("=")[0]
    return ", ".join(part.partition("=")[0] for part in scope.split(", "))

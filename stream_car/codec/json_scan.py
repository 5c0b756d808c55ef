"""Parse JSON strictly: each text has one meaning and gets one verdict.

Promise: sizes, depth and numbers are checked on the text before it is parsed, in linear time and without recursion,
so that a verdict depends only on the bytes. If several things are wrong, the code is that of the first of these
checks to fail: size (or depth, if the bytes within the limit already exceed it), encoding, depth, number of values,
integers, syntax, duplicate keys. A parser that runs out of stack raises `RecursionError`, which never becomes a
verdict. Cost: about 5 microseconds for 1 KB.
"""

import re
from math import isinf
from typing import Any

import msgspec
from msgspec import Struct

from stream_car.errors import InvalidDocument

GREATEST = 2**53 - 1  # the largest integer that every JSON reader keeps exact


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of one document; sizes are in bytes of UTF-8. A larger document is rejected, never truncated."""

    document: int = 256 * 1024
    depth: int = 32  # an object without nested objects or lists has depth 1
    nodes: int = 10_000  # values of every kind; keys do not count
    text: int = 192 * 1024
    line: int | None = 4096  # of `title`, `source` and `url`, which every change repeats; `None`: no limit
    id: int = 256
    scope_value: int = 1024
    links: int = 256  # of `supersedes`, `superseded_by` and `amends` together, repeats included
    headers: int = 1000
    header_bytes: int = 64 * 1024


DEFAULT_LIMITS = Limits()
EARLIER_LIMITS = Limits(line=None)  # what a log may hold that earlier releases have written

_EMPTY = re.compile(rb"\[[ \t\r\n]*\]|\{[ \t\r\n]*\}")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_NOT_DIGITS = bytes(set(range(256)) - set(b"0123456789"))
_LONG_DIGITS = re.compile(rb"[0-9]{16}")
_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NOT_A_NUMBER = re.compile(rb"NaN|Infinity")
# Surrogate pairs and other escapes match without the group, so the group holds a surrogate that has no partner.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_DIGITS_MAX = 40
_NUMBER_CHARACTERS_MAX = 400

_decode = msgspec.json.Decoder().decode


def parse(value: bytes, limits: Limits = DEFAULT_LIMITS) -> dict[str, Any]:
    """Return the JSON object in these bytes.

    Raises:
        InvalidDocument: the bytes are not one JSON object within the limits.
    """
    if len(value) > limits.document:
        _require_depth(outline(value[: limits.document]), limits.depth)
        raise InvalidDocument("size", f"A document may have at most {limits.document} bytes. Shorten or omit its text.")
    if not value.isascii():
        _require_utf8(value)
    structure = outline(value)
    opened = structure.count(b"[") + structure.count(b"{")
    if opened > limits.depth:
        _require_depth(structure, limits.depth)
    if 1 + opened + structure.count(b",") > limits.nodes:
        _require_few_nodes(structure, opened, limits.nodes)
    if len(structure.translate(None, _NOT_DIGITS)) > 15 and _LONG_DIGITS.search(structure) is not None:
        _require_exact_integers(structure)
    try:
        tree = _decode(value)
    except msgspec.DecodeError as error:
        raise _diagnose(value, structure, str(error)) from None
    if tree.__class__ is not dict:
        raise InvalidDocument("not_object", "A document must be a JSON object.")
    if not _has_keys(tree, structure.count(b":")):
        raise InvalidDocument("duplicate_key", "An object contains the same key twice. Send each key once.")
    return tree


def outline(value: bytes) -> bytes:
    """Return the text with every string replaced by one quotation mark, so that structure and numbers remain."""
    if b'\\"' in value:  # without escaped backslashes, only an escaped quotation mark has one before it
        value = value.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b'"'.join(value.split(b'"')[::2])


def depth_change(structure: bytes) -> int:
    """Return the number of brackets that an outline opens minus the number that it closes."""
    return structure.count(b"[") + structure.count(b"{") - structure.count(b"]") - structure.count(b"}")


def _require_depth(structure: bytes, depth: int) -> None:
    level = 0
    for bracket in structure.translate(None, _NOT_BRACKETS):
        if bracket in b"[{":
            level += 1
            if level > depth:
                raise InvalidDocument("depth", f"Objects and lists may be nested {depth} levels deep.")
        else:
            level -= 1


def _require_few_nodes(structure: bytes, opened: int, nodes: int) -> None:
    # Each value except the first follows a comma or the opening bracket of a container that is not empty.
    empty = sum(1 for _ in _EMPTY.finditer(structure))
    if 1 + structure.count(b",") + opened - empty > nodes:
        raise InvalidDocument("size", f"A document may have at most {nodes} values. Split it.")


def _require_utf8(value: bytes) -> None:
    if value.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        raise InvalidDocument("encoding", "The text begins with a byte order mark. Send UTF-8 without one.")
    try:
        value.decode()
    except UnicodeDecodeError as error:
        raise InvalidDocument("encoding", f"The byte at {error.start} is not valid UTF-8. Send UTF-8.") from None


def _require_exact_integers(structure: bytes) -> None:
    for match in _NUMBER.finditer(structure):
        token, (fraction, exponent) = match.group(), match.groups()
        if fraction is not None or exponent is not None:
            if len(token) > _NUMBER_CHARACTERS_MAX or isinf(float(token)):
                raise InvalidDocument("number", "A number is too long or too large. Send it as a string.")
        elif len(token) > _DIGITS_MAX:
            raise InvalidDocument("number", f"An integer has more than {_DIGITS_MAX} digits. Send it as a string.")
        elif abs(int(token)) > GREATEST:
            reason = "An integer is beyond 2^53-1, where JSON readers round it. Send it as a string."
            raise InvalidDocument("range", reason)


def _diagnose(value: bytes, structure: bytes, parser_message: str) -> InvalidDocument:
    """Return why the parser rejected the text. The code follows from the bytes, not from the parser's message."""
    if not value.strip(b" \t\r\n"):
        return InvalidDocument("empty", "The value is empty. To retract a document, send a null value with its key.")
    if b"\x00" in value[:4]:
        return InvalidDocument("encoding", "The text is UTF-16 or UTF-32. Send UTF-8.")
    if any(match.group(1) for match in _ESCAPE.finditer(value)):
        return InvalidDocument("encoding", "An escaped surrogate has no partner. Send whole characters.")
    numbers = (match.group() for match in _NUMBER.finditer(structure))
    if _NOT_A_NUMBER.search(structure) or any(isinf(float(number)) for number in numbers):
        return InvalidDocument("number", "NaN, infinity and numbers beyond 1.7e308 are not accepted. Omit them.")
    return InvalidDocument("syntax", f"The text is not one JSON value: {parser_message}.")


def _has_keys(tree: dict[str, Any], colons: int) -> bool:
    """Return whether the tree has a key for each colon outside strings. A repeated key appears in it only once."""
    count = 0
    nodes: list[Any] = [tree]
    for node in nodes:  # the list grows during the loop
        if node.__class__ is dict:
            count += len(node)
            if count == colons:
                return True
            node = node.values()
        nodes += [value for value in node if value.__class__ is dict or value.__class__ is list]
    return False

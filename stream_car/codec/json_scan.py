"""JSON text to a tree, strictly: one meaning for each text, and one verdict on each text.

Promise: sizes, depth and numbers are judged on the text before a parser sees it, in linear time and
without recursion, so that a verdict depends on the bytes alone. When several things are wrong the
code is that of the first of: size (or depth, where the first bytes show it), encoding, depth, number
of values, integers, syntax, duplicate keys. A parser that runs out of stack raises `RecursionError`,
which is never turned into a verdict. Cost: about 5 microseconds for 1 KB.
"""

import re
from math import isinf
from typing import Any

import msgspec
from msgspec import Struct

from stream_car.errors import InvalidDocument

GREATEST = 2**53 - 1  # what every JSON reader keeps exact


class Limits(Struct, frozen=True, kw_only=True):
    """How much one document may be; all sizes are bytes of UTF-8. Beyond them it is refused, never cut."""

    document: int = 256 * 1024
    depth: int = 32  # a lone object has depth 1
    nodes: int = 10_000  # values of every kind; keys do not count
    text: int = 192 * 1024
    id: int = 256
    scope_value: int = 1024
    links: int = 256  # of all three kinds together, repeats included
    headers: int = 1000
    header_bytes: int = 64 * 1024


DEFAULTS = Limits()

_EMPTY = re.compile(rb"\[[ \t\r\n]*\]|\{[ \t\r\n]*\}")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_NOT_DIGITS = bytes(set(range(256)) - set(b"0123456789"))
_LONG_DIGITS = re.compile(rb"[0-9]{16}")
_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NO_NUMBER = re.compile(rb"NaN|Infinity")
# Pairs and other escapes are passed whole; what is left in the group is a surrogate on its own.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_DIGITS_MAX = 40
_NUMBER_CHARACTERS_MAX = 400

_decode = msgspec.json.Decoder().decode


def parse(value: bytes, limits: Limits = DEFAULTS) -> dict[str, Any]:
    """The JSON object that these bytes spell; raises `InvalidDocument` where they spell none."""
    if len(value) > limits.document:
        _require_depth(outline(value[: limits.document]), limits.depth)
        raise InvalidDocument("size", f"a document may have {limits.document} bytes; leave out or cut its text")
    if not value.isascii():
        _require_utf8(value)
    bare = outline(value)
    opened = bare.count(b"[") + bare.count(b"{")
    if opened > limits.depth:
        _require_depth(bare, limits.depth)
    if 1 + opened + bare.count(b",") > limits.nodes:
        _require_few_nodes(bare, opened, limits.nodes)
    if len(bare.translate(None, _NOT_DIGITS)) > 15 and _LONG_DIGITS.search(bare) is not None:
        _require_exact_integers(bare)
    try:
        tree = _decode(value)
    except msgspec.DecodeError as error:
        raise _diagnosis(value, bare, str(error)) from None
    if tree.__class__ is not dict:
        raise InvalidDocument("not_object", "a document must be a JSON object")
    if not _has_keys(tree, bare.count(b":")):
        raise InvalidDocument("duplicate_key", "an object names one key twice; send each key once")
    return tree


def outline(value: bytes) -> bytes:
    """The text with every string replaced by one quotation mark: what is left is structure and numbers."""
    if b'\\"' in value:  # without escaped backslashes, only an escaped quotation mark has one before it
        value = value.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b'"'.join(value.split(b'"')[::2])


def depth_change(bare: bytes) -> int:
    """How many brackets an outline leaves open."""
    return bare.count(b"[") + bare.count(b"{") - bare.count(b"]") - bare.count(b"}")


def _require_depth(bare: bytes, depth: int) -> None:
    level = 0
    for bracket in bare.translate(None, _NOT_BRACKETS):
        if bracket in b"[{":
            level += 1
            if level > depth:
                raise InvalidDocument("depth", f"objects and lists may be nested {depth} deep")
        else:
            level -= 1


def _require_few_nodes(bare: bytes, opened: int, nodes: int) -> None:
    # Each value but the first follows a comma or opens a container, and empty containers hold none.
    empty = sum(1 for _ in _EMPTY.finditer(bare))
    if 1 + bare.count(b",") + opened - empty > nodes:
        raise InvalidDocument("size", f"a document may have {nodes} values; split it")


def _require_utf8(value: bytes) -> None:
    if value.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        raise InvalidDocument("encoding", "the text begins with a byte order mark; send plain UTF-8 without one")
    try:
        value.decode()
    except UnicodeDecodeError as error:
        raise InvalidDocument("encoding", f"byte {error.start} is not UTF-8; send UTF-8") from None


def _require_exact_integers(bare: bytes) -> None:
    for match in _NUMBER.finditer(bare):
        token, (fraction, exponent) = match.group(), match.groups()
        if fraction is not None or exponent is not None:
            if len(token) > _NUMBER_CHARACTERS_MAX or isinf(float(token)):
                raise InvalidDocument("number", "a number is too long or too large; send it as a string")
        elif len(token) > _DIGITS_MAX:
            raise InvalidDocument("number", f"an integer has more than {_DIGITS_MAX} digits; send it as a string")
        elif abs(int(token)) > GREATEST:
            raise InvalidDocument("range", "integers end at 2^53-1, beyond it readers round; send it as a string")


def _diagnosis(value: bytes, bare: bytes, complaint: str) -> InvalidDocument:
    """Why a parser refused the text; the code follows from the bytes, not from the parser's words."""
    if not value.strip(b" \t\r\n"):
        return InvalidDocument("empty", "there is nothing in it; to retract a document send a null value with its key")
    if b"\x00" in value[:4]:
        return InvalidDocument("encoding", "the text is not UTF-8 but UTF-16 or UTF-32; send UTF-8")
    if any(match.group(1) for match in _ESCAPE.finditer(value)):
        return InvalidDocument("encoding", "an escaped surrogate stands alone; send whole characters")
    numbers = (match.group() for match in _NUMBER.finditer(bare))
    if _NO_NUMBER.search(bare) or any(isinf(float(number)) for number in numbers):
        return InvalidDocument("number", "NaN, infinity and numbers beyond 1.7e308 are not accepted; leave them out")
    return InvalidDocument("syntax", f"the text is not one JSON value: {complaint}")


def _has_keys(tree: dict[str, Any], colons: int) -> bool:
    """Whether the tree has a key for each colon outside strings; a key that came twice is there once."""
    count = 0
    nodes: list[Any] = [tree]
    for node in nodes:  # which grow meanwhile
        if node.__class__ is dict:
            count += len(node)
            if count == colons:
                return True
            node = node.values()
        nodes += [value for value in node if value.__class__ is dict or value.__class__ is list]
    return False

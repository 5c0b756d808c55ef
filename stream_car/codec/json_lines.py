"""Split files and pipes of JSON into single documents, without judging them.

Promise: newline-delimited JSON is streamed, with one line in memory at a time. Nothing longer than the limit is kept:
it is cut one byte after the limit, so that `decode` rejects it for its size. Objects printed over several lines (one,
or many in a row) are joined. Only a JSON array is read whole. Whatever is wrong in a file is returned as bytes that
`decode` rejects, so nothing is lost silently. Cost: under a microsecond per line of 1 KB.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO

import msgspec

from stream_car.codec.json_scan import DEFAULT_LIMITS, Limits, depth_change, outline

_skim = msgspec.json.Decoder(msgspec.Raw).decode
_BLANK = b" \t\r\n"
# A whole object with an id on one line. Inside an object printed over many lines, such a line is indented or ends in a
# comma, so it does not match.
_WHOLE_OBJECT = re.compile(rb'(?=.*"id")\{[ \t]*".*\}[ \t]*\Z')
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)


def split_documents(stream: BinaryIO, *, limits: Limits = DEFAULT_LIMITS) -> Iterator[bytes]:
    """Yield the documents of newline-delimited JSON, of objects printed in any shape, or of one JSON array.

    A line that is a whole object with an id also ends an unfinished object before it, so one bad line costs only one
    document.
    """
    limit = limits.document
    line = stream.readline(limit + 2)
    while line and not line.strip(_BLANK) and line.endswith(b"\n"):
        line = stream.readline(limit + 2)
    if line.lstrip(_BLANK).startswith(b"["):
        yield from _array(line + stream.read(), limit)
    else:
        yield from _objects(_lines(line, stream, limit), limit)


def _lines(line: bytes, stream: BinaryIO, limit: int) -> Iterator[bytes]:
    """Yield the lines that are not blank, without line ends. Of a line over the limit, `limit + 1` bytes are kept."""
    while line:
        content = line.rstrip(b"\r\n")
        if len(content) > limit:
            while line and not line.endswith(b"\n"):
                line = stream.readline(65_536)
            yield content[: limit + 1]
        elif content.strip(_BLANK):
            yield content
        line = stream.readline(limit + 2)


def _objects(lines: Iterator[bytes], limit: int) -> Iterator[bytes]:
    """Yield one item for each run of lines that closes all the brackets it opens."""
    parts: list[bytes] = []
    size = level = 0
    for line in lines:
        if not parts and _is_whole(line):
            yield line
            continue
        change = depth_change(outline(line))
        if parts and change == 0 and _WHOLE_OBJECT.match(line) is not None:
            yield _join(parts, limit)
            parts, level = [], 0
        if not parts:
            if change <= 0 or len(line) > limit:
                yield line
                continue
            size = 0
        if size <= limit:
            parts.append(line)
            size += len(line) + 1
        level += change
        if level <= 0:
            yield _join(parts, limit)
            parts, level = [], 0
    if parts:
        yield _join(parts, limit)


def _is_whole(line: bytes) -> bool:
    """Return whether a line is one JSON value. This is a fast check; `decode` gives the verdict."""
    try:
        _skim(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _join(parts: list[bytes], limit: int) -> bytes:
    return b"\n".join(parts)[: limit + 1]


def _array(text: bytes, limit: int) -> Iterator[bytes]:
    """Yield the members of the array at the beginning of a text, then the documents in the lines after it.

    If the array is never closed, its last member may be incomplete. It is returned with a bracket in front, so that
    `decode` rejects it.
    """
    level = start = members = 0
    for token in _TOKEN.finditer(text):
        character = text[token.start()]
        if character in b"[{":
            level += 1
            if level == 1:
                start = token.end()
        elif character in b"]}":
            level -= 1
            if level == 0:
                member = text[start : token.start()].strip(_BLANK)
                if character != ord("]"):
                    yield b"[" + member[:limit]
                elif member or members:
                    yield member[: limit + 1]
                remainder = BytesIO(text[token.end() :])
                yield from _objects(_lines(remainder.readline(limit + 2), remainder, limit), limit)
                return
        elif character == ord(",") and level == 1:
            yield text[start : token.start()].strip(_BLANK)[: limit + 1]
            members += 1
            start = token.end()
    yield b"[" + text[start : start + limit]

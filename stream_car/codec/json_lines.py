"""Files and pipes of JSON, cut into single documents without judging them.

Promise: newline-delimited JSON streams, one line in memory at a time, and nothing longer than the limit
is ever held: it is cut one byte behind it, so that `decode` refuses it for its size. Objects printed over
several lines (one, or many in a row) are put together again. Only a JSON array is read whole. Whatever is
wrong in a file comes out as bytes that `decode` refuses, so nothing is lost silently. Cost: under a
microsecond a line of 1 KB.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO

import msgspec

from stream_car.codec.json_scan import DEFAULTS, Limits, depth_change, outline

_skim = msgspec.json.Decoder(msgspec.Raw).decode
_BLANK = b" \t\r\n"
# In an object printed over many lines, such a line stands further to the right or ends in a comma.
_WHOLE = re.compile(rb'(?=.*"id")\{[ \t]*".*\}[ \t]*\Z')
_SIGN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)


def documents_in(stream: BinaryIO, *, limits: Limits = DEFAULTS) -> Iterator[bytes]:
    """The documents of newline-delimited JSON, of objects printed in any shape, or of one JSON array.

    A line that is a whole object with an id also ends a broken one before it, so one bad line costs one document.
    """
    most = limits.document
    line = stream.readline(most + 2)
    while line and not line.strip(_BLANK) and line.endswith(b"\n"):
        line = stream.readline(most + 2)
    if line.lstrip(_BLANK).startswith(b"["):
        yield from _array(line + stream.read(), most)
    else:
        yield from _objects(_lines(line, stream, most), most)


def _lines(line: bytes, stream: BinaryIO, most: int) -> Iterator[bytes]:
    """The lines that are not blank, without their ends; a longer one keeps one byte more than `most`."""
    while line:
        content = line.rstrip(b"\r\n")
        if len(content) > most:
            while line and not line.endswith(b"\n"):
                line = stream.readline(65_536)
            yield content[: most + 1]
        elif content.strip(_BLANK):
            yield content
        line = stream.readline(most + 2)


def _objects(lines: Iterator[bytes], most: int) -> Iterator[bytes]:
    """One item for each run of lines that closes all the brackets it opens."""
    parts: list[bytes] = []
    size = level = 0
    for line in lines:
        if not parts and _is_whole(line):
            yield line
            continue
        change = depth_change(outline(line))
        if parts and change == 0 and _WHOLE.match(line) is not None:
            yield _joined(parts, most)
            parts, level = [], 0
        if not parts:
            if change <= 0 or len(line) > most:
                yield line
                continue
            size = 0
        if size <= most:
            parts.append(line)
            size += len(line) + 1
        level += change
        if level <= 0:
            yield _joined(parts, most)
            parts, level = [], 0
    if parts:
        yield _joined(parts, most)


def _is_whole(line: bytes) -> bool:
    """Whether a line is one JSON value. Quickly told, and no verdict on it: that is for `decode`."""
    try:
        _skim(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _joined(parts: list[bytes], most: int) -> bytes:
    return b"\n".join(parts)[: most + 1]


def _array(whole: bytes, most: int) -> Iterator[bytes]:
    """The members of the array that the text begins with, then whatever lines follow it.

    Of an array that is never closed the last member is handed out with a bracket, so that it is refused:
    nobody can tell whether it is complete.
    """
    level = start = members = 0
    for sign in _SIGN.finditer(whole):
        character = whole[sign.start()]
        if character in b"[{":
            level += 1
            if level == 1:
                start = sign.end()
        elif character in b"]}":
            level -= 1
            if level == 0:
                member = whole[start : sign.start()].strip(_BLANK)
                if character != ord("]"):
                    yield b"[" + member[:most]
                elif member or members:
                    yield member[: most + 1]
                rest = BytesIO(whole[sign.end() :])
                yield from _objects(_lines(rest.readline(most + 2), rest, most), most)
                return
        elif character == ord(",") and level == 1:
            yield whole[start : sign.start()].strip(_BLANK)[: most + 1]
            members += 1
            start = sign.end()
    yield b"[" + whole[start : start + most]

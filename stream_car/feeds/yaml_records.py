"""YAML files of a feed as JSON, which converters read.

Promise: a file is one record of mappings, lists and texts. Every plain value is text, as it is written, so that the
version 1.10 is not the number 1.1; only `null`, `~` and nothing are null. Aliases, duplicate keys and deep nesting are
rejected. Cost: PyYAML's, which is an extra.
"""

from collections.abc import Iterator

import msgspec

from stream_car.errors import InvalidDocument, InvalidRequest
from stream_car.feeds.fields import LIMITS
from stream_car.feeds.splitting import (
    BEGINNING,
    Piece,
    Readable,
    Start,
    decode_text,
    records,
    rejected_piece,
    whole_file,
)

SUFFIXES = (".yaml", ".yml")
NULLS = frozenset({"", "~", "null", "Null", "NULL"})


def records_or_yaml(
    stream: Readable, name: str = "", start: Start = BEGINNING, *, inside: tuple[str, ...] = ()
) -> Iterator[Piece]:
    """Yield JSON records as `records` does; of a YAML file, its one record as JSON."""
    if not name.endswith(SUFFIXES):
        yield from records(stream, name, start, inside=inside)
        return
    for piece in whole_file(stream, name, start):
        if piece.rejected is not None:
            yield piece
            continue
        try:
            yield Piece(piece.where, msgspec.json.encode(parse_yaml(piece.data)), piece.end)
        except InvalidDocument as error:
            yield rejected_piece(piece.where, piece.end, error)


def parse_yaml(data: bytes) -> object:
    """Parse one YAML document.

    Raises:
        InvalidDocument: it cannot be read (`syntax`, `duplicate_key`, `depth`).
        InvalidRequest: PyYAML is not installed (`extra`).
    """
    try:
        import yaml
    except ImportError as error:
        cure = "Run: pip install 'stream-car[yaml]'."
        raise InvalidRequest("extra", f"Records in YAML need another package. {cure}") from error
    root: list[object] = []
    open_nodes: list[list[object]] = [root]  # the items of a list, or the keys and values of a mapping by turns
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for event in yaml.parse(decode_text(data), Loader=loader):
            if isinstance(event, yaml.ScalarEvent):
                is_null = event.implicit[0] and event.value in NULLS
                open_nodes[-1].append(None if is_null else event.value)
            elif isinstance(event, yaml.CollectionStartEvent):
                open_nodes.append([])
                if len(open_nodes) > LIMITS.depth:
                    raise InvalidDocument("depth", f"The file is nested more than {LIMITS.depth} levels deep.")
            elif isinstance(event, yaml.CollectionEndEvent):
                items = open_nodes.pop()
                is_list = isinstance(event, yaml.SequenceEndEvent)
                open_nodes[-1].append(items if is_list else _mapping(items))
            elif isinstance(event, yaml.AliasEvent):
                raise InvalidDocument(
                    "syntax", f"The file has the alias *{event.anchor}. Write the value in its place."
                )
    except yaml.YAMLError as error:
        raise InvalidDocument("syntax", f"The file is not valid YAML: {' '.join(str(error).split())}.") from None
    if len(root) != 1:
        raise InvalidDocument("syntax", "The file must have one YAML document.")
    return root[0]


def _mapping(items: list[object]) -> dict[str, object]:
    mapping: dict[str, object] = {}
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not isinstance(key, str):
            raise InvalidDocument("syntax", "A key of a mapping must be text.")
        if key in mapping:
            raise InvalidDocument("duplicate_key", f"The key {key!r} appears twice.")
        mapping[key] = value
    return mapping

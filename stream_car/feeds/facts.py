"""Facts as lines: subject, relation, object, time. JSON, or CSV whose first line names the columns.

What decides. `predicate` is read as `relation`, `value` as `object`, `date` as `time`. A later fact about the same
subject and relation voids an earlier one with another value (type `fact`, attribute `value`). Facts with a time are
ordered by it, whatever the order of the lines; of two values at the same time neither voids the other (a tie). Facts
without a time precede all facts with one, in the publisher's order; there, repeating the last value adds no new fact.
"""

import csv
from collections.abc import Iterator

import msgspec

from stream_car.codec.times import EARLIEST
from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import (
    EMPTY_STATE,
    Conversion,
    Edition,
    FeedState,
    NewEdition,
    RecordState,
    add_edition,
    digest_of,
    next_edition,
)
from stream_car.feeds.fields import make_document, other_fields, parse_date, parse_object, scope_value
from stream_car.feeds.splitting import (
    LINE_SUFFIXES,
    WHOLE_SUFFIXES,
    Piece,
    Readable,
    Start,
    decode_text,
    lines,
    peek,
    records,
    rejected_piece,
)

ALIASES = {"predicate": "relation", "value": "object", "date": "time"}
CSV_SUFFIXES = (".csv",)
CONVERTED = ("subject", "relation", "object", "time")


def convert(state: FeedState, data: bytes) -> Conversion:
    """Convert one fact."""
    tree = parse_object(data)
    for alias, name in ALIASES.items():
        if alias in tree and name not in tree:
            tree[name] = tree.pop(alias)
    subject, relation = _scope_value(tree, "subject"), _scope_value(tree, "relation")
    if "object" not in tree or tree["object"] in (None, ""):
        raise InvalidDocument("field", f"The fact about {subject[:40]!r} has no `object`; add one.")
    date = tree.get("time")
    if date is not None and not isinstance(date, str):
        raise InvalidDocument("time", "`time` must be text, for example 2024-01-31T09:30:00Z or 2024-01-31.")
    time = parse_date(date, "`time`")
    record = f"{subject.lower()}\n{relation.lower()}"
    before = state.get(record) or EMPTY_STATE
    new = _next_edition(before, digest_of(tree["object"]), time)
    if new is None:
        return Conversion(known=1)
    edition = new.edition
    order = 0 if time is not None else edition.order
    is_tie = time is not None and new.nth > 0
    label = digest_of([subject, relation, tree["object"], edition.time, order])
    text = f"{subject} {relation} {_format_value(tree['object'])}"
    document = make_document(
        {"subject": (subject,), "relation": (relation,)},
        id=f"fact:{label.hex()}",
        type="fact",
        time=edition.time,
        order=order,
        attributes={**other_fields(tree, CONVERTED), "value": tree["object"]},
        title=text,
        text=(text,),
    )
    return Conversion(documents=(document,), states={record: add_edition(before, edition)}, ties=int(is_tie))


def _next_edition(state: RecordState, digest: bytes, time: int | None) -> NewEdition | None:
    if time is not None:
        return next_edition(state, digest=digest, time=time, rank=time)
    undated = [edition for edition in state.editions if edition.rank == EARLIEST]
    if undated and undated[-1].digest == digest:
        return None
    order = undated[-1].order + 1 if undated else 1
    return NewEdition(Edition(EARLIEST, EARLIEST, order, digest), len(undated))


def _scope_value(tree: dict[str, object], field: str) -> str:
    value = tree.get(field)
    if not isinstance(value, str) or not scope_value(value):
        raise InvalidDocument("field", f"A fact needs a `{field}` that is text.")
    return scope_value(value)


def _format_value(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def split(stream: Readable, name: str, start: Start) -> Iterator[Piece]:
    """Split CSV by lines and everything else as JSON. The file's suffix or its first line decides."""
    if name.endswith(CSV_SUFFIXES):
        return rows(stream, start)
    if name.endswith((*LINE_SUFFIXES, *WHOLE_SUFFIXES)):
        return records(stream, name, start)
    first, stream = peek(stream)
    is_json = first.lstrip()[:1] in (b"{", b"[")
    return records(stream, name, start) if is_json else rows(stream, start)


def rows(stream: Readable, start: Start) -> Iterator[Piece]:
    """Yield one piece for each line of a CSV file after the first, which names the columns.

    A cell never continues on the next line, so a stray quotation mark costs one line. A last line without a newline
    is rejected, because it may be incomplete.
    """
    head = start.head if start.at else b""
    try:
        columns = _columns(head) if head else None
        for piece in lines(stream, start):
            if columns is None:
                _require_newline(piece)
                columns = _columns(piece.data)
            else:
                yield _row(piece, columns)
    except InvalidDocument as error:
        yield rejected_piece("line 1", start.at, error)


def _require_newline(piece: Piece) -> None:
    if not piece.closed:
        raise InvalidDocument("truncated", "The last line has no newline; add one if the line is complete.")


def _row(piece: Piece, columns: list[str]) -> Piece:
    if piece.rejected is not None:
        return piece
    try:
        _require_newline(piece)
        cells = _cells(piece.data)
        if len(cells) != len(columns):
            reason = f"The line has {len(cells)} cells, but the first line names {len(columns)} columns."
            raise InvalidDocument("field", reason)
    except InvalidDocument as error:
        return rejected_piece(piece.where, piece.end, error, closed=piece.closed)
    fields = {column: cell for column, cell in zip(columns, cells, strict=True) if cell}
    return Piece(piece.where, msgspec.json.encode(fields), piece.end, None, piece.closed)


def _cells(text: bytes) -> list[str]:
    try:
        return next(csv.reader([decode_text(text)], strict=True), [])
    except csv.Error as error:
        raise InvalidDocument("syntax", f"The line is not valid CSV: {error}.") from None


def _columns(header: bytes) -> list[str]:
    columns = [cell.strip().lower() for cell in _cells(header)]
    fields = {ALIASES.get(column, column) for column in columns}
    if not {"subject", "relation", "object"} <= fields or len(fields) < len(columns):
        reason = "The first line must name the columns subject, relation and object, and optionally time, each once."
        raise InvalidDocument("field", reason)
    return columns

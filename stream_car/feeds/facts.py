"""Facts as lines: subject, relation, object, time. JSON, or CSV with a first line that names the columns.

What decides. `relation` may be called `predicate`, `object` `value`, `time` `date`. A later fact about the same
subject and relation voids an earlier one of another value (`fact`, attribute `value`). Lines with a time count by
it, whatever their order; of two values at one time neither voids the other (a tie). Lines without a time come
before all lines with one, in the order in which the publisher wrote them; there the same value again reinforces
and is no new fact.
"""

import csv
from collections.abc import Iterator

import msgspec

from stream_car.codec.times import EARLIEST
from stream_car.core.documents import Document
from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import (
    NOTHING_SEEN,
    Converted,
    Edition,
    Next,
    Position,
    Seen,
    digest_of,
    next_edition,
    remembered,
)
from stream_car.feeds.reading import body, fitted, line, moment, rest_of, scope_of, tree_of, word
from stream_car.feeds.splitting import LINES, WHOLE, Again, Piece, Readable, Start, lines, records, refusal

ALSO = {"predicate": "relation", "value": "object", "date": "time"}
CSV = (".csv",)
FIELDS = ("subject", "relation", "object", "time")


def convert(position: Position, data: bytes) -> Converted:
    """One fact."""
    tree = tree_of(data)
    for also, name in ALSO.items():
        if also in tree and name not in tree:
            tree[name] = tree.pop(also)
    subject, relation = _word(tree, "subject"), _word(tree, "relation")
    if "object" not in tree or tree["object"] in (None, ""):
        raise InvalidDocument("field", f"the fact about {subject[:40]!r} has no `object`")
    said = tree.get("time")
    if said is not None and not isinstance(said, str):
        raise InvalidDocument("time", "`time` must be text, such as 2024-01-31T09:30:00Z or 2024-01-31")
    time = moment(said, what="`time`")
    record = f"{subject.lower()}\n{relation.lower()}"
    seen = position.get(record) or NOTHING_SEEN
    digest = digest_of(tree["object"])
    following = _following(seen, digest, time)
    if following is None:
        return Converted(known=1)
    edition = following.edition
    is_tie = time is not None and following.nth > 0
    label = digest_of([subject, relation, tree["object"], edition.time, 0 if time is not None else edition.order])
    text = f"{subject} {relation} {_shown(tree['object'])}"
    document = Document(
        id=f"fact:{label.hex()}",
        type="fact",
        time=edition.time,
        order=0 if time is not None else edition.order,
        scope=scope_of({"subject": (subject,), "relation": (relation,)}),
        attributes={**rest_of(tree, FIELDS), "value": tree["object"]},
        title=line(text),
        text=body(text),
    )
    return Converted(documents=(fitted(document),), seen={record: remembered(seen, edition)}, ties=int(is_tie))


def _following(seen: Seen, digest: bytes, time: int | None) -> Next | None:
    if time is not None:
        return next_edition(seen, digest=digest, time=time, rank=time)
    before = [one for one in seen.editions if one.rank == EARLIEST]
    if before and before[-1].digest == digest:
        return None
    order = before[-1].order + 1 if before else 1
    return Next(Edition(EARLIEST, EARLIEST, order, digest), len(before))


def _word(tree: dict[str, object], field: str) -> str:
    value = tree.get(field)
    if not isinstance(value, str) or not word(value):
        raise InvalidDocument("field", f"a fact needs a `{field}` that is text")
    return word(value)


def _shown(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def split(stream: Readable, name: str, start: Start) -> Iterator[Piece]:
    """CSV by its name or its first line; everything else is JSON."""
    if name.endswith(CSV):
        return rows(stream, start)
    if name.endswith((*LINES, *WHOLE)):
        return records(stream, name, start)
    again = Again(stream)
    return records(again, name, start) if again.first.lstrip()[:1] in (b"{", b"[") else rows(again, start)


def rows(stream: Readable, start: Start) -> Iterator[Piece]:
    """One piece for every line of a CSV file; the first one names the columns.

    A cell never goes on in the next line, so that a stray quotation mark costs one line. A last line that does
    not end is refused, for nobody can tell whether it is complete.
    """
    head = start.head if start.at else b""
    try:
        columns = _columns(head) if head else None
        for piece in lines(stream, start):
            if columns is None:
                _require_end(piece)
                columns = _columns(piece.data)
            else:
                yield _row(piece, columns)
    except InvalidDocument as error:
        yield refusal("line 1", start.at, error)


def _require_end(piece: Piece) -> None:
    if not piece.closed:
        raise InvalidDocument("truncated", "the last line does not end: add a newline if it is complete")


def _row(piece: Piece, columns: list[str]) -> Piece:
    if piece.refused is not None:
        return piece
    try:
        _require_end(piece)
        cells = _cells(piece.data)
        if len(cells) != len(columns):
            raise InvalidDocument("field", f"the line has {len(cells)} cells, the first line {len(columns)}")
    except InvalidDocument as error:
        return refusal(piece.where, piece.end, error, closed=piece.closed)
    said = {column: cell for column, cell in zip(columns, cells, strict=True) if cell}
    return Piece(piece.where, msgspec.json.encode(said), piece.end, None, piece.closed)


def _cells(text: bytes) -> list[str]:
    try:
        return next(csv.reader([text.decode("utf-8-sig")], strict=True), [])
    except UnicodeDecodeError as error:
        raise InvalidDocument("encoding", f"byte {error.start} is not UTF-8") from None
    except csv.Error as error:
        raise InvalidDocument("syntax", f"this is no line of CSV: {error}") from None


def _columns(header: bytes) -> list[str]:
    columns = [cell.strip().lower() for cell in _cells(header)]
    named = {ALSO.get(column, column) for column in columns}
    if not {"subject", "relation", "object"} <= named or len(named) < len(columns):
        raise InvalidDocument("field", "the first line must name the columns subject, relation, object, and maybe time")
    return columns

"""The page about back ends names every request, and what a back end cannot do agrees with the code."""

import re
from pathlib import Path

from msgspec import Struct

import stream_car
from stream_car.api import requests as r
from stream_car.api.calls import Calls
from stream_car.api.operations import BY_REQUEST
from stream_car.cluster.service import UNSUPPORTED, UNSUPPORTED_FIELDS
from tests.support.contract import request_types
from tests.support.repository import ROOT

PAGE = ROOT / "docs" / "reference" / "back-ends.md"
BACK_ENDS = ("library", "one process", "Kafka and Redis")
CALLS = {request.__name__: operation.name for request, operation in BY_REQUEST.items()} | {
    r.Publish.__name__: "publish",
    r.Subscribe.__name__: "subscribe",
}
CELL = re.compile(r"(yes|no)(?: \((\d+)\))?")


class Row(Struct, frozen=True):
    """A row of the table: a request, its call, and the cell of each back end: `yes` or `no`, and its footnote.

    A row can be about one field of the request.
    """

    request: str
    field: str
    call: str
    cells: dict[str, tuple[str, str | None]]

    @classmethod
    def read(cls, line: str) -> "Row":
        request, call, *texts = (cell.strip().strip("`") for cell in line.strip("|").split("|"))
        cells = [CELL.fullmatch(text) for text in texts]
        by_back_end = {name: (cell[1], cell[2]) for name, cell in zip(BACK_ENDS, cells, strict=True) if cell}
        request, _, field = request.partition("` with `")
        return cls(request, field, call, by_back_end)


def rows() -> list[Row]:
    """Return the table of requests."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    header = lines.index(f"| request | call | {' | '.join(BACK_ENDS)} |")
    table = lines[header + 2 :]
    return [Row.read(line) for line in table[: table.index("")]]


def raises_unsupported(folder: str) -> bool:
    """Return whether a module of the folder raises the error."""
    files = Path(stream_car.__file__).parent.joinpath(folder).rglob("*.py")
    return any(re.search(r"raise Unsupported\b", file.read_text(encoding="utf-8")) for file in files)


def test_every_type_of_request_is_listed_once_with_its_call() -> None:
    names = [row.request for row in rows() if not row.field]

    assert sorted(names) == sorted(kind.__name__ for kind in request_types())
    for row in rows():
        assert set(row.cells) == set(BACK_ENDS), row.request
        assert row.call == CALLS[row.request]
        assert callable(getattr(Calls, row.call))


def test_the_page_says_no_exactly_to_the_requests_that_the_code_declares_unsupported() -> None:
    refused = {name: {(row.request, row.field) for row in rows() if row.cells[name][0] == "no"} for name in BACK_ENDS}

    assert refused == {
        "library": set(),
        "one process": set(),
        "Kafka and Redis": {(kind.__name__, "") for kind in UNSUPPORTED}
        | {(kind.__name__, field) for kind, field in UNSUPPORTED_FIELDS},
    }


def test_only_the_cluster_raises_unsupported() -> None:
    assert raises_unsupported("cluster")
    assert not any(raises_unsupported(folder) for folder in ("local", "api", "queries", "subscriptions"))


def test_every_footnote_is_explained() -> None:
    notes = {note for row in rows() for _, note in row.cells.values() if note is not None}
    explained = re.findall(r"^(\d+)\. ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert sorted(notes, key=int) == explained

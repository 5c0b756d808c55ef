"""Feeds in tests: convert bytes as the engine would, and publish files."""

import json
import re
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path

from msgspec import Struct

from stream_car.core.documents import Document, Statement
from stream_car.errors import InvalidDocument
from stream_car.feeds import FORMATS, RecordState, find_format
from stream_car.feeds.splitting import Start
from stream_car.ingest import destinations
from stream_car.ingest.files import input_files
from stream_car.ingest.ingest import FeedStep, feed
from stream_car.local.engine import Engine
from tests.support.repository import DATA as SHARED_DATA, ROOT

PAGES = ROOT / "docs" / "how-to" / "feeds"
WRITTEN = re.compile(r"^cat > (?:[\w-]+/)?([\w.-]+) <<'END'\n(.*?)^END$", re.MULTILINE | re.DOTALL)
DATA = SHARED_DATA / "feeds"


class Reading:
    """A format and the records that it has seen so far."""

    def __init__(self, name: str) -> None:
        self.form = find_format(name)
        self.seen: dict[str, RecordState] = {}
        self.rejected: list[InvalidDocument] = []
        self.statements: list[Statement] = []
        self.records = self.known = self.ties = 0

    def read(self, data: bytes | str | object, name: str = "-") -> list[Statement]:
        """Return the new statements in these bytes, or in this value as JSON."""
        if not isinstance(data, (bytes, str)):
            data = json.dumps(data)
        stream = BytesIO(data.encode() if isinstance(data, str) else data)
        statements: list[Statement] = []
        for piece in self.form.split(stream, name, Start()):
            try:
                if piece.rejected is not None:
                    raise piece.rejected
                converted = self.form.convert(self.seen, piece.data)
            except InvalidDocument as error:
                self.rejected.append(error)
                continue
            self.seen.update(converted.states)
            self.records += converted.records
            self.known += converted.known
            self.ties += converted.ties
            statements += converted.documents
        self.statements += statements
        return statements


def documents(statements: Iterable[Statement]) -> list[Document]:
    """Return the documents among statements."""
    return [statement for statement in statements if isinstance(statement, Document)]


def published(engine: Engine, name: str, paths: Sequence[Path]) -> list[FeedStep]:
    """Publish files or directories as `publish --format` does; return every step."""
    form = find_format(name)
    return [
        step
        for batch in feed(
            destinations.for_engine(engine), form, input_files([str(path) for path in paths], form.suffixes)
        )
        for step in batch.steps
    ]


def in_force(engine: Engine, records: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return, for every record, the documents among its editions that are in force, with their types."""
    return {
        resolution.name: {
            group.anchor.id: group.anchor.type for group in resolution.groups if group.anchor.status == "in_force"
        }
        for start in range(0, len(records), 1000)
        for resolution in engine.resolve(records[start : start + 1000])
    }


class Sample(Struct, frozen=True):
    """A file of a format that a how-to page writes."""

    form: str
    name: str
    data: bytes


def samples() -> list[Sample]:
    """Return the files that the how-to pages of the feeds write."""
    files = []
    for page in sorted(PAGES.glob("*.md")):
        for name, text in WRITTEN.findall(page.read_text(encoding="utf-8")):
            if page.stem in FORMATS and name != "advisory.json":
                files.append(Sample(form=page.stem, name=name, data=text.encode()))
    return files

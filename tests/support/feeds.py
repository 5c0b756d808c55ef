"""Feeds in tests: converting bytes as the engine would, and publishing files."""

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
from tests.support.repository import DATA as SHARED_DATA
from tests.support.repository import ROOT

PAGES = ROOT / "docs" / "how-to" / "feeds"
WRITTEN = re.compile(r"^cat > (?:[\w-]+/)?([\w.-]+) <<'END'\n(.*?)^END$", re.MULTILINE | re.DOTALL)
DATA = SHARED_DATA / "feeds"


class Reading:
    """A format with what it has seen so far."""

    def __init__(self, name: str) -> None:
        self.form = find_format(name)
        self.seen: dict[str, RecordState] = {}
        self.refused: list[InvalidDocument] = []
        self.said: list[Statement] = []
        self.records = self.known = self.ties = 0

    def read(self, data: bytes | str | object, name: str = "-") -> list[Statement]:
        """What these bytes (or this value, as JSON) say that is new."""
        if not isinstance(data, (bytes, str)):
            data = json.dumps(data)
        stream = BytesIO(data.encode() if isinstance(data, str) else data)
        found: list[Statement] = []
        for piece in self.form.split(stream, name, Start()):
            try:
                if piece.rejected is not None:
                    raise piece.rejected
                converted = self.form.convert(self.seen, piece.data)
            except InvalidDocument as refused:
                self.refused.append(refused)
                continue
            self.seen.update(converted.states)
            self.records += converted.records
            self.known += converted.known
            self.ties += converted.ties
            found += converted.documents
        self.said += found
        return found


def documents(said: Iterable[Statement]) -> list[Document]:
    """The documents among statements."""
    return [one for one in said if isinstance(one, Document)]


def published(engine: Engine, name: str, paths: Sequence[Path]) -> list[FeedStep]:
    """Publish files or directories as `publish --format` does; every step."""
    form = find_format(name)
    return [
        step
        for batch in feed(
            destinations.for_engine(engine), form, input_files([str(path) for path in paths], form.suffixes)
        )
        for step in batch.steps
    ]


def in_force(engine: Engine, records: Sequence[str]) -> dict[str, dict[str, str]]:
    """For every record the documents that are active among its editions, with their types."""
    found: dict[str, dict[str, str]] = {}
    for at in range(0, len(records), 1000):
        for one in engine.resolve(records[at : at + 1000]):
            found[one.asked] = {group.anchor.id: group.anchor.type for group in one.groups if group.anchor.active}
    return found


class Sample(Struct, frozen=True):
    """A file of a format, as a how-to page writes it."""

    form: str
    name: str
    data: bytes


def samples() -> list[Sample]:
    """The files that the how-to pages of the feeds write."""
    found = []
    for page in sorted(PAGES.glob("*.md")):
        for name, text in WRITTEN.findall(page.read_text(encoding="utf-8")):
            if page.stem in FORMATS and name != "advisory.json":
                found.append(Sample(form=page.stem, name=name, data=text.encode()))
    return found

"""The data directory that is attacked: a little of everything, and several pages of each file.

Promise: two builds hold the same documents in the same order, so a case damages the same place of the same file. Only
ids that the package draws at random differ.
"""

import json
import random
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from stream_car import Retraction
from stream_car.codec.times import format_time, parse_time
from stream_car.core.rule_pack import Rule
from stream_car.feeds.formats import FORMATS
from stream_car.ingest.destinations import for_engine
from stream_car.ingest.files import input_files
from stream_car.ingest.ingest import feed
from stream_car.local.engine import Engine
from stream_car.rule_packs import load, shipped_names
from tests.support.engines import StoppedClock

PACK = """
name = "news"
description = "A pack of the publisher's own."
editions = [["claim"]]
[types]
claim = "Something is stated."
denial = "It is not so."
doubt = "Perhaps it is so after all."
remark = "Something to be read with a claim."
reading = "A meter has a value."
[keys.meter]
[keys.place]
[keys.topic]
fold = "lower"
[[rules]]
name = "denial-voids-claim"
superseding = "denial"
superseded = "claim"
scope = ["topic"]
[[rules]]
name = "local-denial-voids-claim"
superseding = "denial"
superseded = "claim"
scope = ["topic", "place"]
[[rules]]
name = "doubt-voids-denial"
superseding = "doubt"
superseded = "denial"
scope = ["topic"]
[[rules]]
name = "remark-amends-claim"
superseding = "remark"
superseded = "claim"
scope = ["topic"]
effect = "amend"
[[rules]]
name = "reading-voids-other-value"
superseding = "reading"
superseded = "reading"
scope = ["meter"]
differ_on = ["value"]
"""
REJECTED = (
    b"",
    b"{",
    b"[1, 2]",
    b"\xff\xfe{}",
    b'{"id": "r1"}',
    b'{"id": "r2", "type": "claim", "time": "yesterday"}',
    b'{"id": "r3", "type": "no_such_type", "time": "2024-01-01"}',
    b'{"id": "r4", "type": "claim", "time": "2024-01-01", "scope": {"topic": []}}',
    b'{"id": "r5", "id": "r5", "type": "claim", "time": "2024-01-01"}',
    b'{"id": "r6", "type": "claim", "time": "2024-01-01", "order": 1.5}',
    b'{"id": "r7", "type": "claim", "time": "2024-01-01", "v": 9}',
    b'{"id": "r8", "type": "claim", "time": "2024-01-01", "title": "a\\u0000b"}',
    b'{"id": "r9", "type": "claim", "time": "2024-01-01", "supersedes": ["r9"]}',
    b'{"id": "claim-1", "type": "claim", "time": "2024-01-01", "text": "another text of the same revision"}',
)
CORRECTED = (
    b'{"id": "r2", "type": "claim", "time": "2024-01-01", "scope": {"topic": "mended"}, "text": "a mended claim"}'
)
NOW = parse_time("2026-01-01")
DAY = 86_400_000_000
SESSIONS = 2  # each ends with a commit of the text index
PER_RULE = 1  # pairs of documents
VALUES = 6  # of each scope key
CROWD = 90  # members of one scope, more than its header holds
FACTS = 60  # lines of the feed that were read
FACTS_LATER = 5  # lines that the feed has grown by when the damaged folder reads it again

WORDS = [
    "amber",
    "anchor",
    "autumn",
    "basin",
    "beacon",
    "birch",
    "blanket",
    "bridge",
    "candle",
    "canyon",
    "cedar",
    "chimney",
    "cinder",
    "clover",
    "copper",
    "coral",
    "cotton",
    "crater",
    "cypress",
    "dagger",
    "delta",
    "ember",
    "falcon",
    "feather",
    "fennel",
    "ferry",
    "flint",
    "forest",
    "galley",
    "garnet",
    "glacier",
    "granite",
    "harbor",
    "hazel",
    "heron",
    "hollow",
    "indigo",
    "island",
    "ivory",
    "jasper",
    "juniper",
    "kernel",
    "kettle",
    "lagoon",
    "lantern",
    "ledger",
    "lichen",
    "linen",
    "magnet",
    "maple",
    "marble",
    "meadow",
    "mercury",
    "mirror",
    "nectar",
    "nickel",
    "oasis",
    "onyx",
    "orchard",
    "otter",
    "paddle",
    "parcel",
    "pebble",
    "pepper",
    "pigeon",
    "pillar",
    "plaza",
    "quarry",
    "quartz",
    "raven",
    "ribbon",
    "saffron",
    "salmon",
    "sapphire",
    "shelter",
    "silver",
    "sparrow",
    "spindle",
    "summit",
    "tavern",
    "thistle",
    "timber",
    "topaz",
    "tunnel",
    "turret",
    "valley",
    "velvet",
    "walnut",
    "willow",
    "zephyr",
]
RARE_WORDS = [f"rare{number}" for number in range(60)]


class Specimen:
    """A data directory, the feed it has read, and every name that can be asked about."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "data"
        self.killed = home / "killed"
        self.feed = home / "feed.jsonl"
        self.pack = home / "news.toml"

    @property
    def rules(self) -> tuple[str | Path, ...]:
        """All shipped packs, and one more."""
        return *shipped_names(), self.pack

    def build(self) -> None:
        """Build it in several sessions, then once more as a killed process leaves it: with write-ahead logs.

        Afterwards the feed has more lines than were read.
        """
        self.pack.write_text(PACK, encoding="utf-8")
        self.feed.write_text(_facts(FACTS), encoding="utf-8")
        values = list(_values(load(self.rules).rules.values()))
        share = len(values) // SESSIONS + 1
        for start in range(0, len(values), share):
            with self._engine() as car:
                car.publish(values[start : start + share])
        with self._engine() as car:
            car.publish(list(REJECTED))
            [wrong_time] = [rejected.offset for rejected in car.rejected() if rejected.id == "r2"]
            car.replay({wrong_time: CORRECTED})
            self.read_feed(car)
        living = self.killed.with_name("living")
        shutil.copytree(self.folder, living)
        with Engine(living, clock=StoppedClock(NOW)) as car:
            car.publish(list(_last_values()))
            shutil.copytree(living, self.killed)
        shutil.rmtree(living)
        self.feed.write_text(_facts(FACTS + FACTS_LATER), encoding="utf-8")

    def read_feed(self, car: Engine) -> None:
        """Let an engine read what is new in the feed. Its name decides which positions apply."""
        form = FORMATS["facts"]
        for _ in feed(for_engine(car), form, input_files([str(self.feed)], form.suffixes)):
            pass

    def _engine(self) -> Engine:
        return Engine(self.folder, rules=self.rules, clock=StoppedClock(NOW))


def _facts(count: int) -> str:
    chance = random.Random("facts")
    lines = (
        {"subject": f"person {n % 20}", "relation": chance.choice(("home", "job")), "object": chance.choice(WORDS),
         **({"time": format_time(NOW - (1000 - n) * DAY)} if n % 3 else {})}
        for n in range(count)
    )  # fmt: skip
    return "".join(json.dumps(line) + "\n" for line in lines)


def _values(rules: Iterable[Rule]) -> Iterator[dict[str, object] | Retraction]:
    """Documents of every rule of every pack, links, corrections, retractions and documents ahead of their time."""
    chance = random.Random("documents")
    names: list[str] = []
    documents: dict[str, dict[str, object]] = {}
    for rule in rules:
        for number in range(PER_RULE):
            scope = {key: f"{key} {chance.randrange(VALUES)}" for key in rule.scope_keys}
            for kind in (rule.superseded_type, rule.superseding_type):
                document = _document(f"{rule.name}-{number}-{kind}", kind, scope, chance)
                if names and chance.random() < 0.2:
                    link = chance.choice(("supersedes", "superseded_by", "amends"))
                    document[link] = chance.sample(names, min(len(names), chance.randint(1, 2)))
                names.append(str(document["id"]))
                documents[names[-1]] = document
                yield dict(document)
                if chance.random() < 0.1:
                    yield dict(_correction(documents[chance.choice(names)], chance))
                if chance.random() < 0.04:
                    yield Retraction(id=chance.choice(names))
    for number in range(CROWD):
        yield _document(f"claim-{number}", "claim", {"topic": "crowd", "place": f"place {number % 9}"}, chance)
    yield _document("denial", "denial", {"topic": "crowd", "place": "place 3"}, chance)
    for number in range(20):
        yield _document(f"future-{number}", "claim", {"topic": f"topic {number % VALUES}"}, chance, years=100)
    for number in range(10):
        yield _document(f"edition-{number}", "claim", {"topic": "editions", "record": f"record {number % 3}"}, chance)
    yield {**_document("left", "claim", {}, chance), "supersedes": ["right"]}
    yield {**_document("right", "claim", {}, chance), "supersedes": ["left"]}
    yield {**_document("waits", "claim", {}, chance), "superseded_by": ["never-published"]}
    yield Retraction(id="not-here-yet")


def _last_values() -> Iterator[dict[str, object] | Retraction]:
    """What the killed process had published last."""
    chance = random.Random("last documents")
    for number in range(40):
        yield _document(f"last-{number}", "denial", {"topic": f"topic {number % VALUES}", "place": "here"}, chance)
    yield Retraction(id="last-3")
    yield _document("last-claim", "claim", {"topic": "topic 9"}, chance)


def _document(
    name: str, kind: str, scope: Mapping[str, str], chance: random.Random, *, years: int = 0
) -> dict[str, object]:
    document: dict[str, object] = {
        "id": name,
        "type": kind,
        "time": format_time(NOW - chance.randrange(3000) * DAY + years * 365 * DAY),
        "title": " ".join((*chance.sample(WORDS, 3), chance.choice(RARE_WORDS))),
        "text": " ".join([*chance.choices(WORDS, k=chance.randint(8, 40)), *scope.values()]),
        "attributes": {"value": chance.choice(("low", "middle", "high"))},
    }
    return {**document, "scope": dict(scope)} if scope else document


def _correction(document: dict[str, object], chance: random.Random) -> dict[str, object]:
    """The next revision of a document, at another time and with another text."""
    document["revision"] = int(str(document.get("revision", 1))) + 1
    document["time"] = format_time(NOW - chance.randrange(3000) * DAY)
    document["text"] = " ".join(chance.choices(WORDS, k=20))
    return document

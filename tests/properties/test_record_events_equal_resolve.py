"""After any change, the last event about a record says how it stands, as `resolve` tells it: in any order of input.

The events are those since the beginning, or of a snapshot and what followed it.
"""

from random import Random

import pytest
from msgspec.structs import replace

from stream_car import Engine, RecordChange, Retraction, SnapshotBegin, SnapshotRecord
from stream_car.codec import Publishable
from tests.support.contract import RULESET
from tests.support.engines import document

KINDS = ("offer", "offer", "offer", "withdrawal")


def statements(random: Random, count: int) -> list[Publishable]:
    """Editions of a few records, documents without a record, corrections and retractions."""
    made: list[Publishable] = []
    for number in range(count):
        day, record = random.randrange(1, 6), f"r{random.randrange(3)}"
        scope = {"product": random.choice(("cup", "pot"))} if random.random() < 0.7 else {}
        if random.random() < 0.8:
            scope["record"] = record
        name = f"{record}@{random.randrange(8)}" if "record" in scope else f"d{random.randrange(3)}"
        if random.random() < 0.12:
            made.append(Retraction(id=name))
        elif scope:
            attributes = {"price": random.randrange(2)}
            revision = number + 1
            stated = document(name, random.choice(KINDS), day, revision=revision, attributes=attributes, text=name)
            made.append(replace(stated, scope=({key: (value,) for key, value in scope.items()},)))
    return made


@pytest.mark.parametrize("seed", range(15))
def test_the_last_event_about_a_record_says_how_it_stands(seed: int) -> None:
    random = Random(seed)
    with Engine(ruleset=RULESET) as car:
        kept: dict[str, tuple[str, str]] = {}
        whole = car.subscribe(view="record", since="1970-01-01", material=False)
        followed = car.subscribe(view="record", material=False)
        seen: dict[str, tuple[str, str]] = {}
        for statement in statements(random, 40):
            car.publish(statement)
            for event in followed:
                if isinstance(event, SnapshotBegin):
                    kept.clear()
                elif isinstance(event, SnapshotRecord):
                    kept[event.record] = (event.status, event.state)
                elif isinstance(event, RecordChange):
                    kept[event.record] = (event.status, event.state_now)
            seen |= {
                event.record: (event.status, event.state_now) for event in whole if isinstance(event, RecordChange)
            }
            for name in (name for name in kept.keys() | seen.keys() if "@" not in name):  # no retracted edition
                [resolution] = car.resolve([name])
                expected = (resolution.status, resolution.state)
                if resolution.via == "record" or resolution.status in ("in_force", "superseded"):
                    assert kept.get(name, expected) == expected, (seed, name)
                    assert seen.get(name, expected) == expected, (seed, name)

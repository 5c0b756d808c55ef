"""`explain`, `resolve` and `get` say the same of a name, whatever was published, corrected, withdrawn or retracted."""

from datetime import datetime
from random import Random

import pytest
from msgspec.structs import replace

from stream_car import Engine, Retraction
from stream_car.codec import Publishable
from tests.support.contract import RULESET
from tests.support.engines import DAY, NOW, StoppedClock, document, on_day

KINDS = ("offer", "offer", "offer", "withdrawal", "claim", "denial", "doubt", "note")
RECORDS = ("r0", "r1")
NAMES = tuple(f"{record}@{number}" for record in RECORDS for number in range(4))
ALONE = ("d0", "d1", "d2")
LATER = NOW // DAY + 1  # the day after today
QUESTIONS = (*RECORDS, *NAMES, *ALONE, "r0@1#2", "d0#1", "r1#3", "nothing", "cup")
WORDS = ("status", "via", "state", "state_text", "state_since", "outcome", "outcome_text")


def statement(random: Random, number: int) -> Publishable:
    """Return an edition, a document without a record, a correction, or a retraction."""
    name = random.choice((*NAMES, *ALONE))
    if random.random() < 0.15:
        return Retraction(id=name)
    scope = {"product": random.choice(("cup", "pot")), "topic": "tea"}
    if "@" in name:
        scope["record"] = name.partition("@")[0]
    others = [other for other in (*NAMES, *ALONE) if other != name]
    linked = {
        link: (random.choice(others),) for link in ("supersedes", "superseded_by", "amends") if random.random() < 0.1
    }
    made = document(
        name,
        random.choice(KINDS),
        LATER if random.random() < 0.1 else random.randrange(1, 8),
        revision=number + 1,
        attributes={"price": random.randrange(2), "state_since": "2019-05-01"},
        text=name,
    )
    return replace(made, scope=({key: (value,) for key, value in scope.items()},), **linked)


def assert_agreement(car: Engine, as_of: datetime | None) -> None:
    resolutions = car.resolve(QUESTIONS, as_of=as_of)
    lookups = car.get(QUESTIONS) if as_of is None else resolutions
    for name, resolution, lookup in zip(QUESTIONS, resolutions, lookups, strict=True):
        explanation = car.explain(name, as_of=as_of)
        expected = [getattr(resolution, word) for word in WORDS]
        assert [getattr(explanation, word) for word in WORDS] == expected, (name, as_of)
        assert [getattr(lookup, word) for word in WORDS] == expected, name
        assert (explanation.group is None) == (not resolution.groups), name
        if explanation.group is not None:
            assert explanation.group in resolution.groups, name
        if explanation.document is not None and resolution.via in ("id", "chunk"):
            holds_in_all = all(membership.holds for membership in explanation.memberships)
            assert holds_in_all == (resolution.status == "in_force"), (name, as_of)


@pytest.mark.parametrize("seed", range(12))
def test_explain_resolve_and_get_never_contradict_one_another(seed: int) -> None:
    random = Random(seed)
    with Engine(ruleset=RULESET, clock=StoppedClock()) as car:
        for number in range(40):
            car.publish(statement(random, number))
            if number % 4 == 3:
                for as_of in (None, on_day(random.randrange(1, 9))):
                    assert_agreement(car, as_of)

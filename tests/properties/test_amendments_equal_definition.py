"""The amendments in an answer equal the definition, and a path leads from the amended document to each."""

from random import Random

import pytest

from stream_car.codec.times import from_micros
from stream_car.core import definitions
from stream_car.core.documents import Document
from stream_car.core.rules import Ruleset
from stream_car.queries.answers import Amendment, Step
from tests.support.engines import engine
from tests.support.streams import random_rules, random_stream


def follows(at: str, step: Step, corpus: dict[str, Document], ruleset: Ruleset) -> bool:
    relation = definitions.amends if step.effect == "amend" else definitions.voids
    return relation(later=corpus[step.id], earlier=corpus[at], ruleset=ruleset) is not None


def check_path(start: str, amendment: Amendment, corpus: dict[str, Document], ruleset: Ruleset) -> None:
    at = start
    for number, step in enumerate(amendment.path):
        assert step.effect == ("supersede" if number else "amend")
        assert follows(at, step, corpus, ruleset)
        at = step.id
    assert at == amendment.document.id


def check_seed(seed: int) -> int:
    random = Random(seed)
    ruleset = random_rules(random, amending=0.5)
    stream = random_stream(random, 40, links=random.choice((0.0, 0.3)))
    corpus = definitions.current_documents(stream)
    checked = 0
    with engine(ruleset=ruleset, future="apply") as car:
        car.publish(stream)
        for as_of in (None, random.randrange(12)):
            for name in definitions.active(corpus, ruleset, as_of):
                [resolution] = car.resolve([name], as_of=from_micros(as_of) if as_of is not None else None)
                [controlling] = [c for c in resolution.groups[0].controlling if c.document.id == name]
                expected = definitions.amendments(name, corpus, ruleset, as_of)
                assert {amendment.document.id for amendment in controlling.amendments} == expected, (seed, name, as_of)
                for amendment in controlling.amendments:
                    check_path(name, amendment, corpus, ruleset)
                checked += len(expected)
    return checked


@pytest.mark.parametrize("block", range(3))
def test_amendments_and_their_paths_equal_the_definition(block: int) -> None:
    assert sum(check_seed(seed) for seed in range(block * 25, block * 25 + 25)) > 12

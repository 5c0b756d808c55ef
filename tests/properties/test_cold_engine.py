"""An engine without anything in memory reads every page that it needs, and gives the same answers."""

from pathlib import Path
from random import Random

import pytest

from stream_car import Retraction
from stream_car.core import definitions, pages
from stream_car.core.documents import Document
from tests.support.engines import RULESET, document, engine


def random_statement(random: Random, number: int) -> Document | Retraction:
    """Return a statement about one of few ids in one scope, which are corrected so often that they change pages."""
    name = f"d{random.randrange(30)}"
    if random.random() < 0.1:
        return Retraction(id=name, revision=number)
    kind = random.choice(("claim", "claim", "claim", "denial", "doubt"))
    links = (f"d{random.randrange(30)}",) if random.random() < 0.1 else ()
    return document(
        name,
        kind,
        random.randrange(60),
        revision=number,
        supersedes=tuple(link for link in links if link != name),
        topic="moon",
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("small", [(2, 4, 128), (1, 2, 2)], ids=["pages", "folders"])
def test_corrections_across_pages_are_applied_with_nothing_in_memory(
    small: tuple[int, int, int], seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, limit in zip(("INLINE_MAX", "PAGE_MAX", "FOLDER_MAX"), small, strict=True):
        monkeypatch.setattr(pages, name, limit)
    random = Random(seed)
    stream = [random_statement(random, number) for number in range(1, 161)]
    with engine(tmp_path) as car:
        car.directory.projection.shard.cache_max = 0
        for count, statement in enumerate(stream, 1):
            assert car.publish(statement).receipts[0].outcome in ("accepted", "retracted")
            if not count % 20:
                corpus = definitions.current_documents(stream[:count])
                expected = definitions.frontier("topic=moon", corpus, RULESET)
                [frontier] = car.frontier("topic=moon")
                in_force = {document.id for document in frontier.in_force}
                assert in_force == expected & definitions.active(corpus, RULESET)
                assert in_force | {blocked.document.id for blocked in frontier.blocked} == expected

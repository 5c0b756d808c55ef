"""An engine that remembers nothing between publications reads every page that it needs, and gives the same answers."""

from pathlib import Path
from random import Random

import pytest

from stream_car import Document, Retraction
from stream_car.core import definitions, pages
from tests.support.engines import RULESET, document, engine


def said(random: Random, number: int) -> Document | Retraction:
    """Few ids in one scope, corrected again and again, so that they move from page to page."""
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
        supersedes=tuple(one for one in links if one != name),
        topic="moon",
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("small", [(2, 4, 128), (1, 2, 2)], ids=["pages", "folders"])
def test_corrections_across_pages_are_applied_with_nothing_at_hand(
    small: tuple[int, int, int], seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, most in zip(("INLINE_MAX", "PAGE_MAX", "FOLDER_MAX"), small, strict=True):
        monkeypatch.setattr(pages, name, most)
    random = Random(seed)
    stream = [said(random, number) for number in range(1, 161)]
    with engine(tmp_path) as here:
        here._built.shard.cache_max = 0
        for step, one in enumerate(stream, 1):
            assert here.publish([one]).receipts[0].outcome in ("accepted", "retracted")
            if not step % 20:
                corpus = definitions.current_documents(stream[:step])
                [found] = here.frontier("topic=moon")
                standing = definitions.active(corpus, RULESET)
                assert {e.id for e in found.active} == definitions.frontier("topic=moon", corpus, RULESET) & standing
                assert {e.id for e in found.active} | {b.document.id for b in found.blocked} == definitions.frontier(
                    "topic=moon", corpus, RULESET
                )

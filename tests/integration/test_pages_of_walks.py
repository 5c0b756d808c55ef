"""What controls a document is found in pages, each of which says where to go on."""

import random
from collections.abc import Iterable, Sequence

import pytest

from stream_car import Engine
from stream_car.core.documents import Document
from stream_car.queries import snapshot
from stream_car.queries.answers import Group
from tests.support.engines import document, engine

LINKS = 300


@pytest.fixture
def few_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "LEVELS_MAX", 20)
    monkeypatch.setattr(snapshot, "LEVELS_PER_ANCHOR", 1)


def linked(name: str, *, supersedes: Sequence[str] = ()) -> Document:
    return document(name, "note", topic=name, text=f"about {name}", supersedes=tuple(supersedes))


def chain(length: int = LINKS) -> Iterable[Document]:
    return (linked(f"c{n}", supersedes=[f"c{n - 1}"] if n else []) for n in range(length))


def resolved_by_pages(car: Engine, name: str) -> tuple[set[str], list[Group]]:
    """Return the ids of what controls a document, and the groups of all pages."""
    controlling, pages, waiting, finished = set[str](), list[Group](), [name], set[str]()
    while waiting:
        groups = [group for item in car.resolve(waiting) for group in item.groups]
        pages += groups
        controlling |= {control.document.id for group in groups for control in group.controlling}
        finished |= {group.anchor.id for group in groups if group.anchor.id not in group.next}
        waiting = list(dict.fromkeys(name for group in groups for name in group.next if name not in finished))
    return controlling, pages


@pytest.mark.usefixtures("few_levels")
def test_the_pages_of_a_chain_of_links_lead_to_its_end() -> None:
    with engine() as car:
        car.publish(list(chain()))
        controlling, pages = resolved_by_pages(car, "c0")

        assert controlling == {f"c{LINKS - 1}"}
        assert len(pages) == LINKS // 21 + 1
        assert [(page.complete, page.reasons) for page in pages[:-1]] == [(False, ("limit",))] * (len(pages) - 1)
        assert pages[-1].complete
        assert car.explain("c0").group == pages[0]


@pytest.mark.usefixtures("few_levels")
def test_a_set_is_not_safe_if_the_search_for_what_controls_it_was_cut_short() -> None:
    with engine() as car:
        car.publish(list(chain()))

        assert not car.check(["c0", f"c{LINKS - 1}"]).holds
        assert car.check([f"c{LINKS - 3}", f"c{LINKS - 1}"]).holds


@pytest.mark.usefixtures("few_levels")
def test_many_anchors_in_cycles_are_examined_with_one_budget() -> None:
    with engine() as car:
        car.publish(linked(f"y{n}", supersedes=[f"y{(n + 1) % LINKS}"]) for n in range(LINKS))
        answer = car.query("about", k=50, depth=50)

        assert answer.certificate.lookups < 8 * (20 + 50)
        assert not answer.certificate.complete
        assert "limit" in answer.certificate.reasons


def test_all_pages_together_are_the_whole_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(12):
        draw = random.Random(seed)
        with engine() as car:
            links = [sorted({f"n{draw.randrange(60)}" for _ in range(draw.randrange(3))}) for _ in range(60)]
            car.publish(linked(f"n{n}", supersedes=[name for name in links[n] if name != f"n{n}"]) for n in range(60))
            whole = [{c.document.id for g in item.groups for c in g.controlling} for item in car.resolve(IDS)]
            with monkeypatch.context() as patched:
                patched.setattr(snapshot, "LEVELS_MAX", 1)
                patched.setattr(snapshot, "VISITS_MAX", 2)
                patched.setattr(snapshot, "LEVELS_PER_ANCHOR", 0)
                paged = [resolved_by_pages(car, name) for name in IDS]

        assert [controlling for controlling, _ in paged] == whole, seed
        assert any(len(pages) > 1 for _, pages in paged), seed


IDS = [f"n{n}" for n in range(0, 60, 7)]

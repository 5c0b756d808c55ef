"""A listing in pages is the listing: nothing twice, nothing left out, and each page bounded."""

import asyncio
import random
from collections.abc import Sequence
from functools import partial
from typing import Protocol

import pytest

from stream_car import Client, Engine, InvalidRequest
from stream_car.api import requests as r
from stream_car.core import pages
from stream_car.core.documents import Document
from stream_car.queries import answers as a, paging
from stream_car.queries.changes import Position
from stream_car.queries.paging import joined
from tests.support.engines import document, engine, on_day
from tests.support.http_service import serving

KINDS = ("claim", "claim", "denial", "doubt", "note")


def size(item: a.Frontier | a.History) -> int:
    return len(item.members) if isinstance(item, a.History) else len(item.in_force) + len(item.blocked)


class Listing(Protocol):
    """Reads one page."""

    def __call__(self, *, after: str, limit: int) -> Sequence[a.Frontier] | Sequence[a.History]: ...


def by_pages(read: Listing, limit: int) -> list[a.Frontier | a.History]:
    """Read a listing to its end, and check each page."""
    items: list[a.Frontier | a.History] = []
    after = ""
    while True:
        page = read(after=after, limit=limit)
        items += page
        assert sum(map(size, page)) <= limit
        assert all(item.complete and not item.next for item in page[:-1])
        assert all(item.complete == (not item.reasons) for item in page)
        if not page or not page[-1].next:
            return items
        assert page[-1].next != after
        after = page[-1].next


def corpus(seed: int, count: int) -> list[Document]:
    draw = random.Random(seed)
    documents = []
    for n in range(count):
        topic, place = draw.choice("abcd"), draw.choice("xy")
        supersedes = (f"d{draw.randrange(n)}",) if n and draw.random() < 0.1 else ()
        kind, at = draw.choice(KINDS), draw.randrange(count // 2)
        documents.append(document(f"d{n}", kind, at, topic=topic, place=place, supersedes=supersedes))
    return documents


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
def test_frontiers_and_histories_by_pages_are_those_at_once(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "INLINE_MAX", 4)
    monkeypatch.setattr(pages, "PAGE_MAX", 4)
    monkeypatch.setattr(pages, "FOLDER_MAX", 3)
    for seed in range(4):
        with engine() as car:
            car.publish(corpus(seed, 120))
            for scope in ("place=x", "topic=a", "topic=b, place=y"):
                for as_of in (None, on_day(30)):
                    whole = car.frontier(scope, as_of=as_of)
                    assert all(item.complete for item in whole)
                    frontiers = by_pages(partial(car.frontier, scope, as_of=as_of), limit)
                    assert joined(tuple(f for f in frontiers if isinstance(f, a.Frontier))) == whole, seed
                histories = by_pages(partial(car.history, scope), limit)
                assert joined(tuple(h for h in histories if isinstance(h, a.History))) == car.history(scope), seed


@pytest.mark.parametrize("limit", [1, 3, 50])
def test_changes_of_many_scopes_by_pages_are_those_at_once(limit: int) -> None:
    with engine() as car:
        car.publish(corpus(5, 100))
        for scope in (None, "place=x", "topic=a"):
            listed: list[a.Change] = []
            while page := car.changes(scope, after=listed[-1].position if listed else "", limit=limit):
                assert len(page) <= limit
                listed += page
            assert tuple(listed) == car.changes(scope, limit=10_000)
            assert [Position.parse(change.position).number for change in listed] == sorted(
                {Position.parse(change.position).number for change in listed}
            )


def test_pending_documents_by_pages_are_those_at_once() -> None:
    with engine() as car:
        car.publish(document(f"p{n}", at=2000 + n // 5, topic="a") for n in range(150))
        listed: list[a.PendingDocument] = []
        while page := car.pending(after=listed[-1].position if listed else "", limit=7):
            listed += page

        assert tuple(listed) == car.pending()
        assert len(listed) == 150


def test_a_page_of_large_texts_is_shorter() -> None:
    with engine() as car:
        car.publish(document(f"d{n}", topic="a", text="word " * 20_000) for n in range(20))
        limit = 10
        sizes = [size(item) for item in by_pages(partial(car.frontier, "topic=a"), limit)]

        assert sum(sizes) == 20
        assert max(sizes) == 1  # each is longer than ten times what a member has room for
        assert paging.BYTES_PER_MEMBER * limit < 100_000


def test_a_page_of_large_rejected_inputs_is_shorter() -> None:
    with engine() as car:
        car.publish(b"x" * 50_000 for _ in range(12))
        listed: list[a.Rejected] = []
        sizes = []
        while page := car.rejected(after=listed[-1].number if listed else 0, limit=10):
            listed += page
            sizes.append(len(page))

        assert len(listed) == 12
        assert max(sizes) == 1


def test_members_with_many_scopes_make_a_page_shorter() -> None:
    with engine() as car:
        scopes = {"topic": tuple(f"t{n}" for n in range(600)), "place": ("x",)}
        car.publish(
            {"id": f"w{n}", "type": "claim", "time": "2020-01-01T00:00:00Z", "scope": scopes} for n in range(10)
        )
        pages_of_one_scope = by_pages(partial(car.frontier, "topic=t5"), 20)

        assert [size(page) for page in pages_of_one_scope[:2]] != [10]
        assert sum(map(size, pages_of_one_scope)) == 10 * len({page.scope for page in pages_of_one_scope})


@pytest.mark.parametrize("after", ["x", "AAAA", "kaFh", "\u00e9", "gqFhwA=="])
def test_a_cursor_that_no_page_gave_is_rejected(after: str) -> None:
    with engine() as car:
        for call in (partial(car.frontier, "topic=a"), partial(car.history, "topic=a"), car.pending):
            with pytest.raises(InvalidRequest, match="`after`"):
                call(after=after)


async def test_a_client_follows_pages_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(r, "PAGE_MAX", 5)
    documents = [*corpus(3, 60), *(document(f"p{n}", at=2000 + n, topic="a") for n in range(13))]
    async with serving() as running:
        running.engine.publish(documents)

        def compare() -> None:
            with Client(running.url) as client:
                assert by_client(client) == by_client(running.engine)
                assert sum(map(size, client.frontier("place=x", limit=8))) <= 8

        await asyncio.to_thread(compare)


def by_client(car: "Engine | Client") -> list[object]:
    return [car.frontier("place=x"), car.history("topic=a"), car.changes(limit=500), car.pending(), car.rejected()]

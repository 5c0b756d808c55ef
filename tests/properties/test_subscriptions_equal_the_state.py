"""Snapshot and tail: whoever puts and drops what a subscription says has, when caught up, the state of now."""

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from stream_car.codec import encode, encode_mapping
from stream_car.core import definitions, frontier, pages
from stream_car.core.documents import Document, Statement
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import scope_parts
from stream_car.local.engine import Engine
from stream_car.queries.answers import Told
from stream_car.subscriptions import subscription
from stream_car.subscriptions.events import ActiveDocument, DocumentChange, Filter, Notice, ScopeState, View
from stream_car.subscriptions.subscription import Subscription
from tests.support.streams import random_rules, random_stream, remember_the_oracle

Parts = frozenset[tuple[str, str]]


class Follower:
    """What a client has: it does what it is told, and nothing else."""

    def __init__(self) -> None:
        self.documents: dict[str, int] = {}
        self.scopes: dict[str, set[tuple[str, int]]] = {}
        self.void: set[str] = set()
        self.seqs: dict[str, int] = {}
        self.cursors: list[tuple[int, ...]] = []

    def hear(self, notice: Notice) -> None:
        said = notice.data
        if notice.cursor is not None:
            self.cursors.append(notice.cursor)
        if isinstance(said, ActiveDocument):
            self.documents[said.id] = said.revision
        elif isinstance(said, DocumentChange):
            if said.active and said.selected:
                self.documents[said.id] = said.revision
            else:
                self.documents.pop(said.id, None)
        elif isinstance(said, ScopeState):
            assert said.scope not in self.scopes
            self.seqs[said.scope] = said.seq
            self.scopes[said.scope] = {(member.id, member.revision) for member in said.members}
            if said.void:
                self.void.add(said.void)
        elif isinstance(said, Told):
            self._apply(said)

    def _apply(self, told: Told) -> None:
        change = told.change
        assert change.seq == self.seqs.get(change.scope, change.seq - 1) + 1, "a change was told twice or left out"
        self.seqs[change.scope] = change.seq
        if change.scope.startswith("document="):
            self.void.difference_update(one.id for one in change.entered)
            self.void.update(one.id for one in change.left)
            return
        members = self.scopes.setdefault(change.scope, set())
        members.difference_update((one.id, one.revision) for one in change.left)
        members.update((one.id, one.revision) for one in change.entered)


def random_selection(random: Random, views: Sequence[View]) -> Filter:
    view = random.choice(views)
    parts: Parts = frozenset()
    if random.random() < 0.4:
        parts = frozenset(random.choice(((("x", "1"),), (("y", "2"),), (("x", "1"), ("y", "1")), (("record", "r1"),))))
    if view == "scope":
        return Filter(view="scope", parts=parts)
    types = frozenset(random.sample("abcd", 2)) if random.random() < 0.3 else frozenset[str]()
    ids = frozenset(f"n{n}" for n in range(5)) if random.random() < 0.3 else frozenset[str]()
    return Filter(ids=ids, types=types, parts=parts)


def has_parts(scope: str, parts: Parts) -> bool:
    return parts <= set(scope_parts(scope))


def selected(document: Document, chosen: Filter, ruleset: Ruleset) -> bool:
    scopes = ruleset.scopes(document)
    return (
        bool(scopes)
        and (not chosen.ids or document.id in chosen.ids)
        and (not chosen.types or document.type in chosen.types)
        and any(has_parts(scope, chosen.parts) for scope in scopes)
    )


def check(follower: Follower, chosen: Filter, corpus: Mapping[str, Document], ruleset: Ruleset, what: object) -> None:
    if chosen.view == "document":
        active = definitions.active(corpus, ruleset)
        wanted = {d.id: d.revision for d in corpus.values() if d.id in active and selected(d, chosen, ruleset)}
        assert follower.documents == wanted, what
        return
    scopes = {scope for document in corpus.values() for scope in ruleset.scopes(document)}
    for scope in scopes | follower.scopes.keys():
        if has_parts(scope, chosen.parts):
            found = {(name, corpus[name].revision) for name in definitions.frontier(scope, corpus, ruleset)}
            assert follower.scopes.get(scope, set()) == found, (what, scope)
    if not chosen.parts:
        named = {name for document in corpus.values() for name in document.supersedes}
        assert follower.void == named | {d.id for d in corpus.values() if d.superseded_by}, what


def sent(said: Statement) -> bytes:
    if isinstance(said, Document):
        return encode(said)
    revision = {} if said.revision is None else {"revision": said.revision}
    return encode_mapping({"id": said.id, **revision, "retracted": True})


def follow(seed: int, steps: int, views: Sequence[View] = ("document", "document", "scope")) -> int:
    """One stream, published bit by bit, and followers who come and go; how often somebody had caught up."""
    random = Random(seed)
    ruleset = random_rules(random)
    stream = random_stream(random, steps)
    caught_up = 0
    with Engine(ruleset=ruleset, future="apply") as engine:
        followers: list[tuple[Follower, Filter, Subscription]] = []
        at = 0
        while at < len(stream) or not all(done for *_, done in (pulled(engine, one) for one in followers)):
            if at < len(stream) and random.random() < 0.5:
                count = random.randint(1, 4)
                engine.publish([sent(said) for said in stream[at : at + count]])
                at += count
            if random.random() < 0.1 or not followers:
                chosen = random_selection(random, views)
                place = engine.subscription(chosen, cursor=(engine.last_change(),), with_snapshot=True)
                followers.append((Follower(), chosen, place))
            follower, chosen, place, done = pulled(engine, random.choice(followers))
            assert follower.cursors == sorted(follower.cursors), (seed, at)
            if done:
                caught_up += 1
                check(follower, chosen, definitions.current_documents(stream[:at]), ruleset, (seed, at, chosen))
            if random.random() < 0.05 and done:
                fresh = engine.subscription(chosen, cursor=place.cursor, with_snapshot=False)
                followers = [one if one[2] is not place else (follower, chosen, fresh) for one in followers]
    return caught_up


def pulled(engine: Engine, one: tuple[Follower, Filter, Subscription]) -> tuple[Follower, Filter, Subscription, bool]:
    follower, chosen, place = one
    notices, done = engine.pull(place)
    for notice in notices:
        follower.hear(notice)
    return follower, chosen, place, done


def take_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that every boundary of a step is met often."""
    remember_the_oracle(monkeypatch.setattr)
    monkeypatch.setattr(subscription, "EVENTS_AT_ONCE", 3)
    monkeypatch.setattr(subscription, "ITEMS_AT_ONCE", 2)
    monkeypatch.setattr(subscription, "FEW_MAX", 6)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    take_small_steps(monkeypatch)


def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("INLINE_MAX", 2), ("PAGE_MAX", 3), ("FOLDER_MAX", 2)):
        monkeypatch.setattr(pages, name, most)


@pytest.mark.parametrize("block", range(4))
def test_a_follower_that_has_caught_up_has_the_state_of_now(block: int) -> None:
    assert sum(follow(seed, 60) for seed in range(block * 10, block * 10 + 10)) > 100


@pytest.mark.parametrize("block", range(2))
def test_the_same_holds_where_scopes_have_pages(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small_pages(monkeypatch)
    assert sum(follow(seed, 60) for seed in range(1000 + block * 10, 1010 + block * 10)) > 100


@pytest.mark.parametrize("block", range(2))
def test_documents_of_a_run_are_told_one_by_one(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small_pages(monkeypatch)
    monkeypatch.setattr(frontier, "LISTED_MAX", 1)
    assert sum(follow(seed, 60, views=("document",)) for seed in range(2000 + block * 10, 2010 + block * 10)) > 100


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_it_holds_over_many_streams(block: int) -> None:
    assert sum(follow(seed, 80) for seed in range(5000 + block * 20, 5020 + block * 20)) > 200

"""Snapshot and changes: a subscriber that applies what it receives has, when it has caught up, the state of now."""

from collections.abc import Sequence
from random import Random

import pytest

from stream_car.core import definitions, frontier
from stream_car.local.engine import Engine
from stream_car.subscriptions.events import Selection, View
from stream_car.subscriptions.subscription import SubscriptionReader
from tests.support.followers import Follower, encode_statement, random_selection, take_small_steps, use_small_pages
from tests.support.streams import random_rules, random_stream


class Subscription:
    """A follower of an engine, and its place in the stream of changes."""

    def __init__(self, engine: Engine, selection: Selection) -> None:
        self.engine = engine
        self.selection = selection
        self.follower = Follower()
        self.reader = self._open((engine.directory.last_change(),), with_snapshot=True)

    def _open(self, cursor: Sequence[int], *, with_snapshot: bool) -> SubscriptionReader:
        return self.engine.directory.subscription(self.selection, cursor=cursor, with_snapshot=with_snapshot)

    def pull(self) -> bool:
        """Receive the next events, and return whether these were the last ones."""
        notices, has_caught_up = self.engine.directory.pull(self.reader)
        for notice in notices:
            self.follower.receive(notice)
        return has_caught_up

    def reconnect(self) -> None:
        """Continue from the cursor with a new reader."""
        self.reader = self._open(self.reader.cursor, with_snapshot=False)


def follow(seed: int, steps: int, views: Sequence[View] = ("document", "document", "scope")) -> int:
    """Publish a stream bit by bit to subscribers that come and reconnect; return how often one had caught up."""
    random = Random(seed)
    ruleset = random_rules(random)
    stream = random_stream(random, steps)
    caught_up = 0
    with Engine(ruleset=ruleset, future="apply") as engine:
        subscriptions: list[Subscription] = []
        published = 0
        while published < len(stream) or not all(subscription.pull() for subscription in subscriptions):
            if published < len(stream) and random.random() < 0.5:
                count = random.randint(1, 4)
                engine.publish(map(encode_statement, stream[published : published + count]))
                published += count
            if random.random() < 0.1 or not subscriptions:
                subscriptions.append(Subscription(engine, random_selection(random, views)))
            subscription = random.choice(subscriptions)
            has_caught_up = subscription.pull()
            follower, selection = subscription.follower, subscription.selection
            assert follower.cursors == sorted(follower.cursors), (seed, published)
            if has_caught_up:
                caught_up += 1
                corpus = definitions.current_documents(stream[:published])
                follower.check(selection, corpus, ruleset, (seed, published, selection))
            if random.random() < 0.05 and has_caught_up:
                subscription.reconnect()
    return caught_up


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    take_small_steps(monkeypatch)


@pytest.mark.parametrize("block", range(4))
def test_a_follower_that_has_caught_up_has_the_state_of_now(block: int) -> None:
    assert sum(follow(seed, 60) for seed in range(block * 10, block * 10 + 10)) > 100


@pytest.mark.parametrize("block", range(2))
def test_the_same_holds_when_scopes_have_pages(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_pages(monkeypatch)
    assert sum(follow(seed, 60) for seed in range(1000 + block * 10, 1010 + block * 10)) > 100


@pytest.mark.parametrize("block", range(2))
def test_documents_of_a_run_are_events_of_their_own(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_pages(monkeypatch)
    monkeypatch.setattr(frontier, "LISTED_MAX", 1)
    assert sum(follow(seed, 60, views=("document",)) for seed in range(2000 + block * 10, 2010 + block * 10)) > 100


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_it_holds_over_many_streams(block: int) -> None:
    assert sum(follow(seed, 80) for seed in range(5000 + block * 20, 5020 + block * 20)) > 200

"""Which messages of an outbox are due, and what finding them costs."""

import time
from contextlib import closing
from pathlib import Path

import pytest

from stream_car import Engine, Event
from stream_car.webhooks.outbox import Outbox
from tests.support.engines import RULESET, document

DROPPED = [f"ALTER TABLE messages DROP COLUMN {name}" for name in ("is_head", "added")]


@pytest.fixture(scope="module")
def event() -> Event:
    with Engine(ruleset=RULESET) as car:
        start = car.status().cursor
        car.publish(document("a", record="a"))
        [event] = car.subscribe(view="record", after=start, material=False)
        return event


def outbox_of_an_earlier_release(folder: Path, event: Event) -> Path:
    """Return a file in which messages of two records wait."""
    with closing(Outbox(folder / "o")) as outbox:
        for name in ("a1", "a2", "b1"):
            outbox.add(event, message_id=name, record=name[0], body=b"{}")
        for statement in ("DROP INDEX heads", "DROP INDEX waiting", *DROPPED):
            outbox._file.connection.execute(statement)
    return folder / "o"


def test_finding_what_is_due_does_not_read_the_messages_that_wait_behind_it(tmp_path: Path, event: Event) -> None:
    with closing(Outbox(tmp_path / "o")) as outbox:
        for number in range(300):
            outbox.add(event, message_id=str(number), record=f"r{number % 3}", body=b"{}")
        steps = 0

        def count() -> None:
            nonlocal steps
            steps += 1

        connection = outbox._file.connection
        connection.set_progress_handler(count, 1)
        heads = outbox.heads(8)
        connection.set_progress_handler(None, 0)

    assert [message.id for message in heads] == ["0", "1", "2"]
    assert steps < 100


def test_the_oldest_message_of_each_record_is_due_whatever_became_of_others(tmp_path: Path, event: Event) -> None:
    def heads() -> list[str]:
        return sorted(message.id for message in outbox.heads(9))

    with closing(Outbox(tmp_path / "o")) as outbox:
        for name in ("a1", "a2", "b1", "a3"):
            outbox.add(event, message_id=name, record=name[0], body=b"{}")
        by_id = {message.id: message for message in outbox.heads(9)}
        outbox.failed(by_id["a1"], "no", 5.0)
        assert heads() == ["a1", "b1"]
        outbox.failed(by_id["a1"], "no", None)
        outbox.delivered(by_id["b1"])
        assert heads() == ["a2"]
        assert (outbox.waiting(), outbox.dead_count()) == (2, 1)
        outbox.revive()
        assert heads() == ["a1"]
        assert outbox.age_s() > 0


def test_an_outbox_of_an_earlier_release_goes_on(tmp_path: Path, event: Event) -> None:
    path = outbox_of_an_earlier_release(tmp_path, event)
    before = time.time()
    with closing(Outbox(path)) as outbox:
        assert sorted(message.id for message in outbox.heads(9)) == ["a1", "b1"]
        assert 0 < outbox.age_s() <= time.time() - before


def test_an_outbox_of_an_earlier_release_goes_on_after_a_crash_of_its_first_opening(
    tmp_path: Path, event: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(outbox: Outbox) -> None:
        raise KeyboardInterrupt

    path = outbox_of_an_earlier_release(tmp_path, event)
    with monkeypatch.context() as patch:
        patch.setattr(Outbox, "_find_heads", crash)
        with pytest.raises(KeyboardInterrupt):
            Outbox(path)

    with closing(Outbox(path)) as outbox:
        assert sorted(message.id for message in outbox.heads(9)) == ["a1", "b1"]
        assert outbox.age_s() > 0

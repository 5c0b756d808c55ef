"""A consumer keeps what it makes of events and its cursor in one file, whatever ends it, and waits for its service."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

import stream_car
from stream_car import Consumer, Event, RecordChange, SnapshotBegin, SnapshotRecord
from stream_car.http.server import listen
from stream_car.settings import ServerSettings
from tests.support.background import in_background
from tests.support.http_service import serving


@pytest.fixture
def car() -> Iterator[stream_car.Engine]:
    with stream_car.open(rules=["security"]) as engine:
        engine.publish([advisory("a"), advisory("b")])
        yield engine


def advisory(name: str) -> dict[str, object]:
    return {"id": name, "type": "advisory", "time": "2022-01-01", "scope": {"vulnerability": name, "package": "tea"}}


def fix(name: str) -> dict[str, object]:
    return {**advisory(name), "id": f"{name}-fixed", "type": "release_note", "time": "2022-01-02"}


def consumer(car: stream_car.Engine, path: Path, **selection: str) -> Consumer:
    events = Consumer(car.subscribe(view="record", types=["advisory"], **selection), path)  # type: ignore[arg-type]
    events.state.execute("CREATE TABLE IF NOT EXISTS tickets (record TEXT PRIMARY KEY, state TEXT, times INTEGER)")
    return events


def act(events: Consumer, event: Event) -> None:
    write = "INSERT INTO tickets VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET state = excluded.state, times = times + 1"
    match event:
        case SnapshotBegin():
            events.state.execute("DELETE FROM tickets")
        case SnapshotRecord(record=record, state=state) | RecordChange(record=record, state=state):
            events.state.execute(write, (record, state))


def tickets(path: Path) -> dict[str, tuple[str, int]]:
    with sqlite3.connect(path) as reading:
        return {name: (state, times) for name, state, times in reading.execute("SELECT * FROM tickets")}


def run(car: stream_car.Engine, path: Path, stop_after: int = 1000, **selection: str) -> None:
    """Consume everything, or crash while the last of so many events is dealt with."""
    with consumer(car, path, **selection) as events:
        for count, event in enumerate(events, 1):
            act(events, event)
            if count == stop_after:
                raise KeyboardInterrupt


def test_state_and_cursor_move_together_whatever_ends_the_consumer(car: stream_car.Engine, tmp_path: Path) -> None:
    path = tmp_path / "tickets.sqlite"
    for stop_after in (1, 2, 3):
        with pytest.raises(KeyboardInterrupt):
            run(car, path, stop_after)
        assert tickets(path) == {}  # half a snapshot is nothing
    run(car, path)
    assert tickets(path) == {"a": ("open", 1), "b": ("open", 1)}

    car.publish([fix("a"), fix("b")])
    with pytest.raises(KeyboardInterrupt):
        run(car, path, 2)
    assert tickets(path) == {"a": ("fixed", 2), "b": ("open", 1)}
    run(car, path)
    run(car, path)
    assert tickets(path) == {"a": ("fixed", 2), "b": ("fixed", 2)}


def test_an_event_that_was_kept_does_not_come_again(car: stream_car.Engine, tmp_path: Path) -> None:
    path = tmp_path / "tickets.sqlite"
    run(car, path)
    car.publish(fix("a"))
    with consumer(car, path) as events:
        for event in events:
            act(events, event)
            events.keep()
            break
    run(car, path)

    assert tickets(path)["a"] == ("fixed", 2)


def test_another_selection_begins_with_a_snapshot(car: stream_car.Engine, tmp_path: Path) -> None:
    path = tmp_path / "tickets.sqlite"
    run(car, path)
    run(car, path, scope="vulnerability=B")

    assert tickets(path) == {"b": ("open", 1)}


def test_a_file_of_another_kind_is_an_error_that_names_it(car: stream_car.Engine, tmp_path: Path) -> None:
    path = tmp_path / "tickets.sqlite"
    path.write_bytes(b"no database" * 1000)

    with pytest.raises(stream_car.StreamCarError, match=r"tickets\.sqlite is damaged"):
        Consumer(car.subscribe(), path)


def test_a_service_that_is_down_at_the_start_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with listen(ServerSettings(port=0), None) as listener:
        port = listener.getsockname()[1]
    received: list[Event] = []
    client = stream_car.Client(f"http://127.0.0.1:{port}", retries=0)

    def consume() -> None:
        with client, Consumer(client.subscribe(view="record"), tmp_path / "state.sqlite") as events:
            for event in events:
                received.append(event)
                if isinstance(event, stream_car.SnapshotEnd):
                    break

    thread = Thread(target=consume)
    thread.start()
    while not caplog.records:
        thread.join(0.01)
    with in_background(serving(settings=ServerSettings(port=port))) as service:
        assert service.value.url.endswith(str(port))
        thread.join(30)

    assert not thread.is_alive()
    assert isinstance(received[-1], stream_car.SnapshotEnd)
    assert "does not answer" in caplog.text

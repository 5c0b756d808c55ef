"""Events out of bytes, and where to continue."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from stream_car.api import requests as r
from stream_car.api.bookmark import Bookmark
from stream_car.client.retries import HttpResponse, HttpRetryPolicy, NoResponse
from stream_car.client.subscription import EventParser, StreamConnection
from stream_car.errors import InvalidRequest, Overloaded, Unavailable
from stream_car.http.problems import Problem
from stream_car.http.sse import encode_event
from stream_car.queries.answers import ChangeCause
from stream_car.subscriptions.cursor import CURSOR_HINT
from stream_car.subscriptions.events import (
    DocumentChange,
    Event,
    Heartbeat,
    Reset,
    SnapshotBegin,
    SnapshotDocument,
    SnapshotEnd,
)

TIME = datetime(2024, 1, 31, tzinfo=UTC)
BEGIN = SnapshotBegin(generation="g", view="document")
END = SnapshotEnd(generation="g", cursor="g:5")
BEAT = Heartbeat(cursor="g:9")
RESET = Reset(reason="cursor_expired", generation="g")
DOCUMENT = SnapshotDocument(
    id="a", revision=1, type="t", time=TIME, order=0, title="", source="", url="", scopes=("topic=x",)
)


def change(number: int, title: str = "t", *, with_cursor: bool = True) -> DocumentChange:
    return DocumentChange(
        cursor=f"g:{number}" if with_cursor else None,
        id="a",
        status="superseded",
        selected=True,
        revision=1,
        type="claim",
        time=TIME,
        order=0,
        title=title,
        source="",
        url="",
        why="voided",
        rule="r",
        scope="topic=x",
        cause=ChangeCause(id="b", revision=1),
        position=f"g/0/{number}",
    )


EVENTS: list[Event] = [
    BEGIN,
    DOCUMENT,
    change(4, "half\u2028a\u0085line\x0b\\n", with_cursor=False),
    END,
    change(6),
    BEAT,
    RESET,
]


@given(cuts=st.lists(st.integers(min_value=0, max_value=5000), max_size=20))
def test_the_events_are_the_same_however_their_bytes_are_cut(cuts: list[int]) -> None:
    stream = b"retry: 1000\n\n" + b"".join(encode_event(event) for event in EVENTS)
    parser = EventParser()
    received: list[Event] = []
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(stream)], strict=True):
        received += parser.parse(stream[start:end])

    assert [event for event in received if event != Heartbeat()] == EVENTS


def test_an_event_of_a_newer_service_is_skipped_and_a_broken_one_is_an_error() -> None:
    assert list(EventParser().parse(b'event: mood\ndata: {"good": true}\n\n')) == []
    with pytest.raises(Unavailable, match="cannot be read"):
        list(EventParser().parse(b"event: document-change\ndata: {}\n\n"))


def test_a_bookmark_does_not_move_into_a_snapshot(tmp_path: Path) -> None:
    bookmark = Bookmark(None, tmp_path / "cursor")
    cursors = []
    events: list[Event] = [
        BEGIN, change(4), END, change(6, with_cursor=False), change(6), RESET, BEGIN, change(8), BEAT
    ]  # fmt: skip
    for event in events:
        bookmark.move_past(event)
        cursors.append(bookmark.cursor)

    assert cursors == [None, None, "g:5", "g:5", "g:6", "g:6", "g:6", "g:6", "g:6"]


def test_a_cursor_is_kept_in_a_file_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "cursor"
    bookmark = Bookmark(None, path)
    bookmark.save()
    assert not path.exists()
    bookmark.move_past(change(6))
    bookmark.save()

    assert path.read_text() == "g:6\n"
    assert Bookmark(None, path).cursor == "g:6"
    assert Bookmark("g:2", path).cursor == "g:2"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_holds_something_else_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "letter"
    path.write_text("dear reader\n")

    with pytest.raises(InvalidRequest, match="name another file"):
        Bookmark(None, path)
    elsewhere = Bookmark(None, tmp_path / "no" / "where")
    elsewhere.move_past(change(6))
    with pytest.raises(InvalidRequest, match="cannot be saved"):
        elsewhere.save()


def test_an_error_about_a_cursor_names_the_file_that_it_came_from(tmp_path: Path) -> None:
    path = tmp_path / "cursor"
    path.write_text("g:99")
    ahead = InvalidRequest("cursor_ahead", f"The last event so far is 5, before your cursor. {CURSOR_HINT}")

    explained = Bookmark(None, path).explain(ahead)
    assert explained.code == "cursor_ahead"
    assert str(explained) == (
        f"{path}: The last event so far is 5, before your cursor. Remove {path}, or name another file."
    )
    assert Bookmark("g:99", None).explain(ahead) is ahead
    other = InvalidRequest("scope", "No.")
    assert Bookmark(None, path).explain(other) is other


def connection(after: str | None = None, *, snapshot: bool | None = True) -> tuple[StreamConnection, Bookmark]:
    bookmark = Bookmark(after, None)
    return StreamConnection(
        r.Subscribe(snapshot=snapshot), bookmark, HttpRetryPolicy(retries=2), "http://there"
    ), bookmark


def receive(connection: StreamConnection, bookmark: Bookmark, events: list[Event]) -> Iterator[Event]:
    """Yield the events of a chunk as a subscription does: each counts as dealt with when the next one is requested."""
    for event in connection.receive(b"".join(map(encode_event, events))):
        bookmark.settle()
        bookmark.hand_out(event)
        yield event


def test_a_snapshot_is_requested_again_only_if_it_was_not_received_whole() -> None:
    events, bookmark = connection("g:1")
    requested = [msgspec.json.decode(events.body)["snapshot"]]
    events.opened()
    for event in (BEGIN, END):
        list(receive(events, bookmark, [event]))
        bookmark.settle()
        requested.append(msgspec.json.decode(events.body)["snapshot"])

    assert requested == [True, True, None]
    assert events.headers["Last-Event-ID"] == "g:5"


def test_an_event_that_was_not_dealt_with_is_received_again() -> None:
    events, bookmark = connection("g:1")
    events.opened()
    received = receive(events, bookmark, [change(6), change(7)])
    next(received)
    next(received)
    events.failed(NoResponse(reason="reset", was_sent=True))
    events.pause()
    bookmark.settle()

    assert bookmark.cursor == "g:6"


def test_a_heartbeat_moves_the_cursor_and_is_not_handed_out() -> None:
    events, bookmark = connection("g:1")
    events.opened()

    assert list(receive(events, bookmark, [BEAT])) == []
    assert bookmark.cursor == "g:9"


def test_an_event_cut_off_by_a_broken_connection_is_forgotten() -> None:
    events, _ = connection("g:1")
    events.opened()
    assert list(events.receive(encode_event(change(6))[:-10])) == []
    events.opened()

    assert list(events.receive(encode_event(change(6)))) == [change(6)]


REFUSED = NoResponse(reason="refused", was_sent=False)


def fail(connection: StreamConnection, failure: HttpResponse | NoResponse) -> float:
    connection.failed(failure)
    return connection.pause()


def test_at_first_a_service_must_answer_and_later_it_is_waited_for() -> None:
    events, _ = connection()
    fail(events, REFUSED)
    fail(events, REFUSED)
    with pytest.raises(Unavailable, match="stream-car serve"):
        fail(events, REFUSED)
    events.opened()
    assert all(fail(events, REFUSED) <= 5 for _ in range(50))


def test_a_stream_that_ends_is_opened_again() -> None:
    events, _ = connection()
    events.opened()

    assert events.pause() < 1


def response(status: int, code: str, retry_after: str = "") -> HttpResponse:
    problem = Problem(type="", title="", status=status, detail="Not now.", code=code)
    return HttpResponse(status=status, body=msgspec.json.encode(problem), retry_after=retry_after)


def test_a_full_service_is_waited_for_but_not_forever_at_first() -> None:
    full = response(429, "busy")
    events, _ = connection()
    assert fail(events, full) > 0
    assert fail(events, full) > 0
    with pytest.raises(Overloaded):
        fail(events, full)
    events.opened()
    assert all(fail(events, full) > 0 for _ in range(50))


def test_the_pause_that_a_full_service_asks_for_is_made() -> None:
    events, _ = connection()

    assert fail(events, response(503, "unavailable", "7")) == 7


def test_any_other_answer_ends_the_subscription() -> None:
    events, _ = connection()
    events.opened()
    with pytest.raises(InvalidRequest) as caught:
        fail(events, response(409, "cursor_ahead"))

    assert caught.value.code == "cursor_ahead"

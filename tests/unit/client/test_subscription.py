"""Events out of bytes, and the place to go on from."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_car.client.retries import Ask, Heard, Lost, Patience
from stream_car.client.subscription import Events, Following, Place
from stream_car.core.changes import Cause
from stream_car.errors import InvalidRequest, TooMuch, Unavailable
from stream_car.http.sse import as_event
from stream_car.subscriptions.events import ActiveDocument, DocumentChange, Event, Reset, SnapshotBegin, SnapshotEnd

BEGIN = Event("snapshot-begin", SnapshotBegin(generation="g", view="document"))
END = Event("snapshot-end", SnapshotEnd(generation="g", cursor="g:5"), "g:5")
BEAT = Event("heartbeat", None, "g:9")
RESET = Event("reset", Reset(reason="cursor_expired", generation="g"))


def change(oseq: int, title: str = "t", *, cursor: bool = True) -> Event:
    data = DocumentChange(
        id="a",
        active=False,
        selected=True,
        revision=1,
        type="claim",
        time=0,
        order=0,
        title=title,
        source="",
        url="",
        why="voided",
        rule="r",
        scope="topic=x",
        cause=Cause(id="b", revision=1),
        oseq=oseq,
    )
    return Event("change", data, f"g:{oseq}" if cursor else None)


TOLD = [BEGIN, change(4, "half\u2028a\u0085line\x0b\\n", cursor=False), END, change(6), BEAT, RESET]
ITEM = Event(
    "snapshot",
    ActiveDocument(id="a", revision=1, type="t", time=0, order=0, title="", source="", url="", scopes=("topic=x",)),
)


@given(cuts=st.lists(st.integers(min_value=0, max_value=5000), max_size=20))
def test_events_come_out_alike_however_their_bytes_are_cut(cuts: list[int]) -> None:
    stream = b"retry: 1000\n\n" + b"".join(as_event(said) for said in [*TOLD, ITEM])
    events, heard = Events("document"), []
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(stream)], strict=True):
        heard += list(events.feed(stream[start:end]))

    assert [one for one in heard if one != Event("heartbeat", None, None)] == [*TOLD, ITEM]


def test_an_event_of_a_newer_service_is_left_out_and_a_broken_one_is_an_error() -> None:
    assert list(Events("document").feed(b'event: mood\ndata: {"good": true}\n\n')) == []
    with pytest.raises(Unavailable, match="cannot be read"):
        list(Events("document").feed(b"event: change\ndata: {}\n\n"))


def test_the_place_does_not_move_into_the_middle_of_a_snapshot(tmp_path: Path) -> None:
    place = Place(None, tmp_path / "cursor")
    seen = []
    for said in [BEGIN, change(4), END, change(6, cursor=False), change(6), RESET, BEGIN, change(8), BEAT]:
        place.passed(said)
        seen.append(place.cursor)

    assert seen == [None, None, "g:5", "g:5", "g:6", "g:6", "g:6", "g:6", "g:6"]


def test_the_place_is_kept_in_a_file_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "cursor"
    place = Place(None, path)
    place.save()
    assert not path.exists()
    place.passed(change(6))
    place.save()

    assert path.read_text() == "g:6\n"
    assert Place(None, path).cursor == "g:6"
    assert Place("g:2", path).cursor == "g:2"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_holds_something_else_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "letter"
    path.write_text("dear reader\n")

    with pytest.raises(InvalidRequest, match="name another file"):
        Place(None, path)
    elsewhere = Place(None, tmp_path / "no" / "where")
    elsewhere.passed(change(6))
    with pytest.raises(InvalidRequest, match="cannot be kept"):
        elsewhere.save()


def following(after: str | None = None, snapshot: str = "true") -> Following:
    ask = Ask(method="GET", path="/v1/subscribe", parameters=(("snapshot", snapshot),))
    return Following(ask, "document", Place(after, None), Patience(retries=2), "http://there")


def test_a_snapshot_is_asked_for_again_only_where_it_was_not_told_whole() -> None:
    state = following("g:1")
    asked = [state.parameters]
    state.opened()
    for said in (BEGIN, END):
        list(state.taken(as_event(said)))
        state.settle()
        asked.append(state.parameters)

    assert asked == [(("snapshot", "true"),), (("snapshot", "true"),), ()]
    assert state.headers["Last-Event-ID"] == "g:5"


def test_an_event_that_was_not_dealt_with_comes_again() -> None:
    state = following("g:1")
    state.opened()
    told = state.taken(as_event(change(6)) + as_event(change(7)))
    next(told)
    state.settle()
    next(told)
    state.pause(None)
    state.settle()

    assert state.place.cursor == "g:6"


def test_at_first_a_service_must_answer_and_later_it_is_waited_for() -> None:
    lost, state = Lost(reason="refused", was_sent=False), following()
    state.pause(lost)
    state.pause(lost)
    with pytest.raises(Unavailable, match="stream-car up"):
        state.pause(lost)
    state.opened()
    assert all(state.pause(lost) <= 5 for _ in range(50))


def test_a_full_service_is_waited_for_and_at_first_not_for_ever() -> None:
    full = Heard(
        status=429, body=msgspec.json.encode({"type": "", "title": "", "status": 429, "detail": "", "code": ""})
    )
    state = following()
    assert state.pause(full) > 0
    assert state.pause(full) > 0
    with pytest.raises(TooMuch):
        state.pause(full)
    state.opened()
    assert all(state.pause(full) > 0 for _ in range(50))

"""Long questions: one at a time, in pieces, and never in the way of what is short."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from time import perf_counter, thread_time

import msgspec
import pytest

from stream_car.api.json import pieces
from stream_car.errors import TooMuch
from stream_car.http import app
from stream_car.http.app import as_json
from stream_car.local import long_queries as lanes
from stream_car.local.long_queries import Lane, Turn
from stream_car.queries import fair_scheduling as spares
from stream_car.queries.fair_scheduling import SpareTime, Turns


def work(seconds: float) -> None:
    begin = thread_time()
    while thread_time() - begin < seconds:
        pass


def a_lane() -> tuple[Lane, asyncio.Lock]:
    still = asyncio.Lock()
    return Lane(SpareTime(), still), still


async def long_question(lane: Lane, inside: list[int], number: int, pieces: int = 5) -> None:
    async with lane.turn(is_long=True) as turn:
        inside.append(number)
        for _ in range(pieces):
            work(spares.PIECE_S)
            await turn.give_way()
        inside.append(number)


async def test_one_long_question_is_inside_at_a_time_and_holds_still_what_it_reads() -> None:
    lane, still = a_lane()
    inside: list[int] = []
    asking = [asyncio.create_task(long_question(lane, inside, number)) for number in range(4)]
    while not inside:
        await asyncio.sleep(0)
    assert still.locked()
    await asyncio.gather(*asking)

    assert inside == [0, 0, 1, 1, 2, 2, 3, 3]
    assert not still.locked()


async def test_between_two_pieces_others_have_three_times_as_long_as_a_piece_took() -> None:
    lane, _ = a_lane()
    async with lane.turn(is_long=True) as turn:
        work(0.02)
        begin = perf_counter()
        assert await turn.give_way()
        rested = perf_counter() - begin
        assert not await turn.give_way()

    assert rested >= 3 * 0.019


async def test_more_than_may_wait_are_told_so_at_once_and_the_others_get_their_turn() -> None:
    lane, _ = a_lane()
    inside: list[int] = []
    asking = [asyncio.create_task(long_question(lane, inside, n, 1)) for n in range(lanes.WAITING_MAX + 1)]
    await asyncio.sleep(0)
    assert lane.waiting >= lanes.WAITING_MAX
    with pytest.raises(TooMuch, match="too many long questions"):
        async with lane.turn(is_long=True):
            pass
    async with lane.turn(is_long=False) as short:
        assert not await short.give_way()
    await asyncio.gather(*asking)

    assert len(inside) == 2 * len(asking)
    assert lane.waiting == 0


async def test_of_questions_that_turn_out_long_no_more_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "FIRST_S", 0.001)
    lane, _ = a_lane()

    async def ask() -> None:
        async with lane.turn(is_long=False) as turn:
            work(lanes.FIRST_S)
            await turn.give_way()

    asking = [asyncio.create_task(ask()) for _ in range(lanes.WAITING_MAX + 4)]
    heard = await asyncio.gather(*asking, return_exceptions=True)

    assert [type(one) for one in heard if one is not None] == [TooMuch] * 3
    assert lane.waiting == 0


async def test_whoever_waits_too_long_for_the_lane_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "WAIT_MAX_S", 0.01)
    lane, still = a_lane()
    async with still:
        with pytest.raises(TooMuch, match="take too long"):
            async with lane.turn(is_long=True):
                pass
    await asyncio.sleep(0.03)
    async with lane.turn(is_long=True):
        assert still.locked()


async def test_a_short_question_that_turns_out_long_goes_on_in_the_lane() -> None:
    lane, still = a_lane()
    async with lane.turn(is_long=False) as turn:
        assert not await turn.give_way()
        work(lanes.FIRST_S)
        assert await turn.give_way()
        assert still.locked()

    assert not still.locked()


async def test_where_nobody_is_wanted_elsewhere_nothing_rests_longer_than_one_turn_of_the_loop() -> None:
    spare = SpareTime(lambda: False)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.create_task(others())
    for _ in range(20):
        async with spare:
            work(5 * spares.PIECE_S)
    running.cancel()

    assert 19 <= turns <= 60


def counted_pieces(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The pieces of answers that were written so far; each takes as long as a piece of work may."""
    written: list[bytes] = []

    def slowly(value: object) -> Iterator[bytes]:
        for piece in pieces(value):
            work(spares.PIECE_S)
            written.append(piece)
            yield piece

    monkeypatch.setattr(app, "pieces", slowly)
    return written


async def test_a_long_answer_is_written_in_the_spare_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    written = counted_pieces(monkeypatch)
    spare = SpareTime()
    async with spare:
        writing = asyncio.create_task(as_json(list(range(20)), Turns(spare)))
        for _ in range(50):
            await asyncio.sleep(0)
        before = len(written)
    long = await writing

    assert before == 1
    assert msgspec.json.decode(bytes(long.body)) == list(range(20))


async def test_a_short_answer_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "PIECE_S", 60.0)
    spare = SpareTime()
    async with spare:
        short = await as_json(["short"], Turns(spare))

    assert bytes(short.body) == b'["short"]'


async def test_many_writers_hold_up_a_long_question_and_publishing_no_longer_than_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane, still = a_lane()
    line = Turns(lane.spare)
    inside: list[int] = []
    written = counted_pieces(monkeypatch)
    writing = [asyncio.create_task(as_json(list(range(40)), line)) for _ in range(30)]
    await asyncio.sleep(0)
    asking = asyncio.create_task(long_question(lane, inside, 1, pieces=10))
    while not inside:
        await asyncio.sleep(0)
    before = len(written)
    async with still:  # as whoever publishes
        assert inside == [1, 1]
        assert 0 < len(written) - before <= 15
    for one in writing:
        one.cancel()
    await asyncio.gather(asking, *writing, return_exceptions=True)


async def test_listeners_and_a_long_question_take_turns() -> None:
    spare = SpareTime()
    lane, pages = Lane(spare, asyncio.Lock()), Turns(spare)
    order: list[str] = []

    async def listen() -> None:
        for _ in range(4):
            async with pages.next():
                order.append("page")
                work(spares.PIECE_S)

    async def ask() -> None:
        async with AsyncExitStack() as held:
            turn = Turn(lane, held)
            await turn.enter()
            for _ in range(4):
                order.append("piece")
                work(spares.PIECE_S)
                await turn.give_way()

    await asyncio.gather(listen(), listen(), ask())

    between = "".join(order).split("piece")[1:-1]
    assert len(between) == 3
    assert all(told in ("page", "pagepage") for told in between)

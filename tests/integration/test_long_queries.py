"""Long questions run in pieces, in turn, and never delay short ones."""

import asyncio
from collections.abc import Iterator
from threading import Event
from time import perf_counter, thread_time

import msgspec
import pytest

from stream_car.api.json import encode_in_pieces
from stream_car.errors import Overloaded
from stream_car.http import app
from stream_car.http.app import as_json
from stream_car.local.long_queries import FIRST_S, LongQueries, RunningQuery
from stream_car.queries import fair_scheduling
from stream_car.queries.fair_scheduling import PIECE_S, YIELD_S, LongWork, OneThread, SpareTime, Turns, YieldingPace


def work(seconds: float) -> None:
    begin = thread_time()
    while thread_time() - begin < seconds:
        pass


async def long_question(queries: LongQueries, log: list[int], number: int, pieces: int = 5) -> None:
    """Answer a long question; its number is noted at every piece."""
    with RunningQuery(queries) as running:
        for _ in range(pieces):
            await running.rest()
            log.append(number)
            work(PIECE_S)


async def test_long_questions_take_turns_piece_by_piece() -> None:
    log: list[int] = []
    queries = LongQueries(SpareTime())
    await asyncio.gather(*(long_question(queries, log, number) for number in range(4)))

    assert log == [0, *[0, 1, 2, 3] * 4, 1, 2, 3]  # the others come when the first piece is over
    assert queries.running == 0


async def test_between_two_pieces_others_have_three_times_as_long_as_a_piece_took() -> None:
    with RunningQuery(LongQueries(SpareTime())) as running:
        await running.rest()
        work(0.02)
        begin = perf_counter()
        was_due = running.is_due
        await running.rest()
        rested = perf_counter() - begin

        assert (was_due, running.is_due) == (True, False)
        assert rested >= 3 * 0.019


async def test_more_than_may_run_are_rejected_at_once_and_short_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_scheduling, "LONG_MAX", 3)
    queries = LongQueries(SpareTime())
    log: list[int] = []
    questions = [asyncio.create_task(long_question(queries, log, number)) for number in range(3)]
    await asyncio.sleep(0)
    assert queries.running == 3
    with RunningQuery(queries) as running, pytest.raises(Overloaded, match="Too many long questions"):
        await running.rest()
    with RunningQuery(queries) as short:
        assert not short.is_due
    await asyncio.gather(*questions)

    assert len(log) == 3 * 5
    assert queries.running == 0


async def test_a_question_that_computes_for_long_becomes_a_long_one() -> None:
    queries = LongQueries(SpareTime())
    with RunningQuery(queries) as running:
        before = running.is_due
        work(FIRST_S)
        assert (before, running.is_due, queries.running) == (False, True, 0)
        await running.rest()
        assert queries.running == 1

    assert queries.running == 0


async def test_a_question_that_is_cancelled_while_it_waits_leaves_nothing() -> None:
    queries = LongQueries(SpareTime())
    log: list[int] = []
    async with queries.spare_time:
        waiting = asyncio.create_task(long_question(queries, log, 1))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    await long_question(queries, log, 2)

    assert log == [2] * 5
    assert queries.running == 0


async def test_without_other_work_nothing_rests_longer_than_one_turn_of_the_loop() -> None:
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
            work(5 * PIECE_S)
    running.cancel()

    assert 19 <= turns <= 60


def counted_pieces(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The pieces of answers that were written so far; each takes as long as a piece of work may."""
    written: list[bytes] = []

    def slowly(value: object) -> Iterator[bytes]:
        for piece in encode_in_pieces(value):
            work(PIECE_S)
            written.append(piece)
            yield piece

    monkeypatch.setattr(app, "encode_in_pieces", slowly)
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


async def test_many_writers_delay_a_long_question_no_longer_than_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = LongQueries(SpareTime())
    turns = Turns(queries.spare_time)
    log: list[int] = []
    written = counted_pieces(monkeypatch)
    writers = [asyncio.create_task(as_json(list(range(40)), turns)) for _ in range(30)]
    await asyncio.sleep(0)
    before = len(written)
    await long_question(queries, log, 1, pieces=10)
    assert 0 < len(written) - before <= 15
    for writer in writers:
        writer.cancel()
    await asyncio.gather(*writers, return_exceptions=True)


async def test_subscribers_and_a_long_question_take_turns() -> None:
    queries = LongQueries(SpareTime())
    turns = Turns(queries.spare_time)
    order: list[str] = []

    async def subscriber() -> None:
        for _ in range(4):
            async with turns.next():
                order.append("page")
                work(PIECE_S)

    async def question() -> None:
        with RunningQuery(queries) as running:
            for _ in range(4):
                await running.rest()
                order.append("piece")
                work(PIECE_S)

    await asyncio.gather(subscriber(), subscriber(), question())

    between = "".join(order).split("piece")[1:-1]
    assert len(between) == 3
    assert all(pages in ("page", "pagepage") for pages in between)


async def test_of_many_questions_that_wait_for_servers_one_continues_in_each_cycle_of_the_loop() -> None:
    turn, cycle, continued = asyncio.Lock(), 0, list[int]()

    async def question() -> None:
        pace = YieldingPace(turn, LongWork())
        for _ in range(5):
            work(YIELD_S)
            assert pace.is_due
            await pace.rest()
            continued.append(cycle)

    questions = [asyncio.create_task(question()) for _ in range(10)]
    while not all(task.done() for task in questions):
        cycle += 1
        await asyncio.sleep(0)

    assert len(continued) == len(set(continued)) == 50


async def test_over_servers_too_more_long_questions_than_may_run_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_scheduling, "LONG_MAX", 1)
    turn, long_work = asyncio.Lock(), LongWork()
    with YieldingPace(turn, long_work) as first, YieldingPace(turn, long_work) as second:
        await first.rest()
        await first.rest()
        with pytest.raises(Overloaded):
            await second.rest()
    assert long_work.running == 0


async def test_work_in_the_thread_goes_one_after_the_other_and_counts_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_scheduling, "LONG_MAX", 2)
    thread, is_running, may_end = OneThread(LongWork()), Event(), Event()

    def block() -> bool:
        is_running.set()
        return may_end.wait(60)

    tasks = [asyncio.create_task(thread.run(block))]
    await asyncio.to_thread(is_running.wait, 60)
    tasks.append(asyncio.create_task(thread.run(may_end.is_set)))
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await thread.run(block)
    may_end.set()

    assert await asyncio.gather(*tasks) == [True, True]

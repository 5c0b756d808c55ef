"""Long questions run one at a time, in pieces, and never delay short ones."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from time import perf_counter, thread_time

import msgspec
import pytest

from stream_car.api.json import encode_in_pieces
from stream_car.errors import Overloaded
from stream_car.http import app
from stream_car.http.app import as_json
from stream_car.local import long_queries
from stream_car.local.long_queries import LongQueries, RunningQuery
from stream_car.queries.fair_scheduling import PIECE_S, SpareTime, Turns


def work(seconds: float) -> None:
    begin = thread_time()
    while thread_time() - begin < seconds:
        pass


def new_queue() -> tuple[LongQueries, asyncio.Lock]:
    """Return a queue of long questions, and the lock of whoever publishes."""
    writing = asyncio.Lock()
    return LongQueries(SpareTime(), writing), writing


async def long_question(queue: LongQueries, log: list[int], number: int, pieces: int = 5) -> None:
    """Answer a long question; its number is noted at its begin and its end."""
    async with queue.begin(is_long=True) as running:
        log.append(number)
        for _ in range(pieces):
            work(PIECE_S)
            await running.yield_control()
        log.append(number)


async def test_one_long_question_runs_at_a_time_and_nothing_changes_what_it_reads() -> None:
    queue, writing = new_queue()
    log: list[int] = []
    questions = [asyncio.create_task(long_question(queue, log, number)) for number in range(4)]
    while not log:
        await asyncio.sleep(0)
    assert writing.locked()
    await asyncio.gather(*questions)

    assert log == [0, 0, 1, 1, 2, 2, 3, 3]
    assert not writing.locked()


async def test_between_two_pieces_others_have_three_times_as_long_as_a_piece_took() -> None:
    queue, _ = new_queue()
    async with queue.begin(is_long=True) as running:
        work(0.02)
        begin = perf_counter()
        assert await running.yield_control()
        rested = perf_counter() - begin
        assert not await running.yield_control()

    assert rested >= 3 * 0.019


async def test_more_than_may_wait_are_rejected_at_once_and_the_others_get_their_turn() -> None:
    queue, _ = new_queue()
    log: list[int] = []
    questions = [asyncio.create_task(long_question(queue, log, n, 1)) for n in range(long_queries.WAITING_MAX + 1)]
    await asyncio.sleep(0)
    assert queue.waiting >= long_queries.WAITING_MAX
    with pytest.raises(Overloaded, match="Too many long questions"):
        async with queue.begin(is_long=True):
            pass
    async with queue.begin(is_long=False) as short:
        assert not await short.yield_control()
    await asyncio.gather(*questions)

    assert len(log) == 2 * len(questions)
    assert queue.waiting == 0


async def test_no_more_questions_may_wait_that_turn_out_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_queries, "FIRST_S", 0.001)
    queue, _ = new_queue()

    async def question() -> None:
        async with queue.begin(is_long=False) as running:
            work(long_queries.FIRST_S)
            await running.yield_control()

    questions = [asyncio.create_task(question()) for _ in range(long_queries.WAITING_MAX + 4)]
    results = await asyncio.gather(*questions, return_exceptions=True)

    assert [type(result) for result in results if result is not None] == [Overloaded] * 3
    assert queue.waiting == 0


async def test_a_question_that_waits_too_long_for_its_turn_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_queries, "WAIT_MAX_S", 0.01)
    queue, writing = new_queue()
    async with writing:
        with pytest.raises(Overloaded, match="take too long"):
            async with queue.begin(is_long=True):
                pass
    await asyncio.sleep(0.03)
    async with queue.begin(is_long=True):
        assert writing.locked()


async def test_a_short_question_that_turns_out_long_continues_as_a_long_one() -> None:
    queue, writing = new_queue()
    async with queue.begin(is_long=False) as running:
        assert not await running.yield_control()
        work(long_queries.FIRST_S)
        assert await running.yield_control()
        assert writing.locked()

    assert not writing.locked()


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


async def test_many_writers_delay_a_long_question_and_publishing_no_longer_than_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue, writing = new_queue()
    turns = Turns(queue.spare_time)
    log: list[int] = []
    written = counted_pieces(monkeypatch)
    writers = [asyncio.create_task(as_json(list(range(40)), turns)) for _ in range(30)]
    await asyncio.sleep(0)
    question = asyncio.create_task(long_question(queue, log, 1, pieces=10))
    while not log:
        await asyncio.sleep(0)
    before = len(written)
    async with writing:  # as a publisher
        assert log == [1, 1]
        assert 0 < len(written) - before <= 15
    for writer in writers:
        writer.cancel()
    await asyncio.gather(question, *writers, return_exceptions=True)


async def test_subscribers_and_a_long_question_take_turns() -> None:
    spare_time = SpareTime()
    queue, turns = LongQueries(spare_time, asyncio.Lock()), Turns(spare_time)
    order: list[str] = []

    async def subscriber() -> None:
        for _ in range(4):
            async with turns.next():
                order.append("page")
                work(PIECE_S)

    async def question() -> None:
        async with AsyncExitStack() as held:
            running = RunningQuery(queue, held)
            await running.wait_for_turn()
            for _ in range(4):
                order.append("piece")
                work(PIECE_S)
                await running.yield_control()

    await asyncio.gather(subscriber(), subscriber(), question())

    between = "".join(order).split("piece")[1:-1]
    assert len(between) == 3
    assert all(pages in ("page", "pagepage") for pages in between)

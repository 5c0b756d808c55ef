"""The SQLite log under damage, crashes and a second process."""

import os
import random
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.adapters.system_clock import SystemClock
from stream_car.errors import Halted, StreamCarError
from stream_car.ports import Message
from tests.support.damage import change, flip

COUNT = 50


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


async def write(path: Path, count: int = COUNT) -> None:
    log = SqliteLog(path, SystemClock())
    for n in range(count):
        await log.append(0, [Message(value=b"value %d " % n * 20, key=b"key %d" % n, headers=(("h", b"%d" % n),))])
    log.close()


async def test_a_whole_log_verifies(path: Path) -> None:
    await write(path)
    log = SqliteLog(path, SystemClock())

    assert log.verify() == (COUNT,)
    log.close()


@pytest.mark.parametrize(
    "alteration",
    [
        "UPDATE records SET value = x'00' WHERE at = 20",
        "UPDATE records SET value = NULL WHERE at = 20",
        "UPDATE records SET value = 'text' WHERE at = 20",
        "UPDATE records SET key = x'00' WHERE at = 20",
        "UPDATE records SET key = NULL WHERE at = 20",
        "UPDATE records SET headers = NULL WHERE at = 20",
        "UPDATE records SET headers = x'c1' WHERE at = 20",
        "UPDATE records SET append_time = append_time + 1 WHERE at = 20",
        "UPDATE records SET append_time = 'soon' WHERE at = 20",
        "UPDATE records SET hash = x'00' WHERE at = 20",
        "UPDATE records SET key = value, value = key WHERE at = 20",
        "DELETE FROM records WHERE at = 20",
    ],
)
async def test_an_altered_record_halts_the_reader_and_is_named(path: Path, alteration: str) -> None:
    await write(path)
    change(path, alteration)
    log = SqliteLog(path, SystemClock())

    assert len(await log.fetch(0, 0, 20)) == 20
    for start in (0, 15, 20):
        with pytest.raises(Halted, match=r"Record 20 .*backup") as halted:
            await log.fetch(0, start, 10_000)
        assert halted.value.code == "damaged"
    with pytest.raises(Halted, match="Record 20 "):
        log.verify()
    log.close()


async def test_a_record_put_in_another_place_is_found(path: Path) -> None:
    await write(path)
    change(path, "UPDATE records SET at = 1000 WHERE at = 20")
    change(path, "UPDATE records SET at = 20 WHERE at = 21")
    change(path, "UPDATE records SET at = 21 WHERE at = 1000")
    log = SqliteLog(path, SystemClock())

    with pytest.raises(Halted, match="Record 20 "):
        log.verify()
    log.close()


async def test_a_log_that_lost_its_beginning_says_so(path: Path) -> None:
    await write(path)
    change(path, "DELETE FROM records WHERE at < 10")
    log = SqliteLog(path, SystemClock())

    with pytest.raises(Halted) as halted:
        await log.fetch(0, 5, 10)

    assert halted.value.code == "lost_history"
    assert await log.range(0) == (10, COUNT)
    log.close()


async def test_a_log_that_lost_its_end_is_noticed_by_who_has_read_further(path: Path) -> None:
    await write(path)
    change(path, "DELETE FROM records WHERE at >= 45")
    log = SqliteLog(path, SystemClock())

    with pytest.raises(Halted, match="lost its end") as halted:
        await log.fetch(0, 50, 10)

    assert halted.value.code == "ahead"
    log.close()


async def test_no_flipped_bit_is_ever_read(path: Path) -> None:
    await write(path)
    whole = path.read_bytes()
    log = SqliteLog(path, SystemClock())
    expected = list(await log.fetch(0, 0, COUNT))
    log.close()
    dice = random.Random(11)
    noticed = 0
    for _ in range(60):
        path.write_bytes(whole)
        flip(path, dice.randrange(len(whole)), dice.randrange(8))
        try:
            log = SqliteLog(path, SystemClock())
        except StreamCarError:
            noticed += 1
            continue
        try:
            read = list(await log.fetch(0, 0, COUNT))
            assert read == expected[: len(read)]
        except StreamCarError:
            noticed += 1
        finally:
            log.close()
    assert noticed > 10  # the other flips lie in unused space


async def test_an_append_that_fails_keeps_nothing_and_the_next_succeeds(path: Path) -> None:
    log = SqliteLog(path, SystemClock())
    await log.append(0, [Message(value=b"first")])
    log._connection.execute("PRAGMA max_page_count = 20")

    with pytest.raises(StreamCarError, match="disk is full"):
        await log.append(0, [Message(value=b"small"), Message(value=b"x" * 1_000_000)])
    log._connection.execute("PRAGMA max_page_count = 1000000")
    assert await log.append(0, [Message(value=b"second")]) == 1

    assert [record.value for record in await log.fetch(0, 0, 10)] == [b"first", b"second"]
    assert log.verify() == (2,)
    log.close()


async def test_an_append_interrupted_after_its_commit_is_not_given_out_twice(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SqliteLog(path, SystemClock())
    await log.append(0, [Message(value=b"first")])
    with monkeypatch.context() as patch:
        patch.setattr("stream_car.adapters.sqlite.log.transaction", InterruptedAfterCommit)
        with pytest.raises(KeyboardInterrupt):
            await log.append(0, [Message(value=b"second")])

    assert await log.append(0, [Message(value=b"third")]) == 2
    assert log.verify() == (3,)
    log.close()


class InterruptedAfterCommit:
    """A transaction after which the user presses Ctrl-C."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, *_: object) -> None:
        self._connection.execute("COMMIT")
        raise KeyboardInterrupt


async def test_a_second_writer_is_refused_with_the_first_ones_process(path: Path) -> None:
    log = SqliteLog(path, SystemClock())

    with pytest.raises(StreamCarError, match=f"process {os.getpid()}. If a service has it open"):
        SqliteLog(path, SystemClock())

    log.close()
    log.close()
    SqliteLog(path, SystemClock()).close()


async def test_only_the_owner_may_read_the_files(path: Path) -> None:
    log = SqliteLog(path, SystemClock())
    await log.append(0, [Message(value=b"secret")])

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}

    assert len(modes) >= 3
    assert set(modes.values()) == {0o600}
    log.close()


async def test_another_number_of_partitions_is_refused(path: Path) -> None:
    SqliteLog(path, SystemClock(), partitions=2).close()

    with pytest.raises(Halted, match="created with 2 partitions, not 1") as halted:
        SqliteLog(path, SystemClock())

    assert halted.value.code == "partitions"


async def test_a_later_format_is_refused(path: Path) -> None:
    await write(path, 1)
    change(path, "UPDATE about SET value = 99 WHERE name = 'format'")

    with pytest.raises(Halted) as halted:
        SqliteLog(path, SystemClock())

    assert halted.value.code == "format"


async def test_a_file_that_is_no_database_is_refused_and_kept(path: Path) -> None:
    path.write_bytes(b"these are my notes " * 1000)

    with pytest.raises(Halted) as halted:
        SqliteLog(path, SystemClock())

    assert halted.value.code == "damaged"
    assert path.read_bytes() == b"these are my notes " * 1000


async def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(StreamCarError, match="cannot be opened"):
        SqliteLog(tmp_path / "missing" / "log.sqlite", SystemClock())


APPENDING = """
import asyncio, sys
from pathlib import Path
from stream_car.adapters.system_clock import SystemClock
from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.ports import Message

async def main() -> None:
    log = SqliteLog(Path(sys.argv[1]), SystemClock())
    _, end = await log.range(0)
    while True:
        batch = [Message(value=b"%d" % n) for n in range(end, end + 3)]
        end = await log.append(0, batch) + 3
        print(end, flush=True)

asyncio.run(main())
"""


def test_what_was_acknowledged_survives_kill_9(path: Path) -> None:
    dice = random.Random(5)
    acknowledged = 0
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", APPENDING, str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(dice.randint(1, 40)):
                acknowledged = int(process.stdout.readline())
            process.kill()
            whole_lines = process.stdout.read().split(b"\n")[:-1]
        acknowledged = int(whole_lines[-1]) if whole_lines else acknowledged
        log = SqliteLog(path, SystemClock())
        (end,) = log.verify()
        log.close()
        assert end >= acknowledged
        assert end % 3 == 0  # whole batches only


async def test_what_was_just_appended_reads_as_it_will_from_the_file(path: Path) -> None:
    await write(path, 5)
    log = SqliteLog(path, SystemClock())
    await log.append(0, [Message(value=b"%d" % n, key=None, headers=(("h", b"1"),) * (n % 2)) for n in range(5)])
    ranges = [(start, limit) for start in range(11) for limit in (1, 2, 4, 20)]
    latest, fresh = log._latest[0], []
    for start, limit in ranges:
        log._latest[0] = latest
        fresh.append(await log.fetch(0, start, limit))
    log.close()

    reopened = SqliteLog(path, SystemClock())
    assert [await reopened.fetch(0, start, limit) for start, limit in ranges] == fresh
    reopened.close()


async def test_the_last_batch_is_not_kept_in_memory_once_it_was_read(path: Path) -> None:
    log = SqliteLog(path, SystemClock())
    await log.append(0, [Message(value=b"%d" % n) for n in range(3)])

    await log.fetch(0, 0, 2)
    assert log._latest[0]
    await log.fetch(0, 2, 2)
    assert not log._latest[0]
    log.close()

"""The SQLite store and journal under damage and crashes."""

import random
import stat
from pathlib import Path

import pytest

from stream_car.adapters import checkpoints
from stream_car.adapters.checkpoints import Checkpoints
from stream_car.adapters.sqlite.journal import SqliteJournal
from stream_car.adapters.sqlite.state_file import StateFile
from stream_car.adapters.sqlite.store import SqliteStore
from stream_car.errors import Halted, StreamCarError
from stream_car.files.seals import seal_path
from stream_car.ports import Emission
from tests.support.damage import change, flip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite"


def event(oseq: int) -> Emission:
    return Emission(oseq=oseq, stream="changes", key=b"scope", value=b"event %d" % oseq * 10)


async def write(path: Path) -> None:
    file = StateFile(path)
    store = SqliteStore(file)
    claim = await store.claim(0)
    for n in range(1, 31):
        claim = await store.commit(claim, n, {b"key %d" % n: b"value %d " % n * 30}, [event(n)])
        await SqliteJournal(file).publish(0, [event(n)])
    file.close()


async def test_what_is_committed_is_brought_into_the_file_beside_the_writer(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "EVERY", 10)
    file = StateFile(path)
    store = SqliteStore(file)
    claim = await store.commit(await store.claim(0), 1, {b"key": b"the first"}, [])
    file.checkpoints.close()
    assert b"the first" not in path.read_bytes()

    file.checkpoints = Checkpoints(path)
    await store.commit(claim, 2, {b"key %d" % n: b"needle %d" % n for n in range(10)}, [])
    file.checkpoints.close()
    assert b"needle 9" in path.read_bytes()
    file.close()


@pytest.mark.parametrize(
    "alteration",
    [
        "UPDATE entries SET value = x'00' WHERE key = CAST('key 7' AS BLOB)",
        "UPDATE entries SET value = x'' WHERE key = CAST('key 7' AS BLOB)",
        "UPDATE entries SET value = (SELECT value FROM entries WHERE key = CAST('key 8' AS BLOB)) "
        "WHERE key = CAST('key 7' AS BLOB)",
    ],
)
async def test_an_altered_value_is_never_returned(path: Path, alteration: str) -> None:
    await write(path)
    change(path, alteration)
    file = StateFile(path)
    store = SqliteStore(file)
    claim = await store.claim(0)

    assert await store.read(claim, [b"key 8"]) == {b"key 8": b"value 8 " * 30}
    with pytest.raises(Halted, match=r"key 7.*delete it") as halted:
        await store.read(claim, [b"key 8", b"key 7"])
    with pytest.raises(Halted):
        await store.peek(0, [b"key 7"])
    assert halted.value.code == "damaged"
    file.close()


@pytest.mark.parametrize(
    "alteration",
    [
        "UPDATE entries SET key = CAST('key 9a' AS BLOB) WHERE key = CAST('key 9' AS BLOB)",
        "UPDATE entries SET key = 'key 9' WHERE key = CAST('key 9' AS BLOB)",
        "UPDATE entries SET hash = hash + 1 WHERE key = CAST('key 9' AS BLOB)",
    ],
)
async def test_after_a_crash_a_file_with_an_altered_key_is_begun_anew(path: Path, alteration: str) -> None:
    await write(path)
    change(path, alteration)

    file = StateFile(path)

    assert await SqliteStore(file).peek(0, [b"key 9"]) == (0, {})
    file.close()


async def test_a_fault_that_quotes_a_damaged_name_is_a_fault(path: Path) -> None:
    await write(path)
    seal_path(path).unlink()
    content = path.read_bytes().replace(b"changes_by_key", b"changes_by_ke\xe8")
    path.write_bytes(content.replace(b"ON changes (at", b"ON missing (at"))

    file = StateFile(path)

    assert await SqliteStore(file).peek(0, [b"key 1"]) == (0, {})
    file.close()


@pytest.mark.parametrize("stream", ["changes", "rejected"])
async def test_an_altered_key_of_an_event_hides_no_event_of_that_key(path: Path, stream: str) -> None:
    file = StateFile(path)
    journal = SqliteJournal(file)
    await journal.publish(0, [Emission(oseq=n, stream=stream, key=b"scope", value=b"value") for n in (1, 2, 3)])
    change(path, "UPDATE changes SET key = CAST('other' AS BLOB) WHERE at = 2")

    with pytest.raises(Halted, match="Event 2"):
        await journal.read(0, stream, key=b"scope")
    file.close()


async def test_events_of_a_key_are_found_however_far_apart_they_are(path: Path) -> None:
    file = StateFile(path)
    journal = SqliteJournal(file)
    numbers = [1, 2, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 5 << 16]
    events = [Emission(oseq=n, stream="changes", key=b"scope", value=b"%d" % n) for n in numbers]
    others = [Emission(oseq=n + 2, stream="changes", key=b"other", value=b"") for n in numbers]
    await journal.publish(0, [*events, *others])

    assert list(await journal.read(0, "changes", key=b"scope")) == events
    assert list(await journal.read(0, "changes", key=b"scope", after=2, limit=3)) == events[2:5]
    assert list(await journal.read(0, "changes", key=b"none")) == []
    file.close()


async def test_a_store_with_a_journal_publishes_with_its_commit(path: Path) -> None:
    file = StateFile(path)
    journal = SqliteJournal(file)
    store = SqliteStore(file, journal)

    claim = await store.commit(await store.claim(0), 1, {}, [event(1), event(2)])

    assert claim.trimmed == 2
    assert await store.outbox(claim) == ()
    assert list(await journal.read(0, "changes")) == [event(1), event(2)]
    file.close()


async def test_a_commit_whose_events_cannot_be_stored_leaves_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = StateFile(path)
    journal = SqliteJournal(file)
    store = SqliteStore(file, journal)
    claim = await store.claim(0)
    with monkeypatch.context() as patched:
        patched.setattr(journal, "append", lambda connection, shard, events: connection.execute("SELECT * FROM none"))
        with pytest.raises(StreamCarError):
            await store.commit(claim, 1, {b"a": b"1"}, [event(1)])

    assert await store.read(claim, [b"a"]) == {}
    claim = await store.commit(claim, 1, {b"a": b"1"}, [event(1)])
    assert list(await journal.read(0, "changes")) == [event(1)]
    file.close()


@pytest.mark.parametrize("column", ["next_offset", "next_oseq", "trimmed"])
async def test_an_altered_standing_is_never_taken_for_true(path: Path, column: str) -> None:
    await write(path)
    change(path, f"UPDATE shards SET {column} = {column} + 1")
    file = StateFile(path)

    with pytest.raises(Halted):
        await SqliteStore(file).claim(0)
    with pytest.raises(Halted):
        await SqliteStore(file).peek(0, [])
    file.close()


@pytest.mark.parametrize("alteration", ["DELETE FROM outbox WHERE last_oseq = 4", "UPDATE outbox SET events = x'00'"])
async def test_an_outbox_with_a_gap_is_never_published(path: Path, alteration: str) -> None:
    await write(path)
    change(path, alteration)
    file = StateFile(path)
    store = SqliteStore(file)

    with pytest.raises(Halted, match="outbox"):
        await store.outbox(await store.claim(0))
    file.close()


async def test_an_altered_event_is_never_returned(path: Path) -> None:
    await write(path)
    change(path, "UPDATE changes SET value = x'0000000000' WHERE at = 4")
    file = StateFile(path)

    with pytest.raises(Halted, match="Event 4"):
        await SqliteJournal(file).read(0, "changes")
    file.close()


async def test_a_value_read_after_any_bit_was_flipped_is_right_or_refused(path: Path) -> None:
    await write(path)
    whole = path.read_bytes()
    keys = [b"key %d" % n for n in range(1, 31)]
    dice = random.Random(3)
    noticed = 0
    for _ in range(60):
        path.write_bytes(whole)
        flip(path, dice.randrange(len(whole)), dice.randrange(8))
        file = StateFile(path)
        try:
            reached, values = await SqliteStore(file).peek(0, keys)
            assert all(value == b"value %s " % key[4:] * 30 for key, value in values.items())
            assert reached in (0, 30)
            noticed += reached == 0
        except StreamCarError:
            noticed += 1
        finally:
            file.close()
    assert noticed > 5


async def test_reset_begins_anew_whatever_the_file_holds(path: Path) -> None:
    await write(path)
    file = StateFile(path)
    store, journal = SqliteStore(file), SqliteJournal(file)

    file.reset()

    assert await store.peek(0, [b"key 1"]) == (0, {})
    assert await journal.last(0) == 0
    claim = await store.claim(0)
    assert (claim.next_offset, claim.next_oseq) == (0, 1)
    file.close()


@pytest.mark.parametrize("content", [b"no database at all " * 500, b"SQLite format 3\x00" + b"\xff" * 5000, b"x"])
async def test_an_unreadable_file_is_begun_anew(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    file = StateFile(path)

    assert await SqliteStore(file).peek(0, []) == (0, {})
    file.close()


async def test_a_file_of_another_format_is_begun_anew(path: Path) -> None:
    await write(path)
    change(path, "PRAGMA user_version = 99")

    file = StateFile(path)

    assert await SqliteStore(file).peek(0, []) == (0, {})
    file.close()


async def test_a_commit_that_fails_leaves_the_state_as_it_was(path: Path) -> None:
    file = StateFile(path)
    store = SqliteStore(file)
    claim = await store.commit(await store.claim(0), 1, {b"a": b"1"}, [event(1)])
    file.connection.execute("PRAGMA max_page_count = 30")

    with pytest.raises(StreamCarError, match="disk is full"):
        await store.commit(claim, 2, {b"a": b"2", b"b": b"x" * 1_000_000}, [event(2)])

    assert await store.read(claim, [b"a", b"b"]) == {b"a": b"1"}
    assert list(await store.outbox(claim)) == [event(1)]
    file.close()


async def test_events_with_wrong_numbers_are_a_mistake_of_the_caller(path: Path) -> None:
    file = StateFile(path)
    store = SqliteStore(file)
    claim = await store.claim(0)

    with pytest.raises(ValueError, match="next_oseq"):
        await store.commit(claim, 1, {}, [event(2)])
    with pytest.raises(ValueError, match="does not exist"):
        await store.trim(claim, 1)
    file.close()


async def test_only_the_owner_may_read_the_state(path: Path) -> None:
    file = StateFile(path)
    await SqliteStore(file).claim(0)

    assert {stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()} == {0o600}
    file.close()

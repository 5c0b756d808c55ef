"""A feed in its publisher's format goes into a service as into a folder, and is remembered where it is read."""

import asyncio
from pathlib import Path

from click.testing import CliRunner, Result

import stream_car
from stream_car.cli import main
from stream_car.files.lock import FileLock
from stream_car.ingest.destinations import LOCK, folder_for
from tests.support.http_service import serving

RECORD = '{"cveMetadata": {"cveId": "CVE-2024-1", "state": "%s"}, "containers": {"cna": {}}}\n'


def invoked(folder: Path, *arguments: str) -> Result:
    return CliRunner(env={"STREAM_CAR_DATA": str(folder / "data")}).invoke(main, arguments)


async def run(folder: Path, *arguments: str) -> Result:
    return await asyncio.to_thread(invoked, folder, *arguments)


async def test_a_feed_goes_into_a_service_once(tmp_path: Path) -> None:
    feed = tmp_path / "feed.jsonl"
    feed.write_text(RECORD % "PUBLISHED")
    async with serving(engine=stream_car.open()) as running:
        first = await run(tmp_path, "publish", "--format", "cve5", str(feed), "--url", running.url)
        again = await run(tmp_path, "publish", "--format", "cve5", str(feed), "--url", running.url)
        feed.write_text(RECORD % "PUBLISHED" + RECORD % "REJECTED")
        grown = await run(
            tmp_path, "follow", "--format", "cve5", str(feed), "--url", running.url, "--every", "0.01", "--idle", "0.2"
        )
        ids = [
            one.document.id for group in running.engine.resolve(["CVE-2024-1"])[0].groups for one in group.controlling
        ]

        assert running.engine.next_offset == 2
        assert (tmp_path / "data.feeds").is_dir() and not (tmp_path / "data").exists()
        assert folder_for(running.url, tmp_path / "data").is_dir()
    assert [one.exit_code for one in (first, again, grown)] == [0, 0, 0]
    assert "1 document" in first.stdout
    assert "Nothing new" in again.stdout
    assert "1 record of 1 file" in grown.stdout
    assert set(ids) == {"CVE-2024-1@2"}


async def test_positions_are_kept_where_one_says_and_forgotten_for_a_log_that_is_shorter(tmp_path: Path) -> None:
    feed, kept = tmp_path / "feed.jsonl", tmp_path / "kept"
    feed.write_text(RECORD % "PUBLISHED")
    told = []
    for _ in range(2):
        async with serving(engine=stream_car.open()) as running:  # a new service each time, with nothing in its log
            to = ("--url", running.url, "--positions", str(kept))
            told += [await run(tmp_path, "publish", "--format", "cve5", str(feed), *to)]

            assert running.engine.next_offset == 1
    assert ["1 document" in one.stdout for one in told] == [True, True]
    assert (kept / "feeds.sqlite").is_file() and not (tmp_path / "data.feeds").exists()


async def test_two_that_feed_a_service_from_one_memory_are_told_of_each_other(tmp_path: Path) -> None:
    feed, kept = tmp_path / "feed.jsonl", tmp_path / "kept"
    feed.write_text(RECORD % "PUBLISHED")
    kept.mkdir()
    lock = FileLock(kept / LOCK, "this")
    async with serving(engine=stream_car.open()) as running:
        to = ("--url", running.url, "--positions", str(kept))
        refused = await run(tmp_path, "publish", "--format", "cve5", str(feed), *to)

        assert running.engine.next_offset == 0
    lock.release()
    assert refused.exit_code != 0
    assert "is open in process" in refused.stderr


def test_a_folder_of_data_remembers_by_itself(tmp_path: Path) -> None:
    (tmp_path / "feed.jsonl").write_text(RECORD % "PUBLISHED")
    refused = invoked(
        tmp_path, "publish", "--format", "cve5", str(tmp_path / "feed.jsonl"), "--positions", str(tmp_path)
    )

    assert refused.exit_code == 2
    assert "--positions goes with --url" in refused.stderr

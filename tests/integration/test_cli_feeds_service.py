"""A feed in its publisher's format is published to a service, and its positions are remembered on this side."""

import asyncio
from pathlib import Path

from click.testing import CliRunner, Result

import stream_car
from stream_car.cli import main
from stream_car.files.lock import FileLock
from stream_car.ingest.destinations import LOCK, positions_folder
from tests.support.http_service import serving

RECORD = '{"cveMetadata": {"cveId": "CVE-2024-1", "state": "%s"}, "containers": {"cna": {}}}\n'


def invoke(folder: Path, *arguments: str) -> Result:
    return CliRunner(env={"STREAM_CAR_DATA": str(folder / "data")}).invoke(main, arguments)


async def run(folder: Path, *arguments: str) -> Result:
    return await asyncio.to_thread(invoke, folder, *arguments)


async def test_a_feed_is_published_to_a_service_once(tmp_path: Path) -> None:
    feed = tmp_path / "feed.jsonl"
    feed.write_text(RECORD % "PUBLISHED")
    async with serving(engine=stream_car.open()) as running:
        first = await run(tmp_path, "publish", "--format", "cve5", str(feed), "--url", running.url)
        again = await run(tmp_path, "publish", "--format", "cve5", str(feed), "--url", running.url)
        feed.write_text(RECORD % "PUBLISHED" + RECORD % "REJECTED")
        grown = await run(
            tmp_path, "follow", "--format", "cve5", str(feed), "--url", running.url, "--every", "0.01", "--idle", "0.2"
        )
        [resolution] = running.engine.resolve(["CVE-2024-1"])
        ids = {control.document.id for group in resolution.groups for control in group.controlling}

        assert running.engine.status().next_offset == 2
        assert (tmp_path / "data.feeds").is_dir() and not (tmp_path / "data").exists()
        assert positions_folder(running.url, tmp_path / "data").is_dir()
    assert [result.exit_code for result in (first, again, grown)] == [0, 0, 0]
    assert "1 document" in first.stdout
    assert "Choose another folder with --positions." in first.stderr
    assert "--positions" not in again.stderr + grown.stderr
    assert "Nothing new" in again.stdout
    assert "1 record of 1 file" in grown.stdout
    assert ids == {"CVE-2024-1@2"}


async def test_positions_are_kept_in_the_given_folder_and_dropped_for_a_shorter_log(tmp_path: Path) -> None:
    feed, positions = tmp_path / "feed.jsonl", tmp_path / "positions"
    feed.write_text(RECORD % "PUBLISHED")
    results = []
    for _ in range(2):
        async with serving(engine=stream_car.open()) as running:  # a new service each time, with an empty log
            target = ("--url", running.url, "--positions", str(positions))
            results.append(await run(tmp_path, "publish", "--format", "cve5", str(feed), *target))

            assert running.engine.status().next_offset == 1
    assert ["1 document" in result.stdout for result in results] == [True, True]
    assert (positions / "feeds.sqlite").is_file() and not (tmp_path / "data.feeds").exists()


async def test_two_processes_cannot_use_the_same_positions_at_a_time(tmp_path: Path) -> None:
    feed, positions = tmp_path / "feed.jsonl", tmp_path / "positions"
    feed.write_text(RECORD % "PUBLISHED")
    positions.mkdir()
    lock = FileLock(positions / LOCK, "this")
    async with serving(engine=stream_car.open()) as running:
        target = ("--url", running.url, "--positions", str(positions))
        result = await run(tmp_path, "publish", "--format", "cve5", str(feed), *target)

        assert running.engine.status().next_offset == 0
    lock.release()
    assert result.exit_code != 0
    assert "is open in process" in result.stderr


def test_a_data_directory_remembers_positions_by_itself(tmp_path: Path) -> None:
    (tmp_path / "feed.jsonl").write_text(RECORD % "PUBLISHED")
    result = invoke(tmp_path, "publish", "--format", "cve5", str(tmp_path / "feed.jsonl"), "--positions", str(tmp_path))

    assert result.exit_code == 2
    assert "--positions needs --url" in result.stderr

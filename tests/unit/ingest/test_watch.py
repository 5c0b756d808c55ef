"""Watching: what has grown is told at once, what is being written only once it stands still."""

from pathlib import Path

from stream_car.feeds import find_format
from stream_car.ingest.watch import Watch


def names(watch: Watch) -> list[str]:
    return [Path(source.name).name for source in watch.changed_files()]


def test_a_file_is_told_of_once_it_stands_still(tmp_path: Path) -> None:
    watch = Watch(find_format("csaf"), [str(tmp_path)])
    (tmp_path / "a.json").write_text("{")
    assert names(watch) == []
    (tmp_path / "a.json").write_text("{}")
    assert names(watch) == []
    assert names(watch) == ["a.json"]
    assert names(watch) == []


def test_a_growing_file_is_told_of_at_once_and_again_when_it_has_grown(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    watch = Watch(find_format("osv"), [str(tmp_path)])
    path.write_text("{}\n")
    assert names(watch) == ["history.jsonl"]
    assert names(watch) == []
    path.write_text("{}\n{}\n")
    assert names(watch) == ["history.jsonl"]


def test_files_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 9, 1):
        (tmp_path / f"a.rev{number}.jsonl").write_text("{}\n")

    assert names(Watch(find_format("osv"), [str(tmp_path)])) == ["a.rev1.jsonl", "a.rev9.jsonl", "a.rev10.jsonl"]


def test_what_could_not_be_read_yet_is_told_again(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n")
    watch = Watch(find_format("osv"), [str(tmp_path)])
    watch.retry(watch.changed_files())

    assert names(watch) == ["a.jsonl"]


def test_hidden_files_and_other_suffixes_are_none_of_the_feeds(tmp_path: Path) -> None:
    for name in (".a.jsonl", "readme.md", ".git/b.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}\n")

    assert names(Watch(find_format("osv"), [str(tmp_path)])) == []

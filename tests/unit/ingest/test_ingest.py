"""Feeding an engine: positions are kept, repeats change nothing, broken pieces stop nothing."""

import json
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from stream_car.adapters.sqlite.feed_positions import FILE as POSITIONS, FeedPositionFile
from stream_car.errors import Halted, InvalidRequest
from stream_car.feeds import find_format
from stream_car.ingest import destinations
from stream_car.ingest.files import input_files
from stream_car.ingest.ingest import FeedStep, feed
from stream_car.local.engine import Engine
from stream_car.rule_packs import load
from tests.support.damage import change
from tests.support.feeds import published


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path / "data", ruleset=load()) as opened:
        yield opened


def line(number: int, **fields: object) -> str:
    return json.dumps({"id": f"OSV-{number}", "modified": "2024-01-02T00:00:00Z", **fields}) + "\n"


def new_in(engine: Engine, path: Path, form: str = "osv") -> list[str]:
    steps = published(engine, form, [path])
    return [one.id for step in steps if step.conversion is not None for one in step.conversion.documents]


def test_a_file_that_has_grown_is_read_from_its_old_end(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(line(1))
    assert new_in(engine, path) == ["OSV-1@2024-01-02T00:00:00Z"]
    path.write_text(line(1) + line(2))
    [step] = published(engine, "osv", [path])

    assert step.where == f"byte {len(line(1))}, line 1"
    assert step.conversion is not None and len(step.conversion.documents) == 1


def test_a_file_that_changed_in_its_middle_is_read_anew(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(line(1, summary="one") + line(2))
    new_in(engine, path)
    path.write_text(line(1, summary="two") + line(2))

    assert new_in(engine, path) == ["OSV-1@2024-01-02T00:00:00Z.2"]


def test_a_last_line_that_breaks_off_is_read_once_it_is_whole(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(line(1) + line(2)[:-20])
    steps = published(engine, "osv", [path])
    assert [step.rejected.code for step in steps if step.rejected is not None] == ["syntax"]
    path.write_text(line(1) + line(2))

    assert new_in(engine, path) == ["OSV-2@2024-01-02T00:00:00Z"]


def test_while_a_file_grows_its_last_line_is_left_until_it_ends(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(line(1) + line(2).strip())
    form = find_format("osv")
    batches = list(feed(destinations.for_engine(engine), form, input_files([str(path)], form.suffixes), growing=True))

    assert sum(len(batch.receipts) for batch in batches) == 1


def test_a_table_that_has_grown_keeps_its_columns(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("subject,relation,object\na,b,c\n")
    assert len(new_in(engine, path, "facts")) == 1
    path.write_text("subject,relation,object\na,b,c\na,b,d\n")

    assert len(new_in(engine, path, "facts")) == 1
    [scope] = engine.frontier({"subject": "a", "relation": "b"})
    assert [document.title for document in scope.in_force] == ["a b d"]


def test_a_second_engine_starts_afresh(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(line(1))
    new_in(engine, path)
    with Engine(tmp_path / "other", ruleset=load()) as other:
        assert len(new_in(other, path)) == 1


def test_a_moved_file_says_nothing_new(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(line(1) + line(2))
    new_in(engine, path)

    assert new_in(engine, path.rename(tmp_path / "elsewhere.jsonl")) == []


def cve(summary: str) -> bytes:
    """A record of a format that has no order of its own."""
    containers = {"cna": {"descriptions": [{"lang": "en", "value": summary}]}}
    return json.dumps({"cveMetadata": {"cveId": "CVE-2024-1", "state": "PUBLISHED"}, "containers": containers}).encode()


def piped(engine: Engine, form: str, data: bytes, monkeypatch: pytest.MonkeyPatch) -> list[FeedStep]:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(data)))
    return published(engine, form, [Path("-")])


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("cve5", cve("one") + b"\n" + cve("two")),
        ("cve5", b"[" + cve("one") + b"," + cve("two") + b"]"),
        ("facts", b"subject,relation,object\na,b,c\na,b,d\n"),
    ],
    ids=["lines", "an array", "a table"],
)
def test_the_same_pipe_again_says_nothing_new(
    engine: Engine, form: str, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = piped(engine, form, data, monkeypatch)
    [again] = piped(engine, form, data, monkeypatch)

    assert sum(len(step.conversion.documents) for step in first if step.conversion is not None) == 2
    assert again.unchanged is not None


@pytest.mark.parametrize("more", [b"", b"and so on " * 200_000], ids=["shorter", "longer"])
def test_a_pipe_that_says_something_else_is_read_whole(
    engine: Engine, more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = cve("one"), cve("two" + more.decode())
    piped(engine, "cve5", first + b"\n" + cve("two") + b"\n", monkeypatch)
    steps = piped(engine, "cve5", first + b"\n" + second + b"\n" + first, monkeypatch)

    ids = [document.id for step in steps if step.conversion is not None for document in step.conversion.documents]
    assert ids == ["CVE-2024-1@3", "CVE-2024-1@4", "CVE-2024-1@5"]


def test_an_exploited_vulnerability_is_told_also_with_a_record_that_was_edited_later(
    engine: Engine, tmp_path: Path
) -> None:
    (tmp_path / "kev.json").write_text(
        '{"dateReleased": "2024-05-01T00:00:00Z", "vulnerabilities": [{"cveID": "CVE-2024-1000"}]}'
    )
    record = {"cveId": "CVE-2024-1000", "state": "PUBLISHED", "dateUpdated": "2024-06-01T00:00:00Z"}
    (tmp_path / "cve.json").write_text(json.dumps({"cveMetadata": record, "containers": {"cna": {}}}))
    published(engine, "kev", [tmp_path / "kev.json"])
    published(engine, "cve5", [tmp_path / "cve.json"])
    [resolution] = engine.resolve(["CVE-2024-1000"])

    [amendment] = [one for group in resolution.groups for control in group.controlling for one in control.amendments]
    assert amendment.document.id == "KEV:CVE-2024-1000@2024-05-01T00:00:00Z"
    assert [step.rule for step in amendment.path] == ["link"]
    assert resolution.reasons == ()


def test_positions_that_run_ahead_of_the_log_are_forgotten(tmp_path: Path) -> None:
    for end, expected in ((5, b"value"), (4, None)):
        kept = FeedPositionFile(tmp_path / "feeds.sqlite", end=end)
        if end == 5:
            kept.put("osv", [("name", b"value")], reached=5)
        assert kept.get("osv", "name") == expected
        kept.close()


def test_with_damaged_positions_a_feed_is_read_from_its_beginning(engine: Engine, tmp_path: Path) -> None:
    (engine.path / POSITIONS).write_bytes(b"no database" * 1000)
    (tmp_path / "history.jsonl").write_text(line(1))

    assert len(new_in(engine, tmp_path / "history.jsonl")) == 1
    assert new_in(engine, tmp_path / "history.jsonl") == []


def test_a_file_that_is_gone_is_named_with_a_cure_and_skipped_while_watching(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(line(1))
    [file] = input_files([str(path)], ())
    path.unlink()

    with pytest.raises(InvalidRequest, match=r"history.jsonl cannot be read: No such file .*\. Check"):
        list(feed(destinations.for_engine(engine), find_format("osv"), [file]))


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE kept SET value = X'C1' WHERE name LIKE 'f:%'",
        "UPDATE kept SET value = X'C1' WHERE name LIKE 'r:%'",
        "UPDATE kept SET value = 'text' WHERE name LIKE 'f:%'",
        "UPDATE log SET reached = 'text'",
    ],
)
def test_a_damaged_position_is_an_error_that_names_the_cure(harm: str, engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(line(1))
    new_in(engine, path)
    change(engine.path / POSITIONS, harm)
    path.write_text(line(1) + line(1, summary="another"))

    with pytest.raises(Halted, match="is damaged"):
        new_in(engine, path)
    (engine.path / POSITIONS).unlink()
    assert len(new_in(engine, path)) > 0

"""The engine: its answers survive whatever happens to derived files, and its time is that of the log."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import stream_car
from stream_car import Frontier, Halted, InvalidRequest, NewDocument, Retraction, StreamCarError
from stream_car.codec import Publishable, encode, format_time
from stream_car.codec.times import from_micros
from stream_car.core.documents import Document
from stream_car.queries import scopes
from tests.support.damage import change
from tests.support.data_directories import (
    STATEMENTS,
    answers,
    copy,
    cut_state,
    damage_scope_list,
    fill,
    flip_index_segment,
    remove,
    scramble_index,
    scramble_state,
    wipe_index,
    wipe_projection,
    wipe_state,
)
from tests.support.engines import NOW, StoppedClock, built_folder, document, engine
from tests.support.repository import ROOT


def test_an_engine_opened_again_gives_the_same_answers(tmp_path: Path) -> None:
    fill(tmp_path)
    with engine(tmp_path) as car:
        first = answers(car)
    with engine(tmp_path) as car:
        assert answers(car) == first
        assert car.publish(STATEMENTS).receipts[0].outcome == "duplicate"


@pytest.mark.parametrize(
    "harm",
    [
        wipe_state, scramble_state, cut_state, wipe_index, scramble_index, flip_index_segment,
        damage_scope_list, wipe_projection,
    ],
)  # fmt: skip
def test_derived_files_are_rebuilt_with_equal_answers(harm: Callable[[Path], None], tmp_path: Path) -> None:
    fill(tmp_path)
    with engine(tmp_path) as car:
        first = answers(car)
    harm(tmp_path)
    with engine(tmp_path) as car:
        assert answers(car) == first


@pytest.mark.parametrize("table", ["entries", "changes"])
def test_altered_values_are_noticed_and_built_again(table: str, tmp_path: Path) -> None:
    fill(tmp_path)
    with engine(tmp_path) as car:
        first = answers(car)
    change(built_folder(tmp_path) / "state.sqlite", f"UPDATE {table} SET value = X'00112233445566778899'")
    with engine(tmp_path) as car:
        assert answers(car) == first


def test_an_altered_value_does_not_keep_anyone_from_publishing(tmp_path: Path) -> None:
    fill(tmp_path)
    change(built_folder(tmp_path) / "state.sqlite", "UPDATE entries SET value = X'00' WHERE key = ?", b"s:topic=sun")
    with engine(tmp_path) as car:
        [receipt] = car.publish([document("d9", "denial", at=20, topic="sun")]).receipts

        assert (receipt.outcome, receipt.id) == ("accepted", "d9")
        assert [item.document.id for item in car.resolve(["c4"])[0].groups[0].controlling] == ["d9"]


def test_nothing_is_removed_for_a_log_that_could_not_replace_it(tmp_path: Path) -> None:
    fill(tmp_path)
    change(tmp_path / "documents.sqlite", "UPDATE records SET value = X'7B7D' WHERE at = 2")
    change(built_folder(tmp_path) / "state.sqlite", "UPDATE entries SET value = X'00' WHERE key = ?", b"s:topic=sun")
    with engine(tmp_path) as car:
        with pytest.raises(Halted, match="Record 2 of partition 0"):
            car.frontier("topic=sun")
        assert car.resolve(["c1"])[0].groups[0].controlling[0].document.id == "q1"


def test_a_log_that_lost_its_end_stops_the_engine_and_names_the_cure(tmp_path: Path) -> None:
    fill(tmp_path)
    change(tmp_path / "documents.sqlite", "DELETE FROM records WHERE at > 5")
    with pytest.raises(Halted, match="Restore it from a backup") as caught:
        engine(tmp_path)

    assert caught.value.code == "ahead"
    with pytest.raises(Halted, match="Restore it from a backup"):  # and keeps nothing open that a second attempt needs
        engine(tmp_path)


def test_a_log_that_was_altered_stops_a_rebuild(tmp_path: Path) -> None:
    fill(tmp_path)
    change(tmp_path / "documents.sqlite", "UPDATE records SET value = X'7B7D' WHERE at = 2")
    wipe_state(tmp_path)
    with pytest.raises(Halted, match="Record 2 of partition 0") as caught:
        engine(tmp_path)

    assert caught.value.code == "damaged"


def test_a_second_process_on_one_folder_learns_which_process_has_it(tmp_path: Path) -> None:
    program = f"import stream_car; stream_car.open({str(tmp_path)!r})"
    with engine(tmp_path) as car:
        car.publish(STATEMENTS)
        second = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
        with pytest.raises(StreamCarError, match="If a service has it open, use its --url"):
            engine(tmp_path)

    assert second.returncode == 1
    assert "The document log is open in process" in second.stderr.splitlines()[-1]


def test_a_temporary_engine_leaves_no_files() -> None:
    with stream_car.open() as car:
        folder = car.path
        assert (folder / "documents.sqlite").is_file()
    assert not folder.exists()


def test_every_form_of_a_document_is_the_same_document(tmp_path: Path) -> None:
    claim = document("c1", at=1, topic="moon")
    new = NewDocument(
        id="c1", type="claim", time=from_micros(claim.time), scope={"topic": "moon"}, title="c1", text=claim.text
    )
    mapping: dict[str, object] = {
        "id": "c1",
        "type": "claim",
        "time": format_time(claim.time),
        "title": "c1",
        "text": claim.text,
    }
    mapping["scope"] = {"topic": ["moon"]}
    forms: list[Publishable] = [claim, new, mapping, encode(claim), encode(claim).decode()]
    with engine(tmp_path) as car:
        published = car.publish([*forms, Retraction(id="c1"), {"id": "c1"}])

    outcomes = [receipt.outcome for receipt in published.receipts]
    assert outcomes == ["accepted", *["duplicate"] * 4, "retracted", "rejected"]
    assert published.outcomes == {"accepted": 1, "duplicate": 4, "rejected": 1, "retracted": 1}
    with engine(tmp_path) as car, pytest.raises(StreamCarError, match="Cannot publish an int"):
        car.publish([5])  # type: ignore[list-item]


@pytest.mark.parametrize("kept", ["index", "state.sqlite"])
def test_a_derived_file_from_an_old_backup_is_brought_up_to_date(kept: str, tmp_path: Path) -> None:
    with engine(tmp_path / "new") as car:
        car.publish(STATEMENTS[:9])
    restored = tmp_path / "backup" / kept
    copy(built_folder(tmp_path / "new") / kept, restored)
    with engine(tmp_path / "new") as car:
        car.publish([*STATEMENTS[9:], document("c1", at=1, revision=2, topic="mars")])
        first = answers(car)
    remove(built_folder(tmp_path / "new") / kept)
    copy(restored, built_folder(tmp_path / "new") / kept)
    with engine(tmp_path / "new") as car:
        assert answers(car) == first


def test_a_log_from_another_engine_is_noticed_and_everything_is_built_from_it(tmp_path: Path) -> None:
    fill(tmp_path / "ours")
    with engine(tmp_path / "theirs", clock=StoppedClock(NOW + 1)) as theirs:
        theirs.publish([*STATEMENTS[::-1], *(document(f"new{n}", topic="moon", text="moon") for n in range(50))])
        expected = answers(theirs)
    remove(tmp_path / "ours" / "documents.sqlite")
    copy(tmp_path / "theirs" / "documents.sqlite", tmp_path / "ours" / "documents.sqlite")
    with engine(tmp_path / "ours", clock=StoppedClock(NOW + 1)) as ours:
        assert answers(ours) == expected


def test_a_log_that_went_on_from_a_backup_is_noticed(tmp_path: Path) -> None:
    log, backup = tmp_path / "new" / "documents.sqlite", tmp_path / "old" / "documents.sqlite"
    with engine(tmp_path / "new") as car:
        car.publish([document("c", topic="moon")])
    copy(log, backup)
    with engine(tmp_path / "new") as car:
        car.publish([document("d", "denial", at=9, topic="moon")])
    remove(log)
    copy(backup, log)
    with engine(tmp_path / "old") as elsewhere:
        elsewhere.publish([document("n", "note", at=9, topic="moon")])
    copy(backup, log)
    with engine(tmp_path / "new") as car:
        assert [resolution.status for resolution in car.resolve(["c", "d", "n"])] == ["in_force", "unknown", "in_force"]
        assert [hit.id for hit in car.search("c d n moon")] == ["c", "n"]


def test_an_index_of_another_engine_does_not_outlive_the_state(tmp_path: Path) -> None:
    with engine(tmp_path / "theirs") as theirs:
        theirs.publish([document("stranger", text="moon")])
    fill(tmp_path / "ours")
    wipe_projection(tmp_path / "ours")
    copy(built_folder(tmp_path / "theirs") / "index", built_folder(tmp_path / "ours") / "index")
    with engine(tmp_path / "ours") as ours:
        assert "stranger" not in {hit.id for hit in ours.search("moon", 100)}


MOVED: list[Document | Retraction] = [
    document("c1", at=1, topic="moon", place="here"),
    document("c1", at=1, revision=2, topic="moon", place="there"),
    document("c2", at=1, topic="mars", place="here"),
    Retraction(id="c2"),
    document("f", at=1001, topic="venus", place="here"),
]


@pytest.mark.parametrize("harm", [wipe_index, wipe_state, wipe_projection])
@pytest.mark.parametrize("together", [False, True], ids=["one by one", "together"])
def test_scopes_that_are_empty_now_are_still_found_by_their_parts_after_a_rebuild(
    harm: Callable[[Path], None], together: bool, tmp_path: Path
) -> None:
    with engine(tmp_path) as car:
        for batch in [MOVED] if together else [[statement] for statement in MOVED]:
            car.publish(batch)
        first = car.changes("place=here")
    assert {change.scope for change in first} == {"place=here, topic=moon", "place=here, topic=mars"}
    harm(tmp_path)
    with engine(tmp_path) as car:
        assert car.changes("place=here") == first
        assert [frontier.scope for frontier in car.frontier("topic=moon")] == ["place=there, topic=moon", "topic=moon"]
        car.publish([document("g", at=2, topic="mars", place="here")])
        assert [frontier.scope for frontier in car.frontier("place=here")] == ["place=here, topic=mars"]


def test_a_listing_of_very_many_scopes_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "SCOPES_MAX", 100)
    with engine(tmp_path) as car:
        car.publish(document(f"c{n}", topic=f"t{n:03}", place="here") for n in range(250))
        for read in (car.frontier, car.history):
            names: list[str] = []
            after = ""
            while page := read("place=here", after=after):
                names += [item.scope for item in page]
                assert len(page) <= 100
                after = page[-1].next
                if not after:
                    break
            assert names == [f"place=here, topic=t{n:03}" for n in range(250)]
        assert len(car.frontier("topic=t007, place=here")) == 1


def test_changes_of_too_many_scopes_are_an_error_that_names_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scopes, "SCOPES_MAX", 10)
    with engine(tmp_path) as car:
        car.publish(document(f"c{n}", topic=f"t{n}", place="here") for n in range(11))
        with pytest.raises(InvalidRequest, match=r"More than 10 scopes have place=here\. Add another KEY=VALUE\."):
            car.changes("place=here")


def ids(frontier: Frontier) -> list[str]:
    return [document.id for document in frontier.in_force]


def test_link_scopes_are_found_by_name(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish([document("old", at=1), document("new", at=2, supersedes=("old",), amends=("other",))])

        assert [(frontier.scope, ids(frontier)) for frontier in car.frontier("document=old")] == [
            ("document=old", ["new"])
        ]
        assert [frontier.scope for frontier in car.frontier("amended=other")] == ["amended=other"]
        assert [[member.id for member in change.left] for change in car.changes("document=old")] == [["old"]]

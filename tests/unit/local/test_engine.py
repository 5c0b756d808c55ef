"""The embedded engine: answers survive whatever happens to derived files, and time passes by the log."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

import stream_car
from stream_car import Document, Engine, Halted, InvalidRequest, Retraction, StreamCarError
from stream_car.codec import encode, format_time
from stream_car.queries import scopes
from stream_car.queries.answers import Answer
from tests.support.damage import change, flip
from tests.support.engines import NOW, StoppedClock, built, document, engine
from tests.support.repository import ROOT

SAID: list[Document | Retraction] = [
    document("c1", at=1, topic="moon"),
    document("c2", at=2, topic="moon", place="here"),
    document("d1", "denial", at=3, topic="moon"),
    document("q1", "doubt", at=4, topic="moon"),
    document("c3", at=5, topic="sun"),
    document("c4", at=6, topic="sun", supersedes=("c3",)),
    document("n1", "note", at=7, topic="sun"),
    document("f1", "fact", at=1, subject="tea", attributes={"value": "hot"}),
    document("f2", "fact", at=2, subject="tea", attributes={"value": "cold"}),
    document("gone", at=1, topic="sun"),
    Retraction(id="gone"),
    *(document(f"m{n}", at=n, topic="crowd") for n in range(100)),
    document("end", "denial", at=200, topic="crowd"),
]
NAMES = [said.id for said in SAID]


def filled(path: Path) -> None:
    with engine(path) as here:
        here.publish([*SAID, b"{"])


def answers(here: Engine) -> tuple[object, ...]:
    """Everything that the engine can be asked about what was said."""
    questions = ("moon", "sun", "tea", "crowd", "gone", "nothing of it")
    parts = ("topic=moon", "topic=sun", "subject=tea", "topic=crowd", "document=c3")
    return (
        here.next_offset,
        [unscored(here.query(text, k=10)) for text in questions],
        here.resolve(NAMES),
        here.check(NAMES),
        [(here.frontier(part), here.history(part), here.changes(part)) for part in parts],
        here.changes(),
        [here.explain(name) for name in NAMES],
        here.rejected(),
    )


def unscored(answer: Answer) -> tuple[object, ...]:
    """All but scores and beliefs: in them a replaced document counts until its index segment is merged."""
    groups = [structs.replace(group, score=0.0, belief=0.0) for group in answer.groups]
    return answer.results, groups, structs.replace(answer.certificate, coverage=1.0), answer.pending


def wipe_state(path: Path) -> None:
    for file in built(path).glob("state.sqlite*"):
        file.unlink()


def scramble_state(path: Path) -> None:
    (built(path) / "state.sqlite").write_bytes(b"This was a database once. " * 200)


def cut_state(path: Path) -> None:
    whole = (built(path) / "state.sqlite").read_bytes()
    (built(path) / "state.sqlite").write_bytes(whole[: len(whole) // 2])


def wipe_index(path: Path) -> None:
    shutil.rmtree(built(path) / "index")


def scramble_index(path: Path) -> None:
    for file in (built(path) / "index").rglob("*"):
        if file.is_file():
            file.write_bytes(b"no index")


def flip_a_segment(path: Path) -> None:
    store = max((built(path) / "index" / "tantivy").glob("*.store"), key=lambda file: file.stat().st_size)
    flip(store, store.stat().st_size // 3)


def damage_the_list_of_scopes(path: Path) -> None:
    (built(path) / "index" / "scopes.sqlite").write_bytes(b"no list " * 600)


def wipe_everything_derived(path: Path) -> None:
    wipe_state(path)
    wipe_index(path)


def test_an_engine_opened_again_gives_the_same_answers(tmp_path: Path) -> None:
    filled(tmp_path)
    with engine(tmp_path) as here:
        first = answers(here)
    with engine(tmp_path) as here:
        assert answers(here) == first
        assert here.publish(SAID).receipts[0].outcome == "duplicate"


@pytest.mark.parametrize(
    "harm",
    [
        wipe_state, scramble_state, cut_state, wipe_index, scramble_index, flip_a_segment,
        damage_the_list_of_scopes, wipe_everything_derived,
    ],
)  # fmt: skip
def test_derived_files_are_rebuilt_with_equal_answers(harm: Callable[[Path], None], tmp_path: Path) -> None:
    filled(tmp_path)
    with engine(tmp_path) as here:
        first = answers(here)
    harm(tmp_path)
    with engine(tmp_path) as here:
        assert answers(here) == first


@pytest.mark.parametrize("table", ["entries", "changes"])
def test_values_that_were_altered_are_noticed_and_rebuilt(table: str, tmp_path: Path) -> None:
    filled(tmp_path)
    with engine(tmp_path) as here:
        first = answers(here)
    change(built(tmp_path) / "state.sqlite", f"UPDATE {table} SET value = X'00112233445566778899'")
    with engine(tmp_path) as here:
        assert answers(here) == first


def test_an_altered_value_does_not_keep_anyone_from_publishing(tmp_path: Path) -> None:
    filled(tmp_path)
    change(built(tmp_path) / "state.sqlite", "UPDATE entries SET value = X'00' WHERE key = ?", b"s:topic=sun")
    with engine(tmp_path) as here:
        [receipt] = here.publish([document("d9", "denial", at=20, topic="sun")]).receipts

        assert (receipt.outcome, receipt.id) == ("accepted", "d9")
        assert [one.document.id for one in here.resolve(["c4"])[0].groups[0].controlling] == ["d9"]


def test_nothing_is_given_up_for_a_log_that_could_not_replace_it(tmp_path: Path) -> None:
    filled(tmp_path)
    change(tmp_path / "documents.sqlite", "UPDATE records SET value = X'7B7D' WHERE at = 2")
    change(built(tmp_path) / "state.sqlite", "UPDATE entries SET value = X'00' WHERE key = ?", b"s:topic=sun")
    with engine(tmp_path) as here:
        with pytest.raises(Halted, match="Record 2 of partition 0"):
            here.frontier("topic=sun")
        assert here.resolve(["c1"])[0].groups[0].controlling[0].document.id == "q1"


def test_a_log_that_lost_its_end_stops_the_engine_with_a_sentence_to_act_on(tmp_path: Path) -> None:
    filled(tmp_path)
    change(tmp_path / "documents.sqlite", "DELETE FROM records WHERE at > 5")
    with pytest.raises(Halted, match="Restore it from a backup") as caught:
        engine(tmp_path)

    assert caught.value.code == "ahead"
    with pytest.raises(Halted, match="Restore it from a backup"):  # and holds nothing that a second try would need
        engine(tmp_path)


def test_a_log_that_was_altered_stops_a_rebuild(tmp_path: Path) -> None:
    filled(tmp_path)
    change(tmp_path / "documents.sqlite", "UPDATE records SET value = X'7B7D' WHERE at = 2")
    wipe_state(tmp_path)
    with pytest.raises(Halted, match="Record 2 of partition 0") as caught:
        engine(tmp_path)

    assert caught.value.code == "damaged"


def test_a_second_process_on_one_folder_is_told_which_process_has_it(tmp_path: Path) -> None:
    program = f"import stream_car; stream_car.open({str(tmp_path)!r})"
    with engine(tmp_path) as here:
        here.publish(SAID)
        second = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
        with pytest.raises(StreamCarError, match="end that process, or open another folder"):
            engine(tmp_path)

    assert second.returncode == 1
    assert "The document log is open in process" in second.stderr.splitlines()[-1]


def test_a_temporary_engine_leaves_no_files() -> None:
    with stream_car.open() as here:
        folder = here.path
        assert (folder / "documents.sqlite").is_file()
    assert not folder.exists()


def test_whatever_a_document_is_given_as_it_is_the_same_document(tmp_path: Path) -> None:
    one = document("c1", at=1, topic="moon")
    given = {"id": "c1", "type": "claim", "time": format_time(one.time), "title": "c1", "text": one.text}
    mapping = {**given, "scope": {"topic": ["moon"]}}
    with engine(tmp_path) as here:
        told = here.publish([one, mapping, encode(one), encode(one).decode(), Retraction(id="c1"), {"id": "c1"}])

    assert [receipt.outcome for receipt in told.receipts] == ["accepted", *["duplicate"] * 3, "retracted", "rejected"]
    with engine(tmp_path) as here, pytest.raises(StreamCarError, match="Cannot publish a int"):
        here.publish([5])  # type: ignore[list-item]


@pytest.mark.parametrize("kept", ["index", "state.sqlite"])
def test_a_derived_file_of_an_earlier_day_is_brought_up_to_date(kept: str, tmp_path: Path) -> None:
    with engine(tmp_path / "new") as here:
        here.publish(SAID[:9])
    restored = tmp_path / "backup" / kept
    copy(built(tmp_path / "new") / kept, restored)
    with engine(tmp_path / "new") as here:
        here.publish([*SAID[9:], document("c1", at=1, revision=2, topic="mars")])
        first = answers(here)
    remove(built(tmp_path / "new") / kept)
    copy(restored, built(tmp_path / "new") / kept)
    with engine(tmp_path / "new") as here:
        assert answers(here) == first


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        for file in path.parent.glob(path.name + "*"):
            file.unlink()


def test_a_log_from_another_engine_is_noticed_and_everything_built_from_it(tmp_path: Path) -> None:
    filled(tmp_path / "ours")
    with engine(tmp_path / "theirs", clock=StoppedClock(NOW + 1)) as theirs:
        theirs.publish([*SAID[::-1], *(document(f"new{n}", topic="moon", text="moon") for n in range(50))])
        expected = answers(theirs)
    remove(tmp_path / "ours" / "documents.sqlite")
    copy(tmp_path / "theirs" / "documents.sqlite", tmp_path / "ours" / "documents.sqlite")
    with engine(tmp_path / "ours", clock=StoppedClock(NOW + 1)) as ours:
        assert answers(ours) == expected


def test_a_log_that_went_on_from_a_backup_is_noticed(tmp_path: Path) -> None:
    log, backup = tmp_path / "new" / "documents.sqlite", tmp_path / "old" / "documents.sqlite"
    with engine(tmp_path / "new") as here:
        here.publish([document("c", topic="moon")])
    copy(log, backup)
    with engine(tmp_path / "new") as here:
        here.publish([document("d", "denial", at=9, topic="moon")])
    remove(log)
    copy(backup, log)
    with engine(tmp_path / "old") as elsewhere:
        elsewhere.publish([document("n", "note", at=9, topic="moon")])
    copy(backup, log)
    with engine(tmp_path / "new") as here:
        assert [one.status for one in here.resolve(["c", "d", "n"])] == ["active", "unknown", "active"]
        assert [hit.id for hit in here.relevance("c d n moon")] == ["c", "n"]


def test_an_index_of_another_engine_does_not_outlive_the_state(tmp_path: Path) -> None:
    with engine(tmp_path / "theirs") as theirs:
        theirs.publish([document("stranger", text="moon")])
    filled(tmp_path / "ours")
    wipe_everything_derived(tmp_path / "ours")
    copy(built(tmp_path / "theirs") / "index", built(tmp_path / "ours") / "index")
    with engine(tmp_path / "ours") as ours:
        assert "stranger" not in {hit.id for hit in ours.relevance("moon", 100)}


MOVED: list[Document | Retraction] = [
    document("c1", at=1, topic="moon", place="here"),
    document("c1", at=1, revision=2, topic="moon", place="there"),
    document("c2", at=1, topic="mars", place="here"),
    Retraction(id="c2"),
    document("f", at=1001, topic="venus", place="here"),
]


@pytest.mark.parametrize("harm", [wipe_index, wipe_state, wipe_everything_derived])
@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
def test_scopes_that_are_empty_now_are_still_found_by_their_parts_after_a_rebuild(
    harm: Callable[[Path], None], at_once: bool, tmp_path: Path
) -> None:
    with engine(tmp_path) as here:
        for said in [MOVED] if at_once else [[one] for one in MOVED]:
            here.publish(said)
        first = here.changes("place=here")
    assert {told.change.scope for told in first} == {"place=here, topic=moon", "place=here, topic=mars"}
    harm(tmp_path)
    with engine(tmp_path) as here:
        assert here.changes("place=here") == first
        assert [one.scope for one in here.frontier("topic=moon")] == ["place=there, topic=moon", "topic=moon"]
        here.publish([document("g", at=2, topic="mars", place="here")])
        assert [one.scope for one in here.frontier("place=here")] == ["place=here, topic=mars"]


def test_too_many_scopes_for_one_question_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "SCOPES_MAX", 1024)
    with engine(tmp_path) as here:
        here.publish(document(f"c{n}", topic=f"t{n}", place="here") for n in range(1024))
        assert len(here.frontier("place=here")) == 1024
        here.publish([document("one more", topic="t1024", place="here")])
        with pytest.raises(InvalidRequest, match=r"More than 1024 scopes have place=here\. Add another KEY=VALUE\."):
            here.frontier("place=here")
        assert len(here.frontier("topic=t7, place=here")) == 1


def test_link_scopes_are_found_by_name(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish([document("old", at=1), document("new", at=2, supersedes=("old",), amends=("other",))])

        assert [(one.scope, [d.id for d in one.active]) for one in here.frontier("document=old")] == [
            ("document=old", ["new"])
        ]
        assert [one.scope for one in here.frontier("amended=other")] == ["amended=other"]
        assert [[gone.id for gone in told.change.left] for told in here.changes("document=old")] == [["old"]]

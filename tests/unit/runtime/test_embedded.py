"""The embedded engine: answers survive whatever happens to derived files, and time passes by the log."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

import stream_car
from stream_car import Document, Engine, Halted, Retraction, StreamCarError
from stream_car.codec import encode, format_time
from stream_car.core.intake import SKEW
from stream_car.engine.answers import Answer, Receipt
from tests.engines import DAY, NOW, OTHER_RULESET, RULESET, StoppedClock, day, document, engine
from tests.unit.adapters.files import change, flip

ROOT = Path(__file__).parents[3]
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
    """All but the scores: in them a replaced document counts until its index segment is merged."""
    groups = [structs.replace(group, score=0.0) for group in answer.groups]
    return answer.results, groups, answer.certificate, answer.pending


def wipe_state(path: Path) -> None:
    for file in path.glob("state.sqlite*"):
        file.unlink()


def scramble_state(path: Path) -> None:
    (path / "state.sqlite").write_bytes(b"This was a database once. " * 200)


def cut_state(path: Path) -> None:
    whole = (path / "state.sqlite").read_bytes()
    (path / "state.sqlite").write_bytes(whole[: len(whole) // 2])


def wipe_index(path: Path) -> None:
    shutil.rmtree(path / "index")


def scramble_index(path: Path) -> None:
    for file in (path / "index").rglob("*"):
        if file.is_file():
            file.write_bytes(b"no index")


def flip_a_segment(path: Path) -> None:
    store = max((path / "index" / "tantivy").glob("*.store"), key=lambda file: file.stat().st_size)
    flip(store, store.stat().st_size // 3)


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
        wipe_state, scramble_state, cut_state, wipe_index, scramble_index, flip_a_segment, wipe_everything_derived,
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
    change(tmp_path / "state.sqlite", f"UPDATE {table} SET value = X'00112233445566778899'")
    with engine(tmp_path) as here:
        assert answers(here) == first


def test_an_altered_value_does_not_keep_anyone_from_publishing(tmp_path: Path) -> None:
    filled(tmp_path)
    change(tmp_path / "state.sqlite", "UPDATE entries SET value = X'00' WHERE key = ?", b"s:topic=sun")
    with engine(tmp_path) as here:
        [receipt] = here.publish([document("d9", "denial", at=20, topic="sun")]).receipts

        assert (receipt.outcome, receipt.id) == ("accepted", "d9")
        assert [one.document.id for one in here.resolve(["c4"])[0].groups[0].controlling] == ["d9"]


def test_nothing_is_given_up_for_a_log_that_could_not_replace_it(tmp_path: Path) -> None:
    filled(tmp_path)
    change(tmp_path / "documents.sqlite", "UPDATE records SET value = X'7B7D' WHERE at = 2")
    change(tmp_path / "state.sqlite", "UPDATE entries SET value = X'00' WHERE key = ?", b"s:topic=sun")
    with engine(tmp_path) as here:
        with pytest.raises(Halted, match="record 2 of partition 0"):
            here.frontier("topic=sun")
        assert here.resolve(["c1"])[0].groups[0].controlling[0].document.id == "q1"


def test_other_rules_build_the_state_anew_and_the_first_rules_bring_the_first_answers_back(tmp_path: Path) -> None:
    filled(tmp_path)
    with engine(tmp_path) as here:
        first, generation = answers(here), here.generation
    with engine(tmp_path, ruleset=OTHER_RULESET) as here:
        assert here.generation != generation
        assert [one.status for one in here.resolve(["c1", "d1", "f1"])] == ["void", "active", "active"]
        assert here.frontier("subject=tea") == ()
    with engine(tmp_path) as here:
        assert answers(here) == first


def test_a_log_that_lost_its_end_stops_the_engine_with_a_sentence_to_act_on(tmp_path: Path) -> None:
    filled(tmp_path)
    change(tmp_path / "documents.sqlite", "DELETE FROM records WHERE at > 5")
    with pytest.raises(Halted, match="restore it from a backup") as caught:
        engine(tmp_path)

    assert caught.value.code == "ahead"
    with pytest.raises(Halted, match="restore it from a backup"):  # and holds nothing that a second try would need
        engine(tmp_path)


def test_a_log_that_was_altered_stops_a_rebuild(tmp_path: Path) -> None:
    filled(tmp_path)
    change(tmp_path / "documents.sqlite", "UPDATE records SET value = X'7B7D' WHERE at = 2")
    wipe_state(tmp_path)
    with pytest.raises(Halted, match="record 2 of partition 0") as caught:
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
    assert "the document log is open in process" in second.stderr.splitlines()[-1]


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
    with engine(tmp_path) as here, pytest.raises(StreamCarError, match="cannot publish a int"):
        here.publish([5])  # type: ignore[list-item]


def receipt_of(here: Engine, said: Document | Retraction | dict[str, object] | bytes) -> Receipt:
    [receipt] = here.publish([said]).receipts
    return receipt


def test_every_outcome_has_its_receipt() -> None:
    with engine() as here:
        accepted = receipt_of(here, document("a", topic="moon", revision=2))
        assert (accepted.outcome, accepted.id, accepted.revision, accepted.type) == ("accepted", "a", 2, "claim")
        assert (accepted.offset, accepted.scopes, accepted.lacking) == (0, 1, ())
        assert receipt_of(here, document("a", topic="moon", revision=2)).outcome == "duplicate"
        assert receipt_of(here, document("a", topic="moon")).outcome == "older"
        assert receipt_of(here, Retraction(id="nobody")).outcome == "nothing"
        assert receipt_of(here, Retraction(id="nobody", revision=3)).outcome == "retracted"
        assert receipt_of(here, document("nobody", revision=3)).outcome == "older"
        assert receipt_of(here, document("later", at=1001)).outcome == "pending"
        bare = receipt_of(here, document("bare"))
        assert (bare.outcome, bare.scopes, bare.lacking) == ("accepted", 0, ("place", "topic"))
        conflict = receipt_of(here, document("a", topic="sun", revision=2))
        assert (conflict.outcome, conflict.code, conflict.id) == ("rejected", "conflict", "a")
        assert conflict.reason == "revision 2 was published with other content; send revision 3"
        retracted = receipt_of(here, Retraction(id="a"))
        assert (retracted.outcome, retracted.revision) == ("retracted", None)
        assert receipt_of(here, Retraction(id="a", revision=2)).outcome == "duplicate"
        assert receipt_of(here, document("a", topic="moon", revision=2)).outcome == "older"
        assert receipt_of(here, document("a", topic="moon", revision=3)).outcome == "accepted"
        assert here.next_offset == 13


@pytest.mark.parametrize(
    ("said", "code", "name"),
    [
        (b"{", "syntax", None),
        (b"", "empty", None),
        (document("x", "rumour"), "type_unknown", "x"),
        (
            Document(
                id="y",
                type="claim",
                time=NOW,
                scope=({"topic": tuple(f"t{n}" for n in range(40)), "place": tuple(f"p{n}" for n in range(40))},),
            ),
            "scope_count",
            "y",
        ),
    ],
)
def test_what_is_refused_is_kept_with_its_bytes(
    said: Document | bytes, code: str, name: str | None, tmp_path: Path
) -> None:
    with engine(tmp_path) as here:
        receipt = receipt_of(here, said)
        [refused] = here.rejected()

        assert (receipt.outcome, receipt.code) == ("rejected", code)
        assert (refused.code, refused.reason, refused.offset) == (code, receipt.reason, receipt.offset)
        assert (refused.id, receipt.id) == (name, name)
        assert refused.value == (said if isinstance(said, bytes) else encode(said))
        assert refused.append_time == NOW
    with engine(tmp_path) as here:
        assert here.rejected() == (refused,)
        assert here.rejected(after=1) == ()


def future(name: str = "f", revision: int = 1, days: int = 1, kind: str = "denial") -> Document:
    return document(name, kind, at=1000 + days, revision=revision, topic="moon")


def test_a_document_from_the_future_waits_and_is_released_before_a_read() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as here:
        receipts = here.publish([document("c", topic="moon"), future()]).receipts
        assert [receipt.outcome for receipt in receipts] == ["accepted", "pending"]
        assert here.pending() == (("f", 1, NOW + DAY),)
        assert [one.status for one in here.resolve(["c", "f"])] == ["active", "pending"]
        assert (here.explain("f").status, here.explain("f").due) == ("pending", NOW + DAY)
        assert here.query("moon").pending == 1
        clock.time = NOW + DAY - SKEW - 1
        assert [one.status for one in here.resolve(["c", "f"])] == ["active", "pending"]
        assert here.next_offset == 2
        clock.time += 1
        assert [one.status for one in here.resolve(["c", "f"])] == ["void", "active"]
        assert here.next_offset == 3
        assert here.pending() == ()
        [*_, last] = here.changes()
        assert (last.change.cause.kind, last.change.cause.id, last.change.offset) == ("released", "f", 2)


def test_what_became_due_while_the_engine_was_closed_is_released_on_opening(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish([document("c", topic="moon"), future(), future("g", days=3)])
    with engine(tmp_path, clock=StoppedClock(NOW + 2 * DAY)) as here:
        assert here.next_offset == 4
        assert here.pending() == (("g", 1, NOW + 3 * DAY),)
        assert [one.status for one in here.resolve(["c", "f", "g"])] == ["void", "active", "pending"]


def test_what_waits_is_found_due_after_opening_again_too(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish([document("c", topic="moon"), future()])
    clock = StoppedClock()
    with engine(tmp_path, clock=clock) as here:
        assert here.resolve(["c"])[0].status == "active"
        clock.time += 2 * DAY
        assert here.resolve(["c"])[0].status == "void"


def test_a_waiting_document_can_be_retracted() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as here:
        here.publish([document("c", topic="moon"), future()])
        assert here.retract("f").outcome == "retracted"
        assert here.pending() == ()
        clock.time += 9 * DAY
        assert [one.status for one in here.resolve(["c", "f"])] == ["active", "retracted"]
        assert [told.change.cause.id for told in here.changes()] == ["c"]


def test_a_waiting_document_can_be_corrected_to_another_time() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as here:
        here.publish([document("c", topic="moon"), future(), future(revision=2, days=5)])
        assert here.pending() == (("f", 2, NOW + 5 * DAY),)
        clock.time += 2 * DAY
        assert here.resolve(["c"])[0].status == "active"
        here.publish([future(revision=3, days=1)])
        assert here.pending() == ()
        assert here.resolve(["c"])[0].status == "void"


def test_a_correction_into_the_future_takes_effect_at_once_on_what_it_replaces() -> None:
    with engine() as here:
        here.publish([document("c", topic="moon"), document("d", "denial", at=5, topic="moon")])
        assert here.resolve(["c"])[0].status == "void"
        assert receipt_of(here, future("d", revision=2)).outcome == "pending"
        assert [one.status for one in here.resolve(["c", "d"])] == ["active", "pending"]
        assert here.query("d").pending == 1


def test_waiting_documents_are_released_in_the_order_of_their_times() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as here:
        here.publish([future(f"f{n}", days=9 - n, kind="claim") for n in range(5)])
        assert [name for name, _, _ in here.pending()] == ["f4", "f3", "f2", "f1", "f0"]
        clock.time += 20 * DAY
        here.publish([document("z", topic="moon")])
        assert [told.change.cause.id for told in here.changes()] == ["f4", "f3", "f2", "f1", "f0", "z"]
        assert {told.change.offset for told in here.changes()} == {5}


def test_a_closed_collection_has_no_present() -> None:
    with engine(future="apply") as here:
        assert [r.outcome for r in here.publish([document("c", topic="moon"), future()]).receipts] == ["accepted"] * 2
        assert here.pending() == ()
        assert [one.status for one in here.resolve(["c", "f"])] == ["void", "active"]
        assert [one.status for one in here.resolve(["c", "f"], as_of=NOW)] == ["active", "pending"]


def test_how_the_future_is_treated_is_part_of_the_generation(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish([document("c", topic="moon"), future()])
        waiting = here.generation
    with engine(tmp_path, future="apply") as here:
        assert here.generation != waiting
        assert here.resolve(["c"])[0].status == "void"
    with engine(tmp_path) as here:
        assert here.resolve(["c"])[0].status == "active"


def test_append_times_do_not_go_back_with_the_clock(tmp_path: Path) -> None:
    with engine(tmp_path, clock=StoppedClock(NOW + 2 * DAY)) as here:
        here.publish([document("c", topic="moon")])
    with engine(tmp_path, clock=StoppedClock(NOW)) as here:
        assert receipt_of(here, future()).outcome == "accepted"


def test_a_failure_while_publishing_leaves_nothing_unfound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine(tmp_path) as here:
        with monkeypatch.context() as patched:
            patched.setattr(type(here._journal), "publish", broken)
            with pytest.raises(StreamCarError, match="no room"):
                here.publish([document("c", topic="moon")])
        receipts = here.publish([document("d", "denial", at=9, topic="moon")]).receipts

        assert [(receipt.id, receipt.offset) for receipt in receipts] == [("d", 1)]
        assert [hit.id for hit in here.relevance("c")] == ["c"]
        assert [told.change.cause.id for told in here.changes()] == ["c", "d"]


async def broken(*_: object) -> None:
    raise StreamCarError("no room")


def test_days_are_what_the_helpers_say() -> None:
    assert document("c", at=7).time == day(7) < NOW
    assert set(RULESET.domain_of) == {"claim", "denial", "doubt", "note", "fact"}

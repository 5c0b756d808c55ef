"""Other rules are built beside the old ones and switched to at once; a folder remembers its rules."""

from pathlib import Path

import msgspec
import pytest

import stream_car
from stream_car import Engine, Halted, InvalidRequest
from stream_car.local.rebuild import NewGeneration
from stream_car.queries.answers import Difference, Step
from stream_car.queries.changes import Position
from stream_car.rule_packs import load_texts
from tests.support.damage import change
from tests.support.data_directories import STATEMENTS, answers
from tests.support.engines import OTHER_RULESET, RULESET, document, engine
from tests.support.rule_packs import GOOD, written

FACT = {"id": "f1", "type": "fact", "time": "2024-01-01T00:00:00Z", "scope": {"subject": "tea"}}


def finish(rebuild: NewGeneration) -> NewGeneration:
    while rebuild.step(7):
        pass
    return rebuild


def test_a_rebuilt_folder_answers_as_one_that_had_these_rules_all_along(tmp_path: Path) -> None:
    with engine(tmp_path / "always", ruleset=OTHER_RULESET) as car:
        car.publish([*STATEMENTS, b"{"])
        expected = answers(car)
    with engine(tmp_path / "changed") as car:
        car.publish([*STATEMENTS, b"{"])
        before = answers(car)
        with car.directory.rebuild(ruleset=OTHER_RULESET) as rebuild:
            finish(rebuild).switch()
        assert answers(car) == expected
        assert car.directory.ruleset.digest == OTHER_RULESET.digest
    with engine(tmp_path / "changed", ruleset=None) as car:
        assert answers(car) == expected
        with car.directory.rebuild(ruleset=RULESET) as rebuild:
            finish(rebuild).switch()
        assert answers(car) == before


def test_rules_that_were_given_stay_as_they_are_and_packs_are_read_again(tmp_path: Path) -> None:
    with engine(tmp_path / "data", ruleset=RULESET) as car:
        car.publish(STATEMENTS)
        before = answers(car)
        with car.directory.rebuild() as same:
            finish(same).switch()
        assert (answers(car), car.directory.ruleset.digest) == (before, RULESET.digest)
        sent = load_texts(["medical"], {"news.toml": GOOD})
        with car.directory.rebuild(["medical"], ruleset=sent) as other:
            finish(other).switch()
        with car.directory.rebuild() as again:
            finish(again).switch()
        assert car.directory.ruleset.digest == sent.digest
        assert (car.directory.built_with.rules, car.directory.built_with.number) == (("medical",), 4)


def test_until_the_switch_answers_are_those_of_the_old_rules_while_documents_come_in(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish(STATEMENTS)
        old = car.directory.generation
        seen = set()
        with car.directory.rebuild(ruleset=OTHER_RULESET) as rebuild:
            for n in range(10):
                rebuild.step(9)
                car.publish([document(f"late{n}", at=900, topic="sun")])
                seen.add((car.directory.generation, *statuses(car, ["d1", "f1", "late0"])))
            assert seen == {(old, "superseded", "superseded", "in_force")}
            rebuild.switch()
        assert (car.directory.generation != old, car.directory.next_offset) == (True, len(STATEMENTS) + 10)
        assert statuses(car, ["d1", "f1", "late9"]) == ["in_force", "in_force", "in_force"]


def statuses(car: Engine, names: list[str]) -> list[str]:
    return [resolution.status for resolution in car.resolve(names)]


def test_a_rebuild_that_is_abandoned_leaves_nothing(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish(STATEMENTS)
        first = answers(car)
        with car.directory.rebuild(ruleset=OTHER_RULESET) as rebuild:
            finish(rebuild)
            assert sorted(path.name for path in (tmp_path / "built").iterdir()) == ["1", "2"]
        assert [path.name for path in (tmp_path / "built").iterdir()] == ["1"]
        assert answers(car) == first


def test_the_comparison_names_every_document_whose_status_would_change_and_why(tmp_path: Path) -> None:
    statements = [*STATEMENTS, document("late", at=1001, topic="moon")]
    names = sorted({statement.id for statement in statements})
    with engine(tmp_path) as car:
        car.publish(statements)
        before = dict(zip(names, statuses(car, names), strict=True))
        with car.directory.rebuild(ruleset=OTHER_RULESET, future="apply") as rebuild:
            differences = {difference.id: difference for difference in finish(rebuild).differences()}
            rebuild.switch()
        after = dict(zip(names, statuses(car, names), strict=True))

    assert {name: (difference.before, difference.after) for name, difference in differences.items()} == {
        name: (before[name], after[name]) for name in names if before[name] != after[name]
    }
    assert differences["late"] == Difference(id="late", before="pending", after="in_force")
    why = (Step(id="q1", rule="doubt-voids-denial", scope="topic=moon"),)
    assert differences["d1"] == Difference(id="d1", before="superseded", after="in_force", why=why)


def test_a_folder_keeps_the_rules_that_it_was_built_with(tmp_path: Path) -> None:
    pack = written(tmp_path, GOOD)
    with stream_car.open(tmp_path / "data", rules=[pack]) as car:
        car.publish([{**FACT, "type": "claim", "scope": {"topic": "Tea"}}])
        generation = car.directory.generation
    written(tmp_path, GOOD.replace('"lower"', '"none"'))
    with stream_car.open(tmp_path / "data") as car:
        assert car.directory.generation == generation
        assert [frontier.scope for frontier in car.frontier("topic=tea")] == ["topic=tea"]
    with pytest.raises(InvalidRequest, match="stream-car rebuild"):
        stream_car.open(tmp_path / "data", rules=[pack])
    with stream_car.open(tmp_path / "data") as car:
        with car.directory.rebuild() as rebuild:
            rebuild.switch()
        assert [frontier.scope for frontier in car.frontier("topic=Tea")] == ["topic=Tea"]
    with stream_car.open(tmp_path / "data", rules=[pack]) as car:
        assert car.directory.generation != generation


def test_a_folder_without_documents_takes_the_rules_it_is_opened_with(tmp_path: Path) -> None:
    with stream_car.open(tmp_path, rules=["legal"]):
        pass
    with stream_car.open(tmp_path, rules=["facts"]) as car:
        assert car.publish([FACT]).receipts[0].outcome == "accepted"
    with pytest.raises(InvalidRequest, match="built with different rules"):
        stream_car.open(tmp_path, rules=["legal"])


def test_what_the_old_rules_rejected_is_examined_again(tmp_path: Path) -> None:
    with stream_car.open(tmp_path, rules=["legal"]) as car:
        assert car.publish([FACT]).receipts[0].code == "type_unknown"
        with car.directory.rebuild(["facts"]) as rebuild:
            [difference] = finish(rebuild).differences()
            rebuild.switch()
        assert (difference.id, difference.before, difference.after) == ("f1", "unknown", "in_force")
        assert car.rejected() == ()
        assert car.resolve(["f1"])[0].status == "in_force"


def test_changes_of_the_new_generation_are_numbered_from_1(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish(STATEMENTS)
        with car.directory.rebuild(ruleset=OTHER_RULESET) as rebuild:
            rebuild.switch()
        positions = [Position.parse(change.position) for change in car.changes()]

        assert [position.number for position in positions] == list(range(1, len(positions) + 1))
        assert {position.generation for position in positions} == {car.directory.generation}


def test_what_a_killed_rebuild_left_behind_is_removed(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish(STATEMENTS)
        first = answers(car)
    (tmp_path / "built" / "2" / "index").mkdir(parents=True)
    (tmp_path / "generation.json.new").write_text("{")
    with engine(tmp_path) as car:
        assert answers(car) == first
        assert [path.name for path in (tmp_path / "built").iterdir()] == ["1"]


@pytest.mark.parametrize("content", ["{", '{"number": 2}', None])
def test_the_log_decides_which_rules_it_was_built_with(tmp_path: Path, content: str | None) -> None:
    with engine(tmp_path) as car:
        car.publish(STATEMENTS)
        expected = answers(car)
    copy = tmp_path / "generation.json"
    original = copy.read_bytes()
    if content is None:
        copy.unlink()
    else:
        copy.write_text(content)
    with engine(tmp_path, ruleset=None) as car:
        assert answers(car) == expected
    assert copy.read_bytes() == original


def test_a_folder_of_an_older_release_gets_its_rules_from_the_file_once(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish(STATEMENTS)
        expected = answers(car)
    change(tmp_path / "documents.sqlite", "DROP TABLE rules")
    change(tmp_path / "documents.sqlite", "DELETE FROM about WHERE name = 'rules'")
    with engine(tmp_path, ruleset=None) as car:
        assert answers(car) == expected
    (tmp_path / "generation.json").unlink()
    with engine(tmp_path, ruleset=None) as car:
        assert answers(car) == expected


def test_a_folder_whose_rules_are_lost_does_not_open_with_others(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish(STATEMENTS)
        expected = answers(car)
    change(tmp_path / "documents.sqlite", "DROP TABLE rules")
    with pytest.raises(Halted, match=r"The rules in documents\.sqlite are missing"):
        engine(tmp_path, ruleset=None)
    change(tmp_path / "documents.sqlite", "DELETE FROM about WHERE name = 'rules'")
    (tmp_path / "generation.json").unlink()
    with pytest.raises(InvalidRequest, match=r"are not known\. Give them with --rules") as caught:
        engine(tmp_path, ruleset=None)
    assert caught.value.code == "rules"
    with engine(tmp_path) as car:
        assert answers(car) == expected


@pytest.mark.parametrize(
    "alteration",
    [
        "UPDATE rules SET value = replace(value, 'denial', 'claim')",
        "UPDATE rules SET value = CAST(replace(value, 'denial', 'claim') AS BLOB)",
        "UPDATE rules SET next_offset = next_offset + 1",
        "UPDATE rules SET number = 2 WHERE number = 1",
        "UPDATE rules SET hash = zeroblob(32)",
        "DELETE FROM rules WHERE number = 1",
    ],
)
def test_rules_that_were_altered_in_the_log_are_never_taken(tmp_path: Path, alteration: str) -> None:
    with engine(tmp_path) as car:
        car.publish(STATEMENTS)
        with car.directory.rebuild(ruleset=OTHER_RULESET) as rebuild:
            finish(rebuild).switch()
    change(tmp_path / "documents.sqlite", alteration)
    with pytest.raises(Halted, match=r"The rules in documents\.sqlite") as caught:
        engine(tmp_path, ruleset=None)
    assert caught.value.code == "damaged"


def test_a_folder_without_its_log_does_not_open_as_if_it_were_new(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish(STATEMENTS)
    (tmp_path / "documents.sqlite").unlink()
    with pytest.raises(Halted, match=r"documents\.sqlite is missing.*Restore a backup") as caught:
        engine(tmp_path)
    assert caught.value.code == "lost_history"
    assert not (tmp_path / "documents.sqlite").exists()


def test_the_generation_file_is_readable_by_people(tmp_path: Path) -> None:
    with stream_car.open(tmp_path, rules=["facts"]):
        pass
    content = msgspec.json.decode((tmp_path / "generation.json").read_bytes(), type=dict[str, object])

    assert (content["packs"], content["future"], content["number"]) == (["facts"], "wait", 1)

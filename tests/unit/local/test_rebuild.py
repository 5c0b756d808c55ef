"""Other rules are built beside the old ones and switched to at once; a folder remembers what it goes by."""

from pathlib import Path

import msgspec
import pytest

import stream_car
from stream_car import Engine, Halted, InvalidRequest
from stream_car.local.rebuild import Rebuild
from stream_car.queries.answers import Difference, Step
from stream_car.rule_packs import load_sent
from tests.support.engines import OTHER_RULESET, RULESET, built, document, engine
from tests.support.rule_packs import GOOD, written
from tests.unit.local.test_engine import SAID, answers

FACT = {"id": "f1", "type": "fact", "time": "2024-01-01T00:00:00Z", "scope": {"subject": "tea"}}


def finish(next_one: Rebuild) -> Rebuild:
    while next_one.step(7):
        pass
    return next_one


def test_a_rebuilt_folder_answers_as_one_that_had_these_rules_all_along(tmp_path: Path) -> None:
    with engine(tmp_path / "always", ruleset=OTHER_RULESET) as here:
        here.publish([*SAID, b"{"])
        expected = answers(here)
    with engine(tmp_path / "changed") as here:
        here.publish([*SAID, b"{"])
        before = answers(here)
        with here.rebuild(ruleset=OTHER_RULESET) as next_one:
            finish(next_one).switch()
        assert answers(here) == expected
        assert here.ruleset.digest == OTHER_RULESET.digest
    with engine(tmp_path / "changed", ruleset=None) as here:
        assert answers(here) == expected
        with here.rebuild(ruleset=RULESET) as next_one:
            finish(next_one).switch()
        assert answers(here) == before


def test_rules_that_were_given_stay_as_they_are_and_packs_are_read_again(tmp_path: Path) -> None:
    with engine(tmp_path / "data", ruleset=RULESET) as here:
        here.publish(SAID)
        before = answers(here)
        with here.rebuild() as same:
            finish(same).switch()
        assert (answers(here), here.ruleset.digest) == (before, RULESET.digest)
        sent = load_sent(["medical"], {"news.toml": GOOD})
        with here.rebuild(["medical"], ruleset=sent) as other:
            finish(other).switch()
        with here.rebuild() as again:
            finish(again).switch()
        assert here.ruleset.digest == sent.digest
        assert (here.going_by.packs, here.going_by.number) == (("medical",), 4)


def test_until_the_switch_answers_are_those_of_the_old_rules_while_documents_come_in(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish(SAID)
        old = here.generation
        seen = set()
        with here.rebuild(ruleset=OTHER_RULESET) as next_one:
            for n in range(10):
                next_one.step(9)
                here.publish([document(f"late{n}", at=900, topic="sun")])
                seen.add((here.generation, *statuses(here, ["d1", "f1", "late0"])))
            assert seen == {(old, "void", "void", "active")}
            next_one.switch()
        assert (here.generation != old, here.next_offset) == (True, len(SAID) + 10)
        assert statuses(here, ["d1", "f1", "late9"]) == ["active", "active", "active"]


def statuses(here: Engine, names: list[str]) -> list[str]:
    return [one.status for one in here.resolve(names)]


def test_a_rebuild_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish(SAID)
        first = answers(here)
        with here.rebuild(ruleset=OTHER_RULESET) as next_one:
            finish(next_one)
            assert sorted(path.name for path in (tmp_path / "built").iterdir()) == ["1", "2"]
        assert [path.name for path in (tmp_path / "built").iterdir()] == ["1"]
        assert answers(here) == first


def test_the_comparison_names_every_document_that_would_stand_otherwise_and_why(tmp_path: Path) -> None:
    said = [*SAID, document("late", at=1001, topic="moon")]
    names = sorted({one.id for one in said})
    with engine(tmp_path) as here:
        here.publish(said)
        before = dict(zip(names, statuses(here, names), strict=True))
        with here.rebuild(ruleset=OTHER_RULESET, future="apply") as next_one:
            found = {one.id: one for one in finish(next_one).differences()}
            next_one.switch()
        after = dict(zip(names, statuses(here, names), strict=True))

    assert {name: (one.before, one.after) for name, one in found.items()} == {
        name: (before[name], after[name]) for name in names if before[name] != after[name]
    }
    assert found["late"] == Difference(id="late", before="pending", after="active")
    assert found["d1"] == Difference(
        id="d1", before="void", after="active", why=(Step(id="q1", rule="doubt-voids-denial", scope="topic=moon"),)
    )


def test_a_folder_goes_by_the_rules_it_was_made_with(tmp_path: Path) -> None:
    pack = written(tmp_path, GOOD)
    with stream_car.open(tmp_path / "data", domains=[pack]) as here:
        here.publish([{**FACT, "type": "claim", "scope": {"topic": "Tea"}}])
        generation = here.generation
    written(tmp_path, GOOD.replace('"lower"', '"none"'))
    with stream_car.open(tmp_path / "data") as here:
        assert here.generation == generation
        assert [one.scope for one in here.frontier("topic=tea")] == ["topic=tea"]
    with pytest.raises(InvalidRequest, match="stream-car rebuild"):
        stream_car.open(tmp_path / "data", domains=[pack])
    with stream_car.open(tmp_path / "data") as here:
        with here.rebuild() as next_one:
            next_one.switch()
        assert [one.scope for one in here.frontier("topic=Tea")] == ["topic=Tea"]
    with stream_car.open(tmp_path / "data", domains=[pack]) as here:
        assert here.generation != generation


def test_a_folder_without_documents_takes_the_rules_it_is_opened_with(tmp_path: Path) -> None:
    with stream_car.open(tmp_path, domains=["legal"]):
        pass
    with stream_car.open(tmp_path, domains=["facts"]) as here:
        assert here.publish([FACT]).receipts[0].outcome == "accepted"
    with pytest.raises(InvalidRequest, match="built with different rules"):
        stream_car.open(tmp_path, domains=["legal"])


def test_what_the_old_rules_refused_is_looked_at_again(tmp_path: Path) -> None:
    with stream_car.open(tmp_path, domains=["legal"]) as here:
        assert here.publish([FACT]).receipts[0].code == "type_unknown"
        with here.rebuild(["facts"]) as next_one:
            [difference] = finish(next_one).differences()
            next_one.switch()
        assert (difference.id, difference.before, difference.after) == ("f1", "absent", "active")
        assert here.rejected() == ()
        assert here.resolve(["f1"])[0].status == "active"


def test_changes_of_the_new_generation_are_counted_anew(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish(SAID)
        with here.rebuild(ruleset=OTHER_RULESET) as next_one:
            next_one.switch()
        told = here.changes()

        assert [one.oseq for one in told] == list(range(1, len(told) + 1))
        assert {one.position.split("/")[0] for one in told} == {here.generation}


def test_what_a_killed_rebuild_left_is_swept_away(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish(SAID)
        first = answers(here)
    (tmp_path / "built" / "2" / "index").mkdir(parents=True)
    (tmp_path / "generation.json.new").write_text("{")
    with engine(tmp_path) as here:
        assert answers(here) == first
        assert [path.name for path in (tmp_path / "built").iterdir()] == ["1"]


def test_a_memory_that_cannot_be_read_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish(SAID)
    (tmp_path / "generation.json").write_text("{")
    with pytest.raises(Halted, match="restore it from a backup, or remove it"):
        engine(tmp_path)


def test_a_folder_that_lost_its_memory_is_built_with_the_rules_it_is_given(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish(SAID)
        first = answers(here)
        with here.rebuild(ruleset=RULESET) as next_one:
            next_one.switch()
    (tmp_path / "generation.json").unlink()
    with engine(tmp_path) as here:
        assert answers(here) == first
        assert built(tmp_path).is_dir()


def test_the_memory_is_readable_by_people(tmp_path: Path) -> None:
    with stream_car.open(tmp_path, domains=["facts"]):
        pass
    told = msgspec.json.decode((tmp_path / "generation.json").read_bytes(), type=dict[str, object])

    assert (told["packs"], told["future"], told["number"]) == (["facts"], "wait", 1)

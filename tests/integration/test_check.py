"""Audits as a caller sees them: whether a retrieved set is safe by Theorem 4, and what would repair it."""

from stream_car import Retraction
from stream_car.core import definitions
from tests.integration.test_queries import crowd, engine
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.either_service import Car
from tests.support.engines import RULESET, document

pytestmark = on_both


def repaired_holds(here: Car, retrieved: list[str], question: str | None = None) -> bool:
    return here.check(here.check(retrieved, question=question).repaired, question=question).holds


CHECKED = [
    document("c", at=1, topic="moon"),
    document("d", "denial", at=2, topic="moon"),
    document("q", "doubt", at=3, topic="moon"),
    document("other", at=1, topic="sun", text="the moon too"),
    document("gone", at=1, topic="sun"),
    document("later", at=9001, topic="sun"),
    document("lost", at=1, superseded_by=("nobody",)),
]


def test_a_set_that_ignores_a_superseder_is_told_what_to_add() -> None:
    with engine() as here:
        here.publish(CHECKED)
        audit = here.check(["c", "other"])

        assert not audit.holds
        found = {(one.condition, one.id, one.add) for one in audit.violations}
        assert found == {("ignored_superseder", "c", ("q",)), ("frontier_inclusion", "c", ("q",))}
        assert [(step.id, step.rule) for step in audit.violations[0].path] == [
            ("d", "denial-voids-claim"), ("q", "doubt-voids-denial"),
        ]  # fmt: skip
        assert set(audit.repaired) == {"q", "other"}
        assert repaired_holds(here, ["c", "other"])


def test_a_superseder_that_is_superseded_itself_meets_only_one_condition() -> None:
    with engine() as here:
        here.publish(CHECKED)
        audit = here.check(["c", "d"])

        assert [(one.condition, one.id, one.add) for one in audit.violations if one.condition[0] == "f"] == [
            ("frontier_inclusion", "c", ("q",))
        ]
        assert [one.id for one in audit.violations if one.condition == "ignored_superseder"] == ["d"]
        assert here.check(["c", "d", "q"]).holds
        assert here.check(["q"]).holds


@in_the_gate
def test_with_a_question_its_anchors_are_judged() -> None:
    with engine() as here:
        here.publish(CHECKED)

        assert here.check(["other"]).holds
        audit = here.check(["other"], question="moon")
        assert [(one.condition, one.add) for one in audit.violations] == [("frontier_inclusion", ("q",))]
        assert repaired_holds(here, ["other"], question="moon")


def test_a_set_with_documents_that_nobody_may_rely_on_does_not_hold() -> None:
    with engine() as here:
        here.publish([*CHECKED, Retraction(id="gone")])
        audit = here.check(["q", "never", "gone", "later", "lost"])

        assert not audit.holds
        assert (audit.unknown, audit.retracted, audit.pending) == (("never",), ("gone",), ("later",))
        assert (audit.stranded, audit.violations) == (("lost",), ())
        assert audit.repaired == ("q",)
        for one in ("never", "gone", "later", "lost"):
            assert not here.check(["q", one]).holds


@in_the_gate
def test_an_audit_agrees_with_theorem_4_for_every_set_of_five() -> None:
    corpus = {d.id: d for d in CHECKED if d.id in ("c", "d", "q", "other")}
    corpus["e"] = document("e", at=4, supersedes=("other",))
    above = definitions.superseders(corpus, RULESET)
    with engine() as here:
        here.publish(corpus.values())
        every = list(corpus)
        for bits in range(1, 1 << len(every)):
            chosen = [name for at, name in enumerate(every) if bits >> at & 1]
            lacking = definitions.frontier_inclusion(chosen, chosen, above)
            ignored = definitions.ignored_superseders(chosen, above)
            audit = here.check(chosen)

            assert audit.holds == (not lacking and not ignored), chosen
            assert {n for v in audit.violations if v.condition == "frontier_inclusion" for n in v.add} == lacking
            assert {v.id for v in audit.violations if v.condition == "ignored_superseder"} == ignored
            assert here.check(audit.repaired).holds


@only_embedded("over a network the description of the service refuses it")
def test_nothing_is_a_set_that_holds() -> None:
    with engine() as here:
        here.publish(CHECKED)

        assert here.check([]).holds


@in_the_gate
def test_an_audit_sees_through_closures_of_thousands() -> None:
    """In the set is one of the 2,500 that supersede its claim, somewhere in the middle."""
    with engine() as here:
        here.publish([document("c", at=0, topic="moon"), *crowd(2500)])

        assert "ignored_superseder" not in {one.condition for one in here.check(["c", "d1250"]).violations}
        assert {one.condition for one in here.check(["c"]).violations} == {"ignored_superseder", "frontier_inclusion"}
        assert len(here.check(["c"]).repaired) == 2500


@only_embedded("a service takes a thousand ids at most")
def test_a_set_of_very_many_that_lacks_some_does_not_hold() -> None:
    """More controlling documents than a walk names: the set has its latest ones, and is not whole."""
    with engine() as here:
        here.publish([document("c", at=0, topic="moon", text="comet"), *crowd(2500)])
        latest = [f"d{n}" for n in range(2499, 999, -1)]
        audit = here.check(latest, question="comet")

        assert not audit.holds
        assert {name for one in audit.violations for name in one.add} == {f"d{n}" for n in range(1000)}
        assert here.check(audit.repaired, question="comet").holds

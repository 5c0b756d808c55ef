"""Audits as a caller sees them: whether a retrieved set is safe by Theorem 4, and what would repair it."""

import pytest

from stream_car import Audit, Retraction
from stream_car.core import definitions
from stream_car.queries import queries
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.either_service import Car
from tests.support.engines import RULESET, document
from tests.support.question_sets import crowd, engine

pytestmark = on_both


def repaired_set_holds(car: Car, retrieved: list[str], question: str | None = None) -> bool:
    return car.check(car.check(retrieved, question=question).repaired, question=question).holds


def conditions(audit: Audit) -> set[str]:
    return {violation.condition for violation in audit.violations}


CHECKED = [
    document("c", at=1, topic="moon"),
    document("d", "denial", at=2, topic="moon"),
    document("q", "doubt", at=3, topic="moon"),
    document("other", at=1, topic="sun", text="the moon too"),
    document("gone", at=1, topic="sun"),
    document("later", at=9001, topic="sun"),
    document("lost", at=1, superseded_by=("nobody",)),
]


def test_a_set_that_ignores_a_superseder_is_reported_with_what_to_add() -> None:
    with engine() as car:
        car.publish(CHECKED)
        audit = car.check(["c", "other"])

        assert not audit.holds
        assert {(violation.condition, violation.id, violation.add) for violation in audit.violations} == {
            ("ignored_superseder", "c", ("q",)),
            ("frontier_inclusion", "c", ("q",)),
        }
        assert [(step.id, step.rule) for step in audit.violations[0].path] == [
            ("d", "denial-voids-claim"), ("q", "doubt-voids-denial"),
        ]  # fmt: skip
        assert set(audit.repaired) == {"q", "other"}
        assert repaired_set_holds(car, ["c", "other"])


def test_a_superseder_that_is_superseded_itself_meets_only_one_condition() -> None:
    with engine() as car:
        car.publish(CHECKED)
        audit = car.check(["c", "d"])

        [inclusion, ignored] = sorted(audit.violations, key=lambda violation: violation.condition)
        assert (inclusion.condition, inclusion.id, inclusion.add) == ("frontier_inclusion", "c", ("q",))
        assert (ignored.condition, ignored.id) == ("ignored_superseder", "d")
        assert car.check(["c", "d", "q"]).holds
        assert car.check(["q"]).holds


@in_the_gate
def test_with_a_question_its_anchors_are_judged() -> None:
    with engine() as car:
        car.publish(CHECKED)

        assert car.check(["other"]).holds
        audit = car.check(["other"], question="moon")
        assert [(violation.condition, violation.add) for violation in audit.violations] == [
            ("frontier_inclusion", ("q",))
        ]
        assert repaired_set_holds(car, ["other"], question="moon")


def test_a_set_with_documents_that_are_not_in_the_corpus_does_not_hold() -> None:
    with engine() as car:
        car.publish([*CHECKED, Retraction(id="gone")])
        audit = car.check(["q", "never", "gone", "later", "lost"])

        assert not audit.holds
        assert (audit.unknown, audit.retracted, audit.pending) == (("never",), ("gone",), ("later",))
        assert (audit.stranded, audit.violations) == (("lost",), ())
        assert audit.repaired == ("q",)
        for name in ("never", "gone", "later", "lost"):
            assert not car.check(["q", name]).holds


@in_the_gate
def test_an_audit_agrees_with_theorem_4_for_every_set_of_five() -> None:
    corpus = {d.id: d for d in CHECKED if d.id in ("c", "d", "q", "other")}
    corpus["e"] = document("e", at=4, supersedes=("other",))
    above = definitions.superseders(corpus, RULESET)
    with engine() as car:
        car.publish(corpus.values())
        names = list(corpus)
        for bits in range(1, 1 << len(names)):
            chosen = [name for place, name in enumerate(names) if bits >> place & 1]
            missing = definitions.frontier_inclusion(chosen, chosen, above)
            ignored = definitions.ignored_superseders(chosen, above)
            audit = car.check(chosen)

            assert audit.holds == (not missing and not ignored), chosen
            assert {n for v in audit.violations if v.condition == "frontier_inclusion" for n in v.add} == missing
            assert {v.id for v in audit.violations if v.condition == "ignored_superseder"} == ignored
            assert car.check(audit.repaired).holds


@only_embedded("over a network the description of the service rejects it")
def test_an_empty_set_holds() -> None:
    with engine() as car:
        car.publish(CHECKED)

        assert car.check([]).holds


@in_the_gate
def test_an_audit_sees_through_closures_of_thousands() -> None:
    """The set has one of the 2,500 documents that supersede its claim, somewhere in the middle."""
    with engine() as car:
        car.publish([document("c", at=0, topic="moon"), *crowd(2500)])

        assert conditions(car.check(["c", "d1250"])) == {"frontier_inclusion"}
        assert conditions(car.check(["c"])) == {"ignored_superseder", "frontier_inclusion"}
        assert len(car.check(["c"]).repaired) == 2500


@only_embedded("a service takes a thousand ids at most")
def test_a_very_large_set_that_misses_some_does_not_hold() -> None:
    """There are more controlling documents than a walk names. The set has only the latest ones."""
    with engine() as car:
        car.publish([document("c", at=0, topic="moon", text="comet"), *crowd(2500)])
        latest = [f"d{n}" for n in range(2499, 999, -1)]
        audit = car.check(latest, question="comet")

        assert not audit.holds
        assert {name for violation in audit.violations for name in violation.add} == {f"d{n}" for n in range(1000)}
        assert car.check(audit.repaired, question="comet").holds


@only_embedded("the limit is set in this process")
def test_a_superseder_counts_in_a_scope_that_is_too_large_to_name_and_its_members_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queries, "CLOSURES_MAX", 0)
    with engine() as car:
        car.publish(document("claim", topic="moon"))
        car.publish(crowd(4000))
        car.publish(document("late", at=2, topic="moon"))
        alone, in_part = car.check(["claim"]), car.check(["claim", "d7"])
        nothing_after = car.check(["claim", "late"])

    conditions = [{violation.condition for violation in audit.violations} for audit in (alone, in_part, nothing_after)]
    assert [("ignored_superseder" in names, "frontier_inclusion" in names) for names in conditions] == [
        (True, True),
        (False, True),
        (True, True),
    ]
    assert alone.certificate is not None
    assert alone.certificate.reasons == ("limit",)
    assert alone.certificate.lookups < 40  # pages of 256 members or so; all of them would be more

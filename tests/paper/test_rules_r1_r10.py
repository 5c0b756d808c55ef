"""The ten rules of the paper's Appendix A, one by one, through the shipped pack and a whole engine."""

from collections.abc import Iterable
from functools import cache
from itertools import product

import pytest

import stream_car
from stream_car import Document
from stream_car.queries.answers import Resolution

HOUR = 3_600_000_000
NOON = 19_700 * 24 * HOUR
BOTH = ("employee", "ticker")
PERSON = ("employee",)
RULES = {
    "R1": ("pre_clearance_approved", "blackout_announced", BOTH),
    "R2": ("blackout_announced", "blackout_lifted", BOTH),
    "R3": ("blackout_announced", "emergency_exception", BOTH),
    "R4": ("emergency_exception", "exception_revoked", BOTH),
    "R5": ("pre_clearance_approved", "watchlist_added", BOTH),
    "R6": ("watchlist_added", "watchlist_removed", BOTH),
    "R7": ("conflict_disclosed", "conflict_amended", PERSON),
    "R8": ("conflict_amended", "conflict_cleared", PERSON),
    "R9": ("conflict_disclosed", "conflict_cleared", PERSON),
    "R10": ("policy_acknowledged", "policy_update", ()),
}
TYPES = (
    "pre_clearance_approved", "pre_clearance_denied", "blackout_announced", "blackout_lifted", "emergency_exception",
    "exception_revoked", "watchlist_added", "watchlist_removed", "conflict_disclosed", "conflict_amended",
    "conflict_cleared", "policy_acknowledged", "policy_update",
)  # fmt: skip
every_rule = pytest.mark.parametrize("rule", RULES)


def event(name: str, kind: str, *, at: int = 0, employee: str = "E1", ticker: str = "ACME") -> Document:
    return Document(
        id=name, type=kind, time=NOON + at * HOUR, scope=({"employee": (employee,), "ticker": (ticker,)},), title=name
    )


def resolved(documents: Iterable[Document], *names: str) -> tuple[Resolution, ...]:
    with stream_car.open(domains=["compliance"]) as engine:
        published = engine.publish(documents)
        assert {receipt.outcome for receipt in published.receipts} == {"accepted"}
        return engine.resolve(names)


def led_to(one: Resolution) -> dict[str, list[str]]:
    """What controls it, and the rules that lead there."""
    return {c.document.id: [step.rule for step in c.path] for group in one.groups for c in group.controlling}


@cache
def scenario(*, at: int = 1, employee: str = "", ticker: str = "", turned: bool = False) -> dict[str, Resolution]:
    """One engine in which each rule has a pair of events of its own; the later may be about someone else."""
    documents = []
    for rule, (old, new, _) in RULES.items():
        documents.append(event(f"{rule} old", old, employee=rule, ticker=rule))
        documents.append(event(f"{rule} new", new, at=at, employee=rule + employee, ticker=rule + ticker))
    names = [document.id for document in documents]
    return dict(zip(names, resolved(documents[::-1] if turned else documents, *names), strict=True))


@every_rule
@pytest.mark.parametrize("turned", [False, True], ids=["in order", "turned"])
def test_a_later_event_voids_the_earlier_in_whichever_order_they_arrive(rule: str, turned: bool) -> None:
    found = scenario(turned=turned)
    old, new = found[f"{rule} old"], found[f"{rule} new"]

    assert (old.status, led_to(old)) == ("void", {f"{rule} new": [rule]})
    assert (new.status, led_to(new)) == ("active", {f"{rule} new": []})


@every_rule
@pytest.mark.parametrize("at", [0, -1], ids=["same time", "earlier"])
def test_an_event_of_the_same_time_or_an_earlier_one_voids_nothing(rule: str, at: int) -> None:
    found = scenario(at=at)
    old, new = found[f"{rule} old"], found[f"{rule} new"]

    assert (old.status, led_to(old)) == ("active", {f"{rule} old": []})
    assert (new.status, led_to(new)) == ("active", {f"{rule} new": []})


@every_rule
def test_an_event_of_another_employee_matters_to_policies_only(rule: str) -> None:
    found = scenario(employee=" and another")

    assert found[f"{rule} old"].status == ("void" if rule == "R10" else "active")


@every_rule
def test_an_event_on_another_ticker_matters_where_the_rule_goes_by_person_or_policy(rule: str) -> None:
    found = scenario(ticker=" and another")

    assert found[f"{rule} old"].status == ("active" if RULES[rule][2] == BOTH else "void")


def test_a_policy_update_voids_the_confirmation_of_everyone_before_it_and_of_no_one_after() -> None:
    said = [event(f"ack-{n}", "policy_acknowledged", at=n, employee=f"E{n}", ticker=f"T{n}") for n in range(6)]
    found = resolved([*said, event("update", "policy_update", at=3, employee="E9", ticker="T9")], *[d.id for d in said])

    assert [one.status for one in found] == ["void", "void", "void", "active", "active", "active"]
    assert led_to(found[0]) == {"update": ["R10"]}


def test_a_confirmation_without_any_scope_joins_the_scope_for_everyone() -> None:
    bare = Document(id="ack", type="policy_acknowledged", time=NOON, title="I have read it.")
    [found] = resolved([bare, event("update", "policy_update", at=1)], "ack")

    assert led_to(found) == {"update": ["R10"]}


def test_a_revoked_exception_does_not_bring_the_blackout_back() -> None:
    kinds = ["pre_clearance_approved", "blackout_announced", "emergency_exception", "exception_revoked"]
    found = resolved([event(str(n), kind, at=n) for n, kind in enumerate(kinds)], "0", "1", "2", "3")

    assert [one.status for one in found] == ["void", "void", "void", "active"]
    assert led_to(found[0]) == {"3": ["R1", "R3", "R4"]}


def test_a_chain_with_two_ends_leads_to_both() -> None:
    kinds = ["pre_clearance_approved", "blackout_announced", "emergency_exception", "blackout_lifted"]
    [found] = resolved([event(str(n), kind, at=n) for n, kind in enumerate(kinds)], "0")

    assert led_to(found) == {"3": ["R1", "R2"], "2": ["R1", "R3"]}


def test_no_pair_of_types_but_those_of_the_ten_rules_voids_anything() -> None:
    meant = {(old, new): rule for rule, (old, new, _) in RULES.items()}
    told: dict[tuple[str, str], str] = {}
    policies = ("policy_acknowledged", "policy_update")
    others = [kind for kind in TYPES if kind not in policies]
    for left_out in policies:  # both in one engine would meet across the pairs
        kinds = [*others, *(kind for kind in policies if kind != left_out)]
        told |= rules_met(product(kinds, kinds))
    told |= rules_met([policies]) | rules_met([policies[::-1]])

    assert told == meant


def rules_met(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The pairs whose first is void, with the rule: each pair has an employee of its own."""
    chosen = [both for both in pairs if both[0] != both[1]]
    documents = [
        event(f"{n}-{at}", kind, at=at, employee=f"E{n}")
        for n, both in enumerate(chosen)
        for at, kind in enumerate(both)
    ]
    found = resolved(documents, *(f"{n}-0" for n in range(len(chosen))))
    return {
        both: next(iter(led_to(one).values()))[0]
        for both, one in zip(chosen, found, strict=True)
        if one.status == "void"
    }

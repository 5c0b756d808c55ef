"""The ten rules of the paper's Appendix A, one by one, through the shipped pack and a whole engine."""

from collections.abc import Iterable
from functools import cache
from itertools import product

import pytest

import stream_car
from stream_car import Resolution
from stream_car.core.documents import Document

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
    with stream_car.open(rules=["compliance"]) as engine:
        published = engine.publish(documents)
        assert {receipt.outcome for receipt in published.receipts} == {"accepted"}
        return engine.resolve(names)


def controlling(resolution: Resolution) -> dict[str, list[str]]:
    """Return what controls a document, and the rules that lead there."""
    return {c.document.id: [step.rule for step in c.path] for group in resolution.groups for c in group.controlling}


def statuses(resolutions: Iterable[Resolution]) -> list[str]:
    return [resolution.status for resolution in resolutions]


@cache
def scenario(*, at: int = 1, employee: str = "", ticker: str = "", is_reversed: bool = False) -> dict[str, Resolution]:
    """Resolve, in one engine, a pair of events for each rule; the later event may be about someone else."""
    documents = []
    for rule, (old, new, _) in RULES.items():
        documents.append(event(f"{rule} old", old, employee=rule, ticker=rule))
        documents.append(event(f"{rule} new", new, at=at, employee=rule + employee, ticker=rule + ticker))
    names = [document.id for document in documents]
    return dict(zip(names, resolved(documents[::-1] if is_reversed else documents, *names), strict=True))


@every_rule
@pytest.mark.parametrize("is_reversed", [False, True], ids=["in order", "reversed"])
def test_a_later_event_voids_the_earlier_in_whichever_order_they_arrive(rule: str, is_reversed: bool) -> None:
    resolutions = scenario(is_reversed=is_reversed)
    old, new = resolutions[f"{rule} old"], resolutions[f"{rule} new"]

    assert (old.status, controlling(old)) == ("superseded", {f"{rule} new": [rule]})
    assert (new.status, controlling(new)) == ("in_force", {f"{rule} new": []})


@every_rule
@pytest.mark.parametrize("at", [0, -1], ids=["same time", "earlier"])
def test_an_event_of_the_same_time_or_an_earlier_one_voids_nothing(rule: str, at: int) -> None:
    resolutions = scenario(at=at)
    old, new = resolutions[f"{rule} old"], resolutions[f"{rule} new"]

    assert (old.status, controlling(old)) == ("in_force", {f"{rule} old": []})
    assert (new.status, controlling(new)) == ("in_force", {f"{rule} new": []})


@every_rule
def test_an_event_of_another_employee_matters_for_policies_only(rule: str) -> None:
    resolutions = scenario(employee=" and another")

    assert resolutions[f"{rule} old"].status == ("superseded" if rule == "R10" else "in_force")


@every_rule
def test_an_event_on_another_ticker_matters_if_the_rule_is_about_a_person_or_a_policy(rule: str) -> None:
    resolutions = scenario(ticker=" and another")

    assert resolutions[f"{rule} old"].status == ("in_force" if RULES[rule][2] == BOTH else "superseded")


def test_a_policy_update_voids_the_confirmation_of_everyone_before_it_and_of_no_one_after() -> None:
    confirmations = [event(f"ack-{n}", "policy_acknowledged", at=n, employee=f"E{n}", ticker=f"T{n}") for n in range(6)]
    update = event("update", "policy_update", at=3, employee="E9", ticker="T9")
    resolutions = resolved([*confirmations, update], *[document.id for document in confirmations])

    assert statuses(resolutions) == ["superseded"] * 3 + ["in_force"] * 3
    assert controlling(resolutions[0]) == {"update": ["R10"]}


def test_a_confirmation_without_any_scope_joins_the_scope_for_everyone() -> None:
    bare = Document(id="ack", type="policy_acknowledged", time=NOON, title="I have read it.")
    [resolution] = resolved([bare, event("update", "policy_update", at=1)], "ack")

    assert controlling(resolution) == {"update": ["R10"]}


def test_a_revoked_exception_does_not_bring_the_blackout_back() -> None:
    kinds = ["pre_clearance_approved", "blackout_announced", "emergency_exception", "exception_revoked"]
    resolutions = resolved([event(str(n), kind, at=n) for n, kind in enumerate(kinds)], "0", "1", "2", "3")

    assert statuses(resolutions) == ["superseded", "superseded", "superseded", "in_force"]
    assert controlling(resolutions[0]) == {"3": ["R1", "R3", "R4"]}


def test_a_chain_with_two_ends_leads_to_both() -> None:
    kinds = ["pre_clearance_approved", "blackout_announced", "emergency_exception", "blackout_lifted"]
    [resolution] = resolved([event(str(n), kind, at=n) for n, kind in enumerate(kinds)], "0")

    assert controlling(resolution) == {"3": ["R1", "R2"], "2": ["R1", "R3"]}


def test_no_pair_of_types_but_those_of_the_ten_rules_voids_anything() -> None:
    expected = {(old, new): rule for rule, (old, new, _) in RULES.items()}
    derived: dict[tuple[str, str], str] = {}
    policies = ("policy_acknowledged", "policy_update")
    others = [kind for kind in TYPES if kind not in policies]
    for left_out in policies:  # both in one engine would meet across the pairs
        kinds = [*others, *(kind for kind in policies if kind != left_out)]
        derived |= rules_that_void(product(kinds, kinds))
    derived |= rules_that_void([policies]) | rules_that_void([policies[::-1]])

    assert derived == expected


def rules_that_void(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the pairs whose first is superseded, with the rule. Each pair has an employee of its own."""
    different = [pair for pair in pairs if pair[0] != pair[1]]
    documents = [
        event(f"{n}-{at}", kind, at=at, employee=f"E{n}")
        for n, pair in enumerate(different)
        for at, kind in enumerate(pair)
    ]
    resolutions = resolved(documents, *(f"{n}-0" for n in range(len(different))))
    return {
        pair: next(iter(controlling(resolution).values()))[0]
        for pair, resolution in zip(different, resolutions, strict=True)
        if resolution.status == "superseded"
    }

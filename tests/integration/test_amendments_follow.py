"""The amendment of a policy ends when the policy is replaced, in every answer, and whatever the order of arrival."""

from itertools import permutations
from pathlib import Path

import stream_car
from tests.support.rule_packs import POLICIES, POLICIES_THAT_FOLLOW, written


def document(name: str, kind: str, year: int) -> dict[str, object]:
    return {"id": name, "type": kind, "time": f"{year}-01-01", "scope": {"policy": "leave"}, "title": f"Leave {year}"}


DOCUMENTS = [
    document("policy-2022", "policy", 2022),
    document("amendment-2023", "policy_amended", 2023),
    document("policy-2025", "policy", 2025),
    document("amendment-2026", "policy_amended", 2026),
]


def test_it_ends_with_what_it_amends_and_says_so(tmp_path: Path) -> None:
    pack = written(tmp_path, POLICIES_THAT_FOLLOW)
    for order in permutations(DOCUMENTS):
        with stream_car.open(rules=pack) as car:
            car.publish([*order, order[0]])
            [ended, kept] = car.resolve(["amendment-2023", "amendment-2026"])
            explanation = car.explain("amendment-2023")
            [frontier] = car.frontier({"policy": "leave"})

        assert (ended.status, ended.outcome) == ("superseded", "base_ended")
        assert ended.outcome_text == "ended with what it amended, by Leave 2025"
        assert (explanation.status, explanation.outcome) == ("superseded", "base_ended")
        assert kept.status == "in_force"
        assert sorted(d.id for d in frontier.in_force) == ["amendment-2026", "policy-2025"]


def test_a_correction_or_retraction_of_what_ended_the_base_brings_the_amendment_back(tmp_path: Path) -> None:
    with stream_car.open(rules=written(tmp_path, POLICIES_THAT_FOLLOW)) as car:
        car.publish(DOCUMENTS[:3])
        car.publish([{**document("policy-2025", "policy", 2021), "revision": 2}])
        [corrected] = car.resolve(["amendment-2023"])
        car.publish([{**document("policy-2025", "policy", 2024), "revision": 3}])
        [again] = car.resolve(["amendment-2023"])
        car.publish([{"id": "policy-2025", "retracted": True}])
        [retracted] = car.resolve(["amendment-2023"])

    assert [corrected.status, again.status, retracted.status] == ["in_force", "superseded", "in_force"]


def test_events_tell_that_it_ended_with_its_base(tmp_path: Path) -> None:
    with stream_car.open(rules=written(tmp_path, POLICIES_THAT_FOLLOW)) as car:
        car.publish(DOCUMENTS[:2])
        with car.subscribe(view="document") as before:
            cursor = [event.cursor for event in before][-1]
        car.publish([DOCUMENTS[2]])
        with car.subscribe(view="document", after=cursor) as events:
            outcomes = {event.id: event.outcome for event in events if isinstance(event, stream_car.DocumentChange)}

    assert outcomes["amendment-2023"] == "base_ended"


def test_changes_of_scopes_tell_what_became_of_each_member_by_them(tmp_path: Path) -> None:
    with stream_car.open(rules=written(tmp_path, POLICIES_THAT_FOLLOW)) as car:
        car.publish(DOCUMENTS[:2])
        with car.subscribe(view="scope") as before:
            cursor = [event.cursor for event in before][-1]
        car.publish([DOCUMENTS[2]])
        with car.subscribe(view="scope", after=cursor) as events:
            received = [event.change for event in events if isinstance(event, stream_car.ScopeChange)]
        listed = [change for change in car.changes() if change.cause.id == "policy-2025"]
        left = {member.id: member for change in listed for member in change.left}

    assert received == listed
    assert left["amendment-2023"].outcome_text == "ended with what it amended, by Leave 2025"
    assert left["policy-2022"].outcome_text == "replaced by Leave 2025"


def test_without_follows_it_stays_as_before(tmp_path: Path) -> None:
    with stream_car.open(rules=written(tmp_path, POLICIES)) as car:
        car.publish(DOCUMENTS)
        [stays] = car.resolve(["amendment-2023"])

    assert stays.status == "in_force"

"""The memory of agents: values of keys, as programs add, recall, correct and forget them."""

import asyncio
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

import stream_car
from stream_car.errors import InvalidRequest
from stream_car.memory import Memory, MemoryAsync
from tests.support.http_service import serving

START = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "staging::database"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(user_id="ada") as opened:
        yield opened


def day(number: int) -> datetime:
    return START + timedelta(days=number)


def texts(memory: Memory, query: str, **arguments: object) -> list[str]:
    return [item["memory"] for item in memory.search(query, **arguments)["results"]]  # type: ignore[arg-type]


def event(memory: Memory, text: str, key: str | None = KEY, **arguments: object) -> tuple[str, str, int]:
    [added] = memory.add(text, key=key, **arguments)["results"]  # type: ignore[arg-type]
    return added["event"], added["reason"], len(added["retired"])


def test_only_the_latest_value_of_a_key_is_recalled_and_the_others_on_request(memory: Memory) -> None:
    assert event(memory, "The staging database is db-3") == ("ADD", "", 0)
    assert event(memory, "The staging database is db-7") == ("SUPERSEDE", "", 1)
    memory.add("The cat sleeps", key="cat::state")

    assert texts(memory, "staging database") == ["The staging database is db-7"]
    [item] = memory.search("staging database", include_superseded=True)["results"]
    assert [former["memory"] for former in item["superseded"]] == ["The staging database is db-3"]
    assert [(entry["event"], entry["new_memory"]) for entry in memory.history(KEY)] == [
        ("ADD", "The staging database is db-3"),
        ("UPDATE", "The staging database is db-7"),
    ]


def test_the_same_value_in_another_spelling_reinforces(memory: Memory) -> None:
    memory.add("It is db-3", key=KEY, object="db-3")

    assert event(memory, "As I wrote, DB-3", object=" DB-3 ") == ("REINFORCE", "", 0)
    assert event(memory, "It is db-3", "STAGING::Database", object="db-3") == ("REINFORCE", "", 0)
    assert len(memory.get_all()["results"]) == len(memory.search("db-3")["results"]) == 1
    assert event(memory, "I like tea", key=None) == ("ADD", "", 0)
    assert event(memory, "I  like Tea", key=None) == ("REINFORCE", "", 0)


def test_an_older_value_that_arrives_late_displaces_nothing(memory: Memory) -> None:
    memory.add("db-7", key=KEY, valid_from=day(7))

    assert event(memory, "db-3", valid_from=day(3)) == ("ADD", "older", 0)
    current = memory.current(KEY)
    then = memory.as_of(KEY, day(4))
    assert current is not None and current["object"] == "db-7"
    assert then is not None and then["object"] == "db-3"
    assert memory.as_of(KEY, day(1)) is None


def test_a_retired_value_returns_only_if_it_is_reaffirmed_or_reverted_to(memory: Memory) -> None:
    memory.add("db-3", key=KEY)
    memory.add("db-7", key=KEY)

    assert event(memory, "db-3") == ("TENTATIVE", "echo", 0)
    assert texts(memory, "db-7 db-3") == ["db-7"]
    assert event(memory, "db-3", reaffirm=True) == ("SUPERSEDE", "", 1)
    assert memory.revert(KEY)["object"] == "db-7"
    current = memory.current(KEY)
    assert current is not None and current["object"] == "db-7"


def test_nothing_can_be_reverted_where_nothing_was_replaced(memory: Memory) -> None:
    memory.add("db-3", key=KEY)

    with pytest.raises(InvalidRequest, match="no earlier value"):
        memory.revert(KEY)


def test_a_tentative_value_holds_once_it_is_confirmed(memory: Memory) -> None:
    memory.add("db-3", key=KEY)
    [proposed] = memory.add("db-7", key=KEY, validity="tentative")["results"]

    assert proposed["event"] == "TENTATIVE"
    assert texts(memory, "db-7 db-3") == ["db-3"]
    assert [item["object"] for item in memory.tentative(KEY)] == ["db-7"]
    assert memory.confirm(proposed["id"])["event"] == "SUPERSEDE"
    assert (texts(memory, "db-7 db-3"), memory.tentative(KEY)) == (["db-7"], [])
    with pytest.raises(InvalidRequest, match="No tentative memory"):
        memory.confirm(proposed["id"])


def test_a_confirmed_value_settles_what_was_pending(memory: Memory) -> None:
    memory.add("db-3", key=KEY)
    memory.add("db-7", key=KEY, validity="tentative")

    assert event(memory, "db-3") == ("REINFORCE", "", 0)
    assert memory.tentative(KEY) == []


def test_a_protected_value_needs_an_explicit_word(memory: Memory) -> None:
    memory.add("Ada is allergic to nuts", key="ada::allergy", protected=True)

    assert event(memory, "Ada is allergic to milk", "ada::allergy") == ("TENTATIVE", "protected", 0)
    assert texts(memory, "allergic") == ["Ada is allergic to nuts"]
    assert event(memory, "Ada eats all", "ada::allergy", replace_protected=True) == ("SUPERSEDE", "", 1)


def test_whoever_publishes_beside_the_memory_cannot_void_a_protected_value() -> None:
    with stream_car.open(rules=["memory"]) as engine:
        memory = Memory(engine=engine, user_id="ada")
        [added] = memory.add("nuts", key="ada::allergy", protected=True)["results"]
        document = engine.get([added["id"]])[0].documents[0].document
        scope = {key: values[0] for key, values in document.scope[0].items()}
        engine.publish(
            {"id": "x", "type": "memory", "time": "2099-01-01", "scope": scope, "text": "none", "value": "none"}
            | {"time": datetime.now(UTC)}
        )

        assert {item["id"] for item in memory.get_all()["results"]} == {added["id"], "x"}


def test_what_has_expired_is_not_recalled(memory: Memory) -> None:
    memory.add("The door code is 1234", key="door::code", valid_from=day(1), expires=day(5))
    memory.add("The door code is 9999", key="garage::code", valid_from=day(1))

    assert texts(memory, "door code") == ["The door code is 9999"]
    assert sorted(texts(memory, "door code", as_of=day(4))) == ["The door code is 1234", "The door code is 9999"]
    assert memory.current("door::code") is None


def test_memories_of_different_owners_never_meet(memory: Memory) -> None:
    for n in range(120):
        memory.add(f"The code of door {n} is secret", key=f"door {n}::code", user_id="bob")
    memory.add("The code is 5", key="door 1::code", agent_id="helper")
    memory.add("The code is 6", key="door 1::code")

    assert texts(memory, "code of the door") == ["The code is 6"]
    assert texts(memory, "code of the door", agent_id="helper") == ["The code is 5"]
    assert memory.search("code", user_id="eve")["results"] == []
    assert len(memory.get_all(user_id="bob", limit=500)["results"]) == 120


def test_what_was_forgotten_returns_by_no_call(memory: Memory) -> None:
    memory.add("db-3", key=KEY)
    [second] = memory.add("db-7", key=KEY)["results"]
    memory.add("db-9", key=KEY, validity="tentative")
    memory.add("tea", key="ada::drink")

    assert memory.forget(KEY)["count"] == 3
    assert (memory.current(KEY), memory.history(KEY), memory.tentative(KEY)) == (None, [], [])
    assert memory.get(second["id"]) is None
    assert texts(memory, "db-3 db-7 db-9 tea") == ["tea"]
    assert event(memory, "db-3", valid_from=day(1)) == ("ADD", "", 0)  # of a time before
    assert (memory.current(KEY), memory.history(KEY)) == (None, [])
    assert event(memory, "db-3") == ("ADD", "", 0)
    assert texts(memory, "db-3") == ["db-3"]


def test_deleting_the_value_in_force_brings_no_earlier_one_back(memory: Memory) -> None:
    memory.add("db-3", key=KEY)
    [second] = memory.add("db-7", key=KEY)["results"]

    assert "log" in memory.delete(second["id"])["message"]
    assert memory.get_all()["results"] == []
    with pytest.raises(InvalidRequest, match="No memory"):
        memory.delete(second["id"])


def test_forgetting_an_owner_spares_the_others(memory: Memory) -> None:
    memory.add("tea", key="ada::drink")
    memory.add("milk", key="bob::drink", user_id="bob")
    memory.add("milk and honey", key="bob::drink", user_id="bob")

    assert memory.forget(user_id="bob")["count"] == 2
    assert (texts(memory, "tea milk"), texts(memory, "milk", user_id="bob")) == (["tea"], [])
    assert memory.reset()["count"] == 1
    assert memory.get_all()["results"] == []


def test_forgetting_an_owner_takes_no_time(memory: Memory) -> None:
    memory.add("tea", key="ada::drink")

    with pytest.raises(InvalidRequest, match="needs a `key`"):
        memory.forget(user_id="ada", before="2001-01-01")
    assert texts(memory, "tea") == ["tea"]


def test_retiring_keeps_the_history(memory: Memory) -> None:
    memory.add("db-3", key=KEY)

    assert memory.retire(KEY, "staging is closed")["count"] == 1
    assert memory.current(KEY) is None
    assert [entry["event"] for entry in memory.history(KEY)] == ["ADD", "DELETE"]
    assert event(memory, "db-4") == ("ADD", "", 0)


def test_updating_by_id_supersedes(memory: Memory) -> None:
    [first] = memory.add("I drink tea")["results"]
    memory.update(first["id"], "I drink coffee")

    assert texts(memory, "drink") == ["I drink coffee"]
    assert [entry["new_memory"] for entry in memory.history(first["id"])] == ["I drink tea", "I drink coffee"]


def test_recall_packs_the_best_sentences_into_a_budget(memory: Memory) -> None:
    for n in range(5):
        memory.add(f"Port {n} of the server is {8000 + n}, as the plan of the network shows", key=f"port {n}::number")

    full = memory.recall("port of the server", 5)
    cost = -(-len(full[0]["memory"]) // 4)
    assert len(full) == 5
    assert memory.recall("port of the server", 5, budget_tokens=2 * cost + 1) == full[:2]
    assert memory.recall("port of the server", 5, budget_tokens=1) == []


def test_messages_of_a_conversation_are_remembered_as_the_user_wrote_them(memory: Memory) -> None:
    added = memory.add(
        [
            {"role": "user", "content": "I live in Kiel"},
            {"role": "assistant", "content": "Noted!"},
            {"role": "user", "content": "I work in Rostock"},
        ],
        metadata={"chat": 7},
    )

    assert [item["memory"] for item in added["results"]] == ["I live in Kiel", "I work in Rostock"]
    assert memory.search("Kiel")["results"][0]["metadata"] == {"chat": 7}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"messages": " "}, "messages"),
        ({"messages": "a" * 10**6}, "messages"),
        ({"messages": 5}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages"),
        ({"messages": "x", "key": "a\x07b::c"}, "key"),
        ({"messages": "x", "key": ""}, "key"),
        ({"messages": "x", "key": "a::"}, "key"),
        ({"messages": "x", "key": "k" * 501}, "key"),
        ({"messages": "x", "object": "y"}, "key"),
        ({"messages": "x", "user_id": "*"}, "user_id"),
        ({"messages": "x", "user_id": ""}, "user_id"),
        ({"messages": "x", "validity": "maybe"}, "validity"),
        ({"messages": "x", "valid_from": "yesterday"}, "valid_from"),
        ({"messages": "x", "expires": "2020-01-01"}, "expires"),
    ],
)
def test_bad_input_raises_with_the_name_of_the_argument_and_writes_nothing(
    memory: Memory, arguments: dict[str, object], code: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        memory.add(**arguments)  # type: ignore[arg-type]

    assert caught.value.code == code
    assert memory.get_all(include_tentative=True)["results"] == []


def test_a_budget_of_nothing_is_an_error(memory: Memory) -> None:
    with pytest.raises(InvalidRequest, match="budget_tokens"):
        memory.recall("anything", budget_tokens=0)


def test_a_memory_survives_being_closed_and_needs_its_rules(tmp_path: Path) -> None:
    with Memory(tmp_path / "agent.car", user_id="ada") as first:
        first.add("db-7", key=KEY)
    with Memory(tmp_path / "agent.car", user_id="ada") as again:
        assert texts(again, "db-7") == ["db-7"]
    stream_car.open(tmp_path / "other.car", rules=["facts"]).close()
    with pytest.raises(InvalidRequest, match="stream-car rebuild"):
        Memory(tmp_path / "other.car")


DATA = Path(__file__).parents[3] / "shared" / "data" / "memory"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data is not at ../shared/data")


def lines(path: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (DATA / path).read_text().splitlines()]


def end_state(memory: Memory, key: str) -> dict[str, object]:
    history = memory.history(key)
    current = memory.current(key)
    return {
        "status": "active" if current is not None else "none",
        "value": current["object"] if current is not None else None,
        "pending": sorted(item["object"] for item in memory.tentative(key)),
        "retired": {
            entry["new_memory"]
            for entry in history
            if entry["event"] in ("ADD", "UPDATE", "REINFORCE")
            and entry["ended_at"]
            and (current is None or entry["new_memory"] != current["object"])
        },
    }


def carry_out(memory: Memory, operation: dict[str, object], number: int) -> None:
    key, value, at = str(operation["target"]), str(operation["new"]), START + timedelta(minutes=number)
    if operation["op"] == "forget":
        memory.forget(key, before=at)
    elif operation["validity"] == "tentative":
        memory.add(value, key=key, valid_from=at, validity="tentative")
    elif operation["validity"] == "retracted":
        memory.forget(key, before=at)
    else:
        memory.add(value, key=key, valid_from=at, reaffirm=True)


@needs_data
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_operations_of_dialogues_lead_to_their_end_states_in_any_order(is_shuffled: bool) -> None:
    dice = random.Random(5)
    scenarios = lines("memops/scenarios.jsonl")[:: 5 if not is_shuffled else 10]
    with stream_car.open(rules=["memory"]) as engine:
        for scenario in scenarios:
            memory = Memory(engine=engine, user_id=str(scenario["id"]))
            operations = list(enumerate(cast("list[dict[str, object]]", scenario["operations"]), 1))
            if is_shuffled:
                dice.shuffle(operations)
            for number, operation in operations:
                carry_out(memory, operation, number)
            for key, wanted in cast("dict[str, dict[str, object]]", scenario["end_state"]).items():
                state = end_state(memory, key)
                assert state["value"] == (wanted["value"] if wanted["status"] == "active" else None), (
                    scenario["id"],
                    key,
                )
                assert state["pending"] == sorted(cast("list[str]", wanted["pending"])), (scenario["id"], key)
                if wanted["status"] == "forgotten":
                    assert memory.history(key) == []


@needs_data
def test_the_lifecycle_gate_passes_with_expiry() -> None:
    with stream_car.open(rules=["memory"], future="apply") as engine:
        for number, scenario in enumerate(lines("memorycheck/scenarios.jsonl")):
            check_lifecycle(engine, scenario, number)


def check_lifecycle(engine: stream_car.Engine, scenario: dict[str, object], number: int) -> None:
    """Carry out a scenario; its steps are seconds, and every query is as of its step."""
    truth: dict[tuple[str, str, str], str] = {}
    ends: dict[tuple[str, str, str], int] = {}
    values: set[str] = set()
    clock = number * 10_000
    steps = 0
    for step in cast("list[dict[str, object]]", scenario["steps"]):
        clock += 1
        now = START + timedelta(seconds=clock)
        subject = {**cast("dict[str, str]", scenario["subject"]), **cast("dict[str, str]", step.get("as", {}))}
        tenant, user, key = subject["tenant_id"], subject["user_id"], str(step.get("key"))
        memory = Memory(engine=engine, user_id=user, agent_id=f"{scenario['id']} {tenant}")
        if step["op"] in ("write", "correct"):
            value = str(step["value"])
            expires = None
            ends.pop((tenant, user, key), None)
            if "ttl_steps" in step:
                expires = now + timedelta(hours=int(str(step["ttl_steps"])))
                ends[tenant, user, key] = steps + int(str(step["ttl_steps"]))
            memory.add(
                value,
                key=key,
                valid_from=now + timedelta(hours=steps),
                expires=expires and expires + timedelta(hours=steps),
            )
            truth[tenant, user, key] = value
            values.add(value)
        elif step["op"] == "delete":
            memory.forget(key)
            truth.pop((tenant, user, key), None)
        elif step["op"] == "rescope":
            to = {**subject, **cast("dict[str, str]", step["to"])}
            other = Memory(engine=engine, user_id=to["user_id"], agent_id=f"{scenario['id']} {to['tenant_id']}")
            value = truth.pop((tenant, user, key))
            memory.forget(key)
            other.add(value, key=key, valid_from=now + timedelta(hours=steps))
            truth[to["tenant_id"], to["user_id"], key] = value
        elif step["op"] == "advance_time":
            steps += int(str(step["steps"]))
        elif step["op"] == "query":
            holds = {
                value
                for place, value in truth.items()
                if place[:2] == (tenant, user) and ends.get(place, steps + 1) > steps
            }
            as_of = now + timedelta(hours=steps)
            frontier = engine.frontier(memory.owner.scope, as_of=as_of)
            answer = {evidence.text for frontier in frontier for evidence in frontier.in_force}
            assert answer & values == holds, (scenario["id"], step)


@needs_data
def test_no_stale_fact_is_recalled_of_the_24() -> None:
    facts = lines("facts24/facts.jsonl")
    with Memory(user_id="ada") as memory:
        for fact in facts:
            for value in (fact["old"], fact["new"]):
                key = f"{fact['subject']}::{fact['relation']}"
                memory.add(f"{fact['subject']} {fact['relation']}: {value}", key=key, object=str(value))
        answers = [
            memory.search(f"What is the {fact['relation']} of {fact['subject']}?")["results"][0]["object"]
            for fact in facts
        ]

    assert answers == [fact["new"] for fact in facts]


def test_a_memory_in_a_service_is_that_of_the_library() -> None:
    async def of_service() -> list[object]:
        async with serving(engine=stream_car.open(rules=["memory"])) as running:
            return await asyncio.to_thread(remembered_in, running.url)

    with Memory(user_id="ada") as memory:
        assert asyncio.run(of_service()) == remembered(memory)


def test_the_asynchronous_calls_are_the_same() -> None:
    async def run() -> tuple[list[str], int]:
        async with (
            serving(engine=stream_car.open(rules=["memory"])) as running,
            MemoryAsync(running.url, user_id="ada") as memory,
        ):
            await memory.add("db-3", key=KEY)
            await memory.add("db-7", key=KEY)
            answer = await memory.search("db-7")
            return [item["memory"] for item in answer["results"]], (await memory.reset())["count"]

    assert asyncio.run(run()) == (["db-7"], 2)


def remembered_in(url: str) -> list[object]:
    with Memory(url=url, user_id="ada") as memory:
        return remembered(memory)


def remembered(memory: Memory) -> list[object]:
    """What a memory says of a small life, without ids and times of the day."""
    first = event(memory, "db-3", valid_from=day(1))
    second = event(memory, "db-7", valid_from=day(2))
    echo = event(memory, "db-3", valid_from=day(3))
    results = [(item["memory"], item["status"], item["score"]) for item in memory.search("db-7 db-3")["results"]]
    history = [(entry["event"], entry["created_at"], entry["ended_at"]) for entry in memory.history(KEY)]
    return [first, second, echo, results, history, memory.forget(user_id="ada")["count"]]


def test_sentences_without_a_key_get_one_and_questions_lead_to_it() -> None:
    with Memory() as memory:
        memory.add("The capital of Norland is Oslo.")
        memory.add("The capital of Norland is a nice place, and the capital of Norland is far away.")
        [added] = memory.add("The capital of Norland is Turin.")["results"]

        assert (added["event"], added["key"]) == ("SUPERSEDE", "norland::capital")
        assert (
            memory.search("What is the capital of Norland?")["results"][0]["memory"]
            == "The capital of Norland is Turin."
        )


def test_without_an_extractor_every_sentence_is_kept() -> None:
    with Memory(extractor=None) as memory:
        memory.add("The capital of Norland is Oslo.")
        memory.add("The capital of Norland is Turin.")

        assert len(memory.get_all()["results"]) == 2


def test_a_value_that_a_text_calls_past_displaces_nothing() -> None:
    with Memory() as memory:
        memory.add("my title is Editor")
        [added] = memory.add("my title was Reporter")["results"]

        assert (added["event"], added["reason"]) == ("ADD", "older")
        assert [item["object"] for item in memory.get_all()["results"]] == ["Editor"]


@needs_data
def test_chains_of_corrections_leave_one_memory() -> None:
    for line in (DATA / "chain_binding" / "chains.jsonl").read_text().splitlines():
        chain = json.loads(line)
        with Memory() as memory:
            for turn in chain["turns"]:
                memory.add(turn)

            [item] = memory.get_all()["results"]
            assert chain["final"] in item["memory"]


@needs_data
def test_the_newest_of_conflicting_facts_answers_first() -> None:
    folder = DATA / "factconsolidation" / "6k"
    questions = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]
    with Memory() as memory:
        for line in (folder / "facts.jsonl").read_text().splitlines():
            memory.add(json.loads(line)["text"], reaffirm=True)

        for question in questions[:50]:
            assert question["answers"][0].lower() in texts(memory, question["text"])[0].lower()

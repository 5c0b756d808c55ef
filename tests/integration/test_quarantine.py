"""A document that the engine fails on is set aside: answers say so until it is retried or dropped."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from stream_car.api.calls import Calls
from stream_car.errors import InvalidRequest, Unavailable
from stream_car.local.engine import Engine
from tests.support import engines
from tests.support.command_line import invoke, parse
from tests.support.either_service import served
from tests.support.engines import RULESET, document
from tests.support.http_service import TOKEN
from tests.support.poison import POISON, fail_on_poison

OTHERS = [document("a", topic="rain", text="rain"), document("b", topic="sun", text="sun")]
POISONED = [OTHERS[0], document(POISON, topic="rain"), OTHERS[1]]
NAME = "intake:0:1"


@contextmanager
def library() -> Iterator[Calls]:
    with engines.engine() as engine:
        yield engine


def service() -> AbstractContextManager[Calls]:
    return served(ruleset=RULESET, token=TOKEN)


@pytest.fixture(params=[library, service])
def calls(request: pytest.FixtureRequest) -> Iterator[Calls]:
    with request.param() as calls:
        yield calls


@pytest.fixture
def poison() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patched:
        fail_on_poison(patched)
        yield patched


def marks(calls: Calls) -> dict[str, tuple[str, ...]]:
    """Return why each kind of answer is incomplete."""
    [rain], [sun] = calls.frontier({"topic": "rain"}), calls.frontier({"topic": "sun"})
    [history] = calls.history({"topic": "rain"})
    a, b, gone = (calls.resolve([name])[0] for name in ("a", "b", POISON))  # a request is marked as a whole
    return {
        "rain": rain.reasons, "sun": sun.reasons, "history": history.reasons, "a": a.reasons, "b": b.reasons,
        "gone": gone.reasons, "query": calls.query("rain").certificate.reasons,
        "other query": calls.query("sun").certificate.reasons,
        "explain": calls.explain("a").reasons,
    }  # fmt: skip


QUARANTINED = ("quarantined",)


def test_the_answers_that_it_may_belong_to_say_so_and_no_others(calls: Calls, poison: pytest.MonkeyPatch) -> None:
    published = calls.publish(POISONED)

    assert [receipt.outcome for receipt in published.receipts] == ["accepted", "quarantined", "accepted"]
    status = calls.status()
    assert (status.outcomes["quarantined"], status.quarantined, status.reasons) == (1, 1, QUARANTINED)
    assert {name: reasons for name, reasons in marks(calls).items() if reasons} == dict.fromkeys(
        ("rain", "history", "a", "gone", "query", "explain"), QUARANTINED
    )
    [item] = calls.quarantine()
    assert (item.name, item.id, item.scopes, item.error) == (
        NAME, POISON, ("topic=rain",), "ZeroDivisionError: division by zero",
    )  # fmt: skip
    assert POISON in str(calls.quarantined(NAME).content)
    with pytest.raises(InvalidRequest):
        calls.quarantined("intake:0:0")


def test_after_a_retry_that_succeeds_answers_are_complete(calls: Calls, poison: pytest.MonkeyPatch) -> None:
    calls.publish(POISONED)
    failed = calls.retry_quarantined(NAME)
    [again] = calls.quarantine()
    poison.undo()
    receipt = calls.retry_quarantined(again.name)

    assert (failed.outcome, receipt.outcome, receipt.id) == ("quarantined", "accepted", POISON)
    assert calls.quarantine() == ()
    assert not any(marks(calls).values())
    assert calls.resolve([POISON])[0].status == "in_force"


def test_after_a_drop_answers_are_complete_without_it(calls: Calls, poison: pytest.MonkeyPatch) -> None:
    calls.publish(POISONED)
    dropped = calls.drop_quarantined(NAME)

    assert dropped.name == NAME
    assert (calls.status().quarantined, calls.status().reasons) == (0, ())
    assert calls.quarantine() == ()
    assert not any(reasons for name, reasons in marks(calls).items() if name != "gone")
    assert calls.publish([document("c", topic="rain")]).receipts[0].outcome == "accepted"


def test_a_document_with_links_makes_every_answer_incomplete(calls: Calls, poison: pytest.MonkeyPatch) -> None:
    calls.publish([*OTHERS, document(POISON, topic="snow", supersedes=("b",))])

    assert calls.quarantine()[0].scopes is None
    assert set(marks(calls).values()) == {QUARANTINED}


def test_an_empty_answer_that_it_may_belong_to_is_not_given(calls: Calls, poison: pytest.MonkeyPatch) -> None:
    calls.publish([*OTHERS, document(POISON, topic="snow")])

    with pytest.raises(Unavailable) as caught:
        calls.frontier({"topic": "snow"})

    assert caught.value.code == "quarantined"


def test_a_question_whose_only_anchor_is_set_aside_says_so(calls: Calls, poison: pytest.MonkeyPatch) -> None:
    calls.publish([*OTHERS, document(POISON, topic="snow", text="blizzard")])
    by_text, by_id, by_scope = (calls.query(text) for text in ("blizzard", f"sun {POISON}", "sun or snow"))
    with pytest.raises(Unavailable) as caught:
        calls.search("blizzard")

    assert by_text.certificate.reasons == ("no_anchor", "quarantined")
    assert by_id.certificate.reasons == by_scope.certificate.reasons == QUARANTINED
    assert calls.query("sun").certificate.reasons == ()
    assert [evidence.id for evidence in calls.search("sun")] == ["b"]
    assert caught.value.code == "quarantined"


def test_a_replay_sets_the_same_records_aside(tmp_path: Path, poison: pytest.MonkeyPatch) -> None:
    with Engine(tmp_path, ruleset=RULESET) as engine:
        engine.publish(POISONED)
        before = engine.quarantine()
        engine.rebuild()
        rebuilt = engine.quarantine()
    poison.undo()
    with Engine(tmp_path) as engine:
        reopened = engine.quarantine()
        engine.rebuild()  # by a release that can apply it
        after = engine.quarantine()

    assert before == rebuilt == reopened
    assert len(before) == 1
    assert after == ()


def test_the_command_line_lists_shows_retries_and_drops(tmp_path: Path, poison: pytest.MonkeyPatch) -> None:
    data = {"STREAM_CAR_DATA": str(tmp_path)}
    with Engine(tmp_path, ruleset=RULESET) as engine:
        engine.publish(POISONED)
    listed = invoke("quarantine", "list", **data)
    in_status = invoke("status", **data)
    shown = invoke("quarantine", "show", NAME, **data)
    retried = invoke("quarantine", "retry", NAME, **data)
    again = f"intake:0:{len(POISONED)}"
    dropped = parse(invoke("quarantine", "drop", again, "--json", **data))

    assert (listed.exit_code, shown.exit_code, retried.exit_code) == (1, 0, 1)
    assert NAME in listed.stdout
    assert "1 record in quarantine" in in_status.stdout
    assert "ZeroDivisionError" in shown.stdout
    assert dropped[0]["name"] == again
    assert invoke("quarantine", "list", **data).exit_code == 0

"""What a replay plan sends, and what it reports about each input."""

from stream_car import Receipt
from stream_car.api.replay_plan import ReplayPlan
from stream_car.errors import InvalidDocument
from stream_car.ports import Message
from stream_car.queries.answers import Replayed

MESSAGE = Message(value=b"{}")


def plan() -> ReplayPlan:
    """A plan with an input that can be sent, one that was sent before, and one that is still wrong."""
    replay = ReplayPlan()
    replay.add(3, MESSAGE, None)
    replay.add(5, MESSAGE, None, sent_as=8)
    replay.add(6, MESSAGE, InvalidDocument("syntax", "Not JSON.", None))
    return replay


def test_only_input_that_would_be_accepted_and_was_not_sent_before_is_sent() -> None:
    assert plan().messages == {3: MESSAGE}


def test_a_dry_run_reports_what_would_happen() -> None:
    assert plan().report({}) == (
        Replayed(offset=3, outcome="replayed"),
        Replayed(offset=5, outcome="replayed_before", at=8),
        Replayed(offset=6, outcome="rejected", code="syntax", reason="Not JSON."),
    )


def test_what_was_sent_is_reported_with_its_receipt_in_the_same_order() -> None:
    receipt = Receipt(offset=11, outcome="accepted", id="a")
    first, *others = plan().report({3: receipt})

    assert first == Replayed(offset=3, outcome="replayed", at=11, receipt=receipt)
    assert [replayed.offset for replayed in others] == [5, 6]


def test_input_that_was_sent_before_is_not_sent_even_if_it_is_still_wrong() -> None:
    replay = ReplayPlan()
    replay.add(5, MESSAGE, InvalidDocument("syntax", "Not JSON.", None), sent_as=8)

    assert replay.report({}) == (Replayed(offset=5, outcome="replayed_before", at=8),)


def test_plans_share_nothing() -> None:
    plan()

    assert ReplayPlan().report({}) == ()

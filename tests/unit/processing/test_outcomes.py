"""The outcomes that an intake shard stores for publishers: page by page, until later pages overwrite them."""

from typing import get_args

import pytest

from stream_car.codec import encode
from stream_car.core.changes import Rejection
from stream_car.core.documents import Document, Retraction
from stream_car.errors import Unavailable
from stream_car.processing.effects import Outcome
from stream_car.processing.outcomes import PAGE, PAGES, OutcomePage, outcome_in, outcome_key, outcome_keys, page_number
from stream_car.processing.state import decode_value, encode_value
from tests.support.engines import document
from tests.support.two_hop_folds import Intake, ids_of, record

KEPT = PAGE * PAGES


def stored_pages(intake: Intake, *offsets: int) -> dict[bytes, OutcomePage]:
    """Return the pages of these records as a publisher reads them from the store."""
    pages: dict[bytes, OutcomePage] = {}
    for key in outcome_keys(offsets):
        page = intake.stored(key)
        assert isinstance(page, OutcomePage)
        pages[key] = page
    return pages


def test_every_record_of_an_intake_shard_has_its_outcome() -> None:
    intake = Intake()
    name, other = ids_of(0)[:2]
    stray = ids_of(1)[0]
    contents: list[Document | bytes | None] = [
        document(name, topic="rain"),
        document(name, topic="rain"),
        document(name, topic="snow"),
        document(other, at=1001),
        encode(Retraction(id=name)),
        document(name, topic="rain"),
        b"{",
        document(stray, topic="rain"),
        None,
    ]
    for offset, content in enumerate(contents):
        intake.apply(record(offset, content))
    pages = stored_pages(intake, *range(len(contents)))

    assert [outcome_in(pages, offset)[0] for offset in range(len(contents))] == [
        "accepted", "duplicate", "rejected", "pending", "retracted", "older", "rejected", "rerouted", "rejected",
    ]  # fmt: skip


def test_a_rejection_is_stored_with_code_reason_and_id() -> None:
    intake = Intake()
    name = ids_of(0)[0]
    intake.apply(record(3, document(name, "rumour")))
    intake.apply(record(4, b"{"))
    pages = stored_pages(intake, 3, 4)

    _, unknown_type = outcome_in(pages, 3)
    _, unreadable = outcome_in(pages, 4)
    assert unknown_type is not None
    assert unreadable is not None
    assert (unknown_type.offset, unknown_type.code, unknown_type.id) == (3, "type_unknown", name)
    assert "rumour" in unknown_type.reason
    assert (unreadable.offset, unreadable.code, unreadable.id) == (4, "syntax", None)


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_every_outcome_survives_the_store(outcome: Outcome) -> None:
    rejection = Rejection(offset=5, code="conflict", reason="Because.", id="a") if outcome == "rejected" else None
    page = OutcomePage(0)
    page.add(5, outcome, rejection)
    key = outcome_key(5)
    value = encode_value(page)
    assert value is not None
    restored = decode_value(key, value)

    assert isinstance(restored, OutcomePage)
    assert outcome_in({key: restored}, 5) == (outcome, rejection)


def test_records_of_a_page_share_one_key() -> None:
    assert outcome_keys([0, 1, PAGE - 1]) == [outcome_key(0)]
    assert outcome_keys([PAGE - 1, PAGE, 2 * PAGE]) == [outcome_key(0), outcome_key(PAGE), outcome_key(2 * PAGE)]
    assert (page_number(PAGE - 1), page_number(PAGE)) == (0, 1)


def test_a_later_page_overwrites_the_one_whose_key_it_has() -> None:
    intake = Intake()
    names = ids_of(0)
    intake.apply(record(0, document(names[0], topic="rain")))
    intake.apply(record(PAGE, document(names[1], topic="rain")))
    assert outcome_in(stored_pages(intake, 0), 0) == ("accepted", None)
    intake.apply(record(KEPT + 1, document(names[2], topic="rain")))
    pages = stored_pages(intake, 0, PAGE, KEPT + 1)

    assert len(pages) == 2
    assert outcome_in(pages, KEPT + 1) == ("accepted", None)
    assert outcome_in(pages, PAGE) == ("accepted", None)
    with pytest.raises(Unavailable, match="no longer known"):
        outcome_in(pages, 0)
    with pytest.raises(Unavailable, match="no longer known"):
        outcome_in(pages, KEPT)  # no record was applied there


def test_as_many_records_as_promised_are_still_known() -> None:
    intake = Intake()
    retraction = encode(Retraction(id=ids_of(0)[0]))
    last = KEPT + 5
    for offset in range(last + 1):
        intake.apply(record(offset, retraction))
    first_kept = last + 1 - PAGE * (PAGES - 1)
    pages = stored_pages(intake, *range(first_kept, last + 1))

    assert first_kept == last - 16_127
    assert {outcome_in(pages, offset) for offset in range(first_kept, last + 1)} == {("nothing", None)}
    assert len(pages) == PAGES


@pytest.mark.parametrize("offset", [4, 6, 300])
def test_an_outcome_that_was_never_stored_is_not_known(offset: int) -> None:
    """Record 4 was applied by an earlier release, 6 was not applied, and nothing is known of the page of 300."""
    page = OutcomePage(0)
    page.add(5, "accepted", None)

    with pytest.raises(Unavailable, match="Publish them again"):
        outcome_in({outcome_key(5): page}, offset)


def test_a_replay_gives_the_same_pages() -> None:
    first, second = Intake(), Intake()
    contents = [record(n, document(name, "rumour" if n % 3 else "claim")) for n, name in enumerate(ids_of(0))]
    for intake in (first, second):
        for given in contents:
            intake.apply(given)
    key = outcome_key(0)

    assert encode_value(first.state[key]) == encode_value(second.state[key])

"""What people see: the words alone tell what is in force, what is void, why, and what is warranted."""

import pytest
from rich.console import RenderableType

from stream_car.cli import render, summaries
from stream_car.cli import render as told
from stream_car.processing.receipts import Receipt
from stream_car.queries.answers import (
    Answer,
    Audit,
    Certificate,
    Controlling,
    Evidence,
    Explanation,
    Group,
    Plausible,
    Resolution,
    Violation,
)
from tests.support import answers as an
from tests.support.answers import drawn

PLAIN_CHAIN = "GHSA-jf85 ──release_voids_advisory──▶ lodash-4.17.12"


def test_an_answer_shows_what_is_in_force_and_the_chain_that_leads_to_it() -> None:
    text = drawn(render.answer(an.ANSWER))

    assert "lodash 4.17.12 mends prototype pollution" in text
    assert "2019-07-11 · lodash · https://example.org/4.17.12" in text
    assert PLAIN_CHAIN in text
    assert "void: Prototype Pollution in lodash (2019-07-10 19:45:23Z)" in text


def test_the_last_line_of_an_answer_is_its_certificate() -> None:
    last = drawn(render.answer(an.ANSWER)).rstrip().splitlines()[-1]

    assert last == "✔ complete for 1 anchor, counting the first 61 messages of the log (phi 0.50, kappa 2.00)."


def test_an_answer_that_is_not_complete_says_why() -> None:
    text = drawn(render.answer(an.BROKEN), width=200)

    assert "✘ not complete: documents void one another; a successor is named that is not here" in text
    assert "these void one another: GHSA-jf85, GHSA-other" in text
    assert "named as successor, but not here: GHSA-new" in text
    assert "2 documents wait for their time" in text


def test_an_answer_names_the_likeliest_scopes_that_it_does_not_cover() -> None:
    likely = [Plausible(scope=f"topic=t{n}", belief=0.2, coverage=0.1 if n == 0 else 0.0) for n in range(5)]
    certificate = Certificate(covered=("a",), not_covered=("b", "c"), complete=False, reasons=("budget",), cut=(9,))
    said = Answer(question="?", results=(), groups=(), certificate=certificate, scopes=tuple(likely))
    text = drawn(render.answer(said), width=200)

    assert "not covered: topic=t1 (0.20); topic=t2 (0.20); topic=t3 (0.20); and 1 other." in text
    assert "a larger budget. It covers 1 anchor, counting the first 9 messages of the log." in text
    assert "A larger --budget would follow 2 weaker matches too." in " ".join(text.split())


def test_a_document_that_several_anchors_lead_to_is_shown_in_full_once() -> None:
    twice = Answer(
        question="?", results=(an.RELEASE,), groups=(an.GROUP, an.GROUP), certificate=Certificate(covered=("a", "b"))
    )
    text = drawn(render.answer(twice))

    assert text.count(an.RELEASE.title) == 1
    assert text.count(PLAIN_CHAIN) == 2


def test_only_results_are_numbered_and_chains_stand_beneath_theirs() -> None:
    other = Controlling(document=an.ADVISORY, path=())
    second = Group(anchor=an.RELEASE, controlling=(other, Controlling(document=an.RELEASE)))
    both = Answer(
        question="?",
        results=(an.RELEASE,),
        groups=(an.GROUP, second, an.ORPHAN),
        certificate=Certificate(covered=("a",), not_covered=("b", "c")),
    )
    lines = [line.rstrip() for line in drawn(render.answer(both)).splitlines()]

    assert [line.split()[0] for line in lines if line.split() and line.split()[0].isdigit()] == ["1"]
    assert lines[lines.index(f" 1 {an.RELEASE.title}") + 2].strip() == PLAIN_CHAIN
    assert "   named as successor, but not here: GHSA-new" in lines
    assert lines[-1].endswith("A higher --k would follow 2 weaker matches too.")


def test_one_document_that_breaks_two_conditions_is_one_fault() -> None:
    twice = Audit(
        holds=False,
        violations=(
            Violation(condition="ignored_superseder", id="old", add=("new",)),
            Violation(condition="frontier_inclusion", id="old", add=("new",)),
        ),
        pending=("soon",),
        stranded=("old", "lone"),
    )
    text = drawn(render.audit(twice))

    assert "3 documents are wrong" in text
    assert text.count("add new") == 1
    assert "pending: soon (it waits for its time" in text
    assert "stranded: lone (it is void" in text
    assert "stranded: old" not in text


def test_an_answer_without_anchors_says_what_to_try() -> None:
    nothing = Answer(
        question="?",
        results=(),
        groups=(),
        certificate=Certificate(covered=(), complete=False, reasons=("no_anchor",)),
    )
    text = drawn(render.answer(nothing))

    assert "Nothing found. Try other words" in text
    assert "no document matches the question" in text
    assert "of the anchor types: menu, notice." in drawn(render.answer(nothing, ["notice", "menu"]))


def test_void_documents_are_struck_out_and_documents_in_force_are_green() -> None:
    text = drawn(render.answer(an.ANSWER), color=True)

    assert "\x1b[1;32mlodash 4.17.12 mends prototype pollution" in text
    assert "\x1b[2;9mPrototype Pollution in lodash" in text
    assert "\x1b[2;9mGHSA-jf85\x1b[0m\x1b[36m ──" in text
    assert "\x1b[1;32mlodash-4.17.12\x1b[0m" in text


def test_a_resolution_says_how_the_name_was_read() -> None:
    text = drawn(render.resolution(an.RESOLUTION))

    assert "GHSA-jf85#3 is void (read as a chunk)" in text
    assert PLAIN_CHAIN in text
    assert "nobody is unknown" in drawn(render.resolution(Resolution(asked="nobody", status="unknown")))


def test_an_audit_names_the_condition_and_the_repair() -> None:
    text = drawn(render.audit(an.AUDIT))

    assert "✘ does not hold: 2 documents are wrong." in text
    assert "GHSA-jf85 leads to what is in force, and the set lacks it" in text
    assert "add lodash-4.17.12" in text
    assert "unknown: nobody (no document has that name)" in text
    assert "the set repaired: lodash-4.17.12" in text
    assert "✔ holds" in drawn(render.audit(Audit(holds=True)))


def test_a_frontier_lists_what_is_void_through_something_else_apart() -> None:
    text = drawn(render.frontier(an.FRONTIER))

    assert f"{an.SCOPE}  3 members, 1 in force" in text
    assert "void through record=R: ──security.editions──▶ R@2" in text


def test_a_history_says_until_when_each_member_held_and_what_ended_it() -> None:
    rows = drawn(render.history(an.HISTORY), width=160).splitlines()

    assert any("2019-07-10 19:45:23Z" in row and "lodash-4.17.12 (release_voids_advisory)" in row for row in rows)
    assert any("2019-07-11" in row and "in force here" in row for row in rows)


def test_a_change_has_one_line_for_everything_that_entered_or_left() -> None:
    lines = [line.strip() for line in drawn(told.told(an.TOLD), width=160).splitlines()]
    because = "because of lodash 4.17.12 mends prototype pollution"

    assert lines == [
        f"41  {an.SCOPE}",
        f"- GHSA-jf85 advisory is void now, {because} (release_voids_advisory)",
        f"- 1200 × workaround are void now, {because} (release_voids_notes)",
        "+ lodash-4.17.12 release_note holds here now",
    ]


def test_an_explanation_goes_through_scopes_and_links() -> None:
    text = drawn(render.explanation(an.EXPLANATION), width=160)

    assert "GHSA-jf85 is void" in text
    assert "lodash-4.17.12 (release_voids_advisory)" in text
    assert "what controls it now:" in text


def test_an_explanation_of_a_waiting_document_says_for_when() -> None:
    text = drawn(render.explanation(Explanation(asked="soon", status="pending", due=an.RELEASE.time)))

    assert "it waits for 2019-07-11" in text


def test_rejected_bytes_cannot_steer_a_terminal() -> None:
    text = drawn(render.rejected(an.REJECTED))

    assert "input 9 was rejected (syntax) at 1970-01-01" in text
    assert "\x1b" not in text
    assert '{"id": "x' in text


def test_titles_cannot_turn_the_direction_of_text() -> None:
    evil = Evidence(id="x", type="advisory", time=0, title="safe \u202eevil\x1b[2J\nnext")
    text = drawn(render.ranking([evil]))

    assert "\u202e" not in text
    assert "\x1b" not in text
    assert text.count("\n") == 1


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize(
    "value",
    [
        render.answer(an.ANSWER),
        render.answer(an.BROKEN),
        render.resolution(an.RESOLUTION),
        render.audit(an.AUDIT),
        render.frontier(an.FRONTIER),
        render.history(an.HISTORY),
        told.told(an.TOLD),
        render.explanation(an.EXPLANATION),
        render.rejected_table([an.REJECTED]),
    ],
)
def test_no_line_is_wider_than_the_terminal(value: RenderableType, width: int) -> None:
    assert max(len(line.rstrip()) for line in drawn(value, width=width).splitlines()) <= width


@pytest.mark.parametrize("width", [60, 100])
def test_no_id_date_or_rule_is_broken_in_a_table(width: int) -> None:
    for table in (render.history(an.HISTORY), render.explanation(an.EXPLANATION)):
        assert "release_voids_advisory" in drawn(table, width=width)
    for told_whole in ("2019-07-10 19:45:23Z", "2019-07-11", "GHSA-jf85", "in force here"):
        assert told_whole in drawn(render.history(an.HISTORY), width=width)


def test_a_summary_counts_outcomes_and_names_what_was_lacking() -> None:
    said = summaries.Summary.of(
        [
            Receipt(offset=0, outcome="accepted", type="advisory", scopes=1),
            Receipt(offset=1, outcome="accepted", type="advisory", lacking=("package",)),
            Receipt(offset=2, outcome="accepted", type="advisory", lacking=("package",)),
            Receipt(offset=3, outcome="rejected", code="time", reason="there is no day 2024-02-30"),
            Receipt(offset=4, outcome="rejected", code="time", reason="another"),
        ]
    )
    text = drawn(summaries.draw(said))

    assert said.outcomes == {"accepted": 3, "rejected": 2}
    assert "2 documents joined no scope" in text
    assert "advisory lacked package (2 documents)" in text
    assert "time (2), for one: there is no day 2024-02-30" in text
    assert "stream-car rejected list" in text


def test_words_that_were_not_looked_for_are_told() -> None:
    said = Answer(question="q", results=(), groups=(), certificate=Certificate(covered=()), unread=3)

    assert "too many words: the commonest (3 words) were not looked for" in drawn(render.answer(said))


def test_a_summary_of_nothing_counts_nothing() -> None:
    said = summaries.Summary.of([])

    assert (dict(said.outcomes), said.in_no_scope, said.lacking, said.rejected) == ({}, 0, [], [])


def test_one_document_is_counted_in_the_singular() -> None:
    said = summaries.Summary.of([Receipt(offset=0, outcome="accepted", type="advisory", lacking=("package",))])
    text = drawn(summaries.draw(said))

    assert "1 document joined no scope: rules cannot void it or void by it." in text
    assert "advisory lacked package (1 document)" in text

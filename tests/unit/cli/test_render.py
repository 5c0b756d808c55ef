"""What people see: the words alone tell what is in force, what is superseded, why, and how complete the answer is."""

import pytest
from msgspec.structs import replace
from rich.console import RenderableType

from stream_car.cli import rejected, render, render_changes, status, summaries
from stream_car.processing.receipts import HiddenCharacter, Receipt
from stream_car.queries.answers import (
    Answer,
    Audit,
    Certificate,
    Controlling,
    EndedRecord,
    Evidence,
    Explanation,
    Group,
    PlausibleScope,
    Resolution,
    Status,
    Violation,
)
from tests.support import answers as an
from tests.support.answers import drawn

PLAIN_CHAIN = "GHSA-jf85 ──release_voids_advisory──▶ lodash-4.17.12"


def flat(text: str) -> str:
    """Return a drawing without its line breaks."""
    return " ".join(text.split())


def test_an_answer_shows_the_text_in_force_what_it_replaces_and_since_when() -> None:
    released = replace(an.RELEASE, text="Update to 4.17.12.")
    text = flat(drawn(render.answer(replace(an.ANSWER, results=(released,)))))

    assert "1 lodash 4.17.12 mends prototype pollution Update to 4.17.12." in text
    assert "In force since 2019-07-11. Replaces Prototype Pollution in lodash (2019-07-10 19:45:23Z)" in text
    assert "lodash · https://example.org/4.17.12" in text


def test_a_long_text_is_cut_at_a_word_unless_details_are_wanted() -> None:
    long = replace(an.ANSWER, results=(replace(an.RELEASE, text="word " * 200),))

    assert "word ..." in drawn(render.answer(long))
    assert drawn(render.answer(long)).count("word") < 100
    assert drawn(render.answer(long, verbose=True)).count("word") == 200


def test_scores_paths_and_figures_are_shown_only_on_request() -> None:
    plain, details = drawn(render.answer(an.ANSWER)), drawn(render.answer(an.ANSWER, verbose=True))

    for figure in ("phi", "kappa", "3.500", "──release_voids_advisory──▶"):
        assert figure not in plain
        assert figure in details
    assert PLAIN_CHAIN in details


def test_the_last_line_of_an_answer_is_its_certificate() -> None:
    last = drawn(render.answer(an.ANSWER)).rstrip().splitlines()[-1]
    details = flat(drawn(render.answer(an.ANSWER, verbose=True)))

    assert last.startswith("✔ Complete: none of the 61 messages published so far supersedes what is shown.")
    assert "supersedes what is shown. Anchors covered: 1. phi 0.50, kappa 2.00" in details


def test_a_certificate_for_a_later_time_does_not_count_what_waits() -> None:
    waiting = replace(an.ANSWER.certificate, as_of=an.RELEASE.time, pending=2)

    assert (
        "messages published so far, not counting 2 documents that wait for their time, supersedes what is shown by"
        in (str(render.certificate_line(waiting)))
    )
    assert "not counting" not in str(render.certificate_line(replace(waiting, as_of=None)))
    assert "not counting" not in str(render.certificate_line(replace(waiting, pending=0)))


def test_an_answer_that_shares_little_with_the_question_says_so_first_and_last() -> None:
    lines = drawn(render.answer(replace(an.ANSWER, is_close=False)), width=200).rstrip().splitlines()

    assert "These documents share little with the question:" in lines[2]
    assert lines[-1].startswith("✘ Nothing close was found. Try other words")
    assert not any("Complete" in line for line in lines)


def test_an_answer_that_is_not_complete_says_why() -> None:
    text = drawn(render.answer(an.BROKEN), width=200)

    assert "✘ Not complete: documents supersede one another; a document names a successor" in text
    assert "these supersede one another: GHSA-jf85, GHSA-other" in text
    assert "named as successor, but not published here: GHSA-new" in text
    assert "2 documents wait for their time: stream-car pending" in text


def test_details_of_an_answer_name_the_likeliest_scopes_that_it_does_not_cover() -> None:
    likely = [PlausibleScope(scope=f"topic=t{n}", probability=0.2, coverage=0.1 if n == 0 else 0.0) for n in range(5)]
    certificate = Certificate(covered=("a",), not_covered=("b", "c"), complete=False, reasons=("budget",), cut=(9,))
    partial = Answer(question="?", results=(), groups=(), certificate=certificate, scopes=tuple(likely))
    text = flat(drawn(render.answer(partial, verbose=True), width=200))

    assert "not covered: topic=t1 (0.20); topic=t2 (0.20); topic=t3 (0.20); and 1 other." in text
    assert "Not complete: the budget ran out" in text
    assert "A larger --budget would follow 2 weaker matches too." in text
    assert "topic=t1" not in drawn(render.answer(partial))


def test_a_document_that_several_anchors_lead_to_is_shown_in_full_once() -> None:
    twice = Answer(
        question="?", results=(an.RELEASE,), groups=(an.GROUP, an.GROUP), certificate=Certificate(covered=("a", "b"))
    )

    assert drawn(render.answer(twice)).count(an.RELEASE.title) == 1
    assert drawn(render.answer(twice)).count(an.ADVISORY.title) == 1
    assert drawn(render.answer(twice, verbose=True)).count(PLAIN_CHAIN) == 2


def test_only_results_are_numbered_and_chains_stand_below_theirs() -> None:
    other = Controlling(document=an.ADVISORY, path=())
    second = Group(anchor=an.RELEASE, controlling=(other, Controlling(document=an.RELEASE)))
    both = Answer(
        question="?",
        results=(an.RELEASE,),
        groups=(an.GROUP, second, an.ORPHAN),
        certificate=Certificate(covered=("a",), not_covered=("b", "c")),
    )
    lines = [line.rstrip() for line in drawn(render.answer(both, verbose=True)).splitlines()]

    assert [line.split()[0] for line in lines if line.split() and line.split()[0].isdigit()] == ["1"]
    assert lines[lines.index(f" 1 {an.RELEASE.title}") + 3].strip() == PLAIN_CHAIN
    assert "   named as successor, but not published here: GHSA-new" in lines
    assert "A higher --k would follow 2 weaker matches too." in flat("\n".join(lines))


def test_a_result_names_the_first_of_many_documents_that_it_replaces() -> None:
    old = [replace(an.ADVISORY, id=f"old-{n}", title=f"Old {n}") for n in range(5)]
    groups = tuple(replace(an.GROUP, anchor=anchor, superseded=(anchor,)) for anchor in old)
    text = flat(drawn(render.answer(replace(an.ANSWER, groups=groups))))

    assert "Old 2" in text
    assert "Old 3" not in text
    assert "and 2 more" in text


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
    assert "stranded: lone (it is superseded" in text
    assert "stranded: old" not in text


def test_an_answer_without_anchors_says_what_to_try() -> None:
    nothing = Answer(
        question="?",
        results=(),
        groups=(),
        certificate=Certificate(covered=(), complete=False, reasons=("no_anchor",)),
    )
    text = drawn(render.answer(nothing))

    assert "Nothing was found. Try other words" in text
    assert "no document matches the question" in text
    assert "Only these types are searched: menu, notice." in drawn(render.answer(nothing, ["menu", "notice"]))


def test_superseded_documents_are_struck_out_and_documents_in_force_are_green() -> None:
    text = drawn(render.answer(an.ANSWER, verbose=True), color=True)

    assert "\x1b[1;32mlodash 4.17.12 mends prototype pollution" in text
    assert "\x1b[2;9mPrototype Pollution in lodash" in text
    assert "\x1b[2;9mGHSA-jf85\x1b[0m\x1b[36m ──" in text
    assert "\x1b[1;32mlodash-4.17.12\x1b[0m" in text


def test_a_resolution_says_how_the_name_was_read() -> None:
    text = drawn(render.resolution(an.RESOLUTION))

    assert "GHSA-jf85#3 is superseded (it names a chunk)" in text
    assert PLAIN_CHAIN in text
    assert "nobody is unknown" in drawn(render.resolution(Resolution(name="nobody", status="unknown")))


def test_an_audit_names_the_condition_and_the_repair() -> None:
    text = drawn(render.audit(an.AUDIT))

    assert "✘ Not safe: 2 documents are wrong." in text
    assert "GHSA-jf85 leads to documents in force that are missing" in text
    assert "add lodash-4.17.12" in text
    assert "unknown: nobody (no document has this name)" in text
    assert "The repaired set: lodash-4.17.12" in text
    assert "✔ Safe" in drawn(render.audit(Audit(holds=True)))


def test_a_frontier_lists_separately_what_something_else_supersedes() -> None:
    text = drawn(render.frontier(an.FRONTIER))

    assert f"{an.SCOPE}  3 members, 1 in force" in text
    assert "superseded, through record=R: ──security.editions──▶ R@2" in text


def test_a_history_says_until_when_each_member_held_and_what_ended_it() -> None:
    rows = drawn(render.history(an.HISTORY), width=160).splitlines()

    assert any("2019-07-10 19:45:23Z" in row and "lodash-4.17.12" in row for row in rows)
    assert any("2019-07-11" in row and "in force here" in row for row in rows)


def test_a_change_has_one_line_for_everything_that_entered_or_left() -> None:
    lines = [line.strip() for line in drawn(render_changes.change(an.CHANGE), width=160).splitlines()]
    because = "because of lodash 4.17.12 mends prototype pollution"

    assert lines == [
        an.SCOPE,
        f"- GHSA-jf85 advisory is superseded, {because} (release_voids_advisory)",
        f"- 1200 × workaround are superseded, {because} (release_voids_notes)",
        "+ lodash-4.17.12 release_note is in force here",
    ]
    assert an.CHANGE.position in drawn(render_changes.change(an.CHANGE, verbose=True))


def test_an_explanation_goes_through_scopes_and_links() -> None:
    text = drawn(render.explanation(an.EXPLANATION), width=160)

    assert "GHSA-jf85 is superseded" in text
    assert "lodash-4.17.12 (release_voids_advisory)" in text
    assert "What controls it now:" in text


def test_an_explanation_names_other_records_of_the_same_name() -> None:
    others = ("RUSTSEC-1", "PYSEC-1", "GO-1", "OSV-1", "OSV-2")
    text = drawn(render.explanation(replace(an.EXPLANATION, others=others)), width=160)

    assert "It is also another name of RUSTSEC-1, PYSEC-1, GO-1 and 2 more." in text


def test_an_explanation_of_a_waiting_document_says_for_when() -> None:
    text = drawn(render.explanation(Explanation(name="soon", status="pending", due=an.RELEASE.time)))

    assert "It waits for 2019-07-11." in text


def test_rejected_bytes_cannot_steer_a_terminal() -> None:
    text = drawn(rejected.draw(an.REJECTED))

    assert "Input 9 was rejected (syntax) at 1970-01-01" in text
    assert "\x1b" not in text
    assert '{"id": "x' in text


def test_titles_cannot_turn_the_direction_of_text() -> None:
    evil = Evidence(id="x", type="advisory", time=an.RELEASE.time, title="safe \u202eevil\x1b[2J\nnext")
    text = drawn(render.ranking([evil]))

    assert "\u202e" not in text
    assert "\x1b" not in text
    assert text.count("\n") == 2  # the title, and the line of facts


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize(
    "value",
    [
        render.answer(an.ANSWER),
        render.answer(an.ANSWER, verbose=True),
        render.answer(an.BROKEN),
        render.resolution(an.RESOLUTION),
        render.audit(an.AUDIT),
        render.frontier(an.FRONTIER),
        render.history(an.HISTORY),
        render_changes.change(an.CHANGE),
        render.explanation(an.EXPLANATION),
        rejected.draw_table([an.REJECTED], {}),
    ],
)
def test_no_line_is_wider_than_the_terminal(value: RenderableType, width: int) -> None:
    assert max(len(line.rstrip()) for line in drawn(value, width=width).splitlines()) <= width


@pytest.mark.parametrize("width", [60, 100])
def test_no_id_date_or_rule_is_broken_in_a_table(width: int) -> None:
    assert "release_voids_advisory" in drawn(render.explanation(an.EXPLANATION), width=width)
    for phrase in ("2019-07-10 19:45:23Z", "2019-07-11", "GHSA-jf85", "in force here"):
        assert phrase in drawn(render.history(an.HISTORY), width=width)


def test_a_summary_counts_outcomes_and_names_missing_keys() -> None:
    hidden = (HiddenCharacter(place="topic", character="U+00A0"),)
    summary = summaries.Summary.of(
        [
            Receipt(offset=0, outcome="accepted", type="advisory", scopes=1),
            Receipt(offset=1, outcome="accepted", type="advisory", missing_keys=("package",), hidden_characters=hidden),
            Receipt(offset=2, outcome="accepted", type="advisory", missing_keys=("package",)),
            Receipt(offset=3, outcome="rejected", code="time", reason="there is no day 2024-02-30"),
            Receipt(offset=4, outcome="rejected", code="time", reason="another"),
        ]
    )
    text = drawn(summaries.draw(summary))

    assert summary.outcomes == {"accepted": 3, "rejected": 2}
    assert "2 documents are in no scope, so no rule applies to them." in text
    assert "2 documents of the type advisory lack the key package" in text
    assert "1 document has the invisible character U+00A0 in the scope key topic." in text
    assert "time (2), for example: there is no day 2024-02-30" in text
    assert "stream-car rejected list" in text


def test_words_that_were_not_searched_for_are_reported() -> None:
    answer = Answer(question="q", results=(), groups=(), certificate=Certificate(covered=()), ignored_terms=3)

    assert "too long: its most common words (3 words) were not searched for" in drawn(render.answer(answer))


def test_a_summary_of_nothing_counts_nothing() -> None:
    summary = summaries.Summary.of([])

    assert (dict(summary.outcomes), summary.in_no_scope, summary.missing_keys, summary.rejected) == ({}, 0, [], [])


def test_one_document_is_counted_in_the_singular() -> None:
    summary = summaries.Summary.of([Receipt(offset=0, outcome="accepted", type="advisory", missing_keys=("package",))])
    text = drawn(summaries.draw(summary))

    assert "1 document is in no scope, so no rule applies to it." in text
    assert "1 document of the type advisory lacks the key package" in text


def test_the_state_has_its_positions_only_among_the_details() -> None:
    state = Status(
        version="1",
        generation="g-1",
        next_offset=5,
        cursor="g-1:7",
        changes_from=1,
        documents=3,
        pending=1,
        outcomes={"accepted": 4, "rejected": 1},
    )
    text = drawn(status.draw(state))

    assert "3 documents from 5 messages, 1 waiting for their time" in text
    assert "1 rejected" in text
    assert "g-1" not in text
    assert "cursor g-1:7" in drawn(status.draw(state, verbose=True))


def test_a_withdrawn_record_is_called_so_with_its_date() -> None:
    notice = replace(
        an.RELEASE,
        title="Withdrawn: over-read",
        state="withdrawn",
        state_text="withdrawn 2022-08-14",
        outcome="withdrawn",
        outcome_text="withdrawn 2022-08-14",
    )
    group = Group(anchor=notice, controlling=(Controlling(document=notice),))
    resolution = Resolution(
        name="GHSA-1",
        status="superseded",
        via="record",
        outcome="withdrawn",
        outcome_text="withdrawn 2022-08-14",
        groups=(group,),
    )
    ended = EndedRecord(name="GHSA-1", outcome="withdrawn", outcome_text="withdrawn 2022-08-14")

    text = flat(drawn(render.resolution(resolution)))

    assert text.startswith("GHSA-1 is withdrawn 2022-08-14 (it names a record)")
    assert "Withdrawn 2022-08-14." in text
    assert "In force since" not in text
    assert "withdrawn: GHSA-1 (withdrawn 2022-08-14)" in drawn(render.audit(Audit(holds=False, ended=(ended,))))
    assert "withdrawn 2022-08-14" in drawn(render.ranking([notice]))


def test_a_record_in_force_is_shown_with_its_state() -> None:
    resolution = Resolution(
        name="GHSA-1", status="in_force", via="record", state="fixed", state_text="fixed in 2.0.0", groups=()
    )

    assert drawn(render.resolution(resolution)).strip() == "GHSA-1 is in force, fixed in 2.0.0 (it names a record)"

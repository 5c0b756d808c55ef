"""Changes in words: what happened to a document, and because of which other one."""

from datetime import UTC, datetime
from typing import Literal

import pytest
from rich.text import Text

from stream_car.cli.render_changes import change_lines, document_change, event
from stream_car.queries.answers import Change, ChangeCause, ChangedMember as Member, DocumentStatus
from stream_car.subscriptions.events import DocumentChange, RecordDocument, SnapshotRecord

Kind = Literal["placed", "corrected", "moved", "retracted", "released"]


def drawn_lines(
    scope: str,
    by: str,
    kind: Kind = "placed",
    *,
    left: tuple[Member, ...] = (),
    entered: tuple[Member, ...] = (),
) -> list[str]:
    cause = ChangeCause(id=by, revision=1, kind=kind, title="A title" if by == "new" else "")
    change = Change(position="g/0/1", scope=scope, seq=1, cause=cause, offset=0, left=left, entered=entered)
    return [line.plain for line in change_lines(change)]


@pytest.mark.parametrize(
    ("why", "ended"), [("retracted", "was retracted"), ("corrected", "was replaced by its correction")]
)
def test_what_its_publisher_removed_has_no_other_cause(why: Literal["retracted", "corrected"], ended: str) -> None:
    (line,) = drawn_lines("package=p", "old", why, left=(Member(id="old", type="release_note", why=why),))

    assert line.startswith(f"- old release_note {ended}")
    assert "because" not in line
    assert "superseded" not in line


def test_a_change_says_in_words_what_became_of_each_member() -> None:
    fixed = Member(id="old", type="advisory", why="voided", rule="r", outcome="fixed", outcome_text="fixed in 2.0.0")
    revised = Member(
        id="first", type="advisory", why="voided", rule="r", outcome="revised", outcome_text="revised 2024-01-05"
    )
    overruled = Member(
        id="low", type="ruling", why="voided", rule="r", outcome="overruled", outcome_text="overruled by A title"
    )
    came = Member(id="new", type="advisory", state="open", state_text="open")

    assert drawn_lines("package=p", "new", left=(fixed, revised, overruled), entered=(came,)) == [
        "- old advisory is fixed in 2.0.0, because of A title (r)",
        "~ first advisory was revised 2024-01-05",
        "- low ruling is overruled by A title (r)",
        "+ new advisory is in force here: open",
    ]


def test_a_link_names_its_document() -> None:
    linked = (Member(id="old", why="link", rule="link"),)

    assert drawn_lines("document=old", "new", left=linked) == [
        "- old is superseded: new (A title) names it in `supersedes`",
    ]
    assert drawn_lines("document=old", "old", left=linked) == [
        "- old is superseded: it says so itself",
    ]


def test_the_end_of_a_link_names_its_document() -> None:
    freed = (Member(id="old", rule="link"),)

    assert drawn_lines("document=old", "new", "retracted", entered=freed) == [
        "+ old is not superseded by a link any more: new (A title), which named it in `supersedes`, was retracted",
    ]
    assert drawn_lines("document=old", "old", "moved", entered=freed) == [
        "+ old is not superseded by a link any more: it was corrected, and only it said so",
    ]


def document_line(why: str, status: DocumentStatus, cause: ChangeCause, rule: str = "", *became: str) -> str:
    outcome, outcome_text = became or ("", "")
    change = DocumentChange(
        cursor=None,
        id="old",
        status=status,
        selected=True,
        revision=1,
        type="advisory",
        time=None,
        order=0,
        title="An advisory",
        source="",
        url="",
        why=why,
        rule=rule,
        scope="record=old",
        cause=cause,
        position="g/0/1",
        outcome=outcome,
        outcome_text=outcome_text,
    )
    return document_change(change).plain


@pytest.mark.parametrize("status", ["superseded", "retracted"])
def test_a_document_that_entered_a_scope_is_shown_with_its_status_of_now(status: DocumentStatus) -> None:
    itself = ChangeCause(id="old", revision=1, kind="placed")
    freed = ChangeCause(id="new", revision=1, kind="retracted", title="A fix")

    assert document_line("holds", status, itself) == f"+ An advisory was published; it is {status} now  old · advisory"
    assert document_line("holds", status, freed) == (
        f"+ An advisory entered a scope: A fix was retracted; it is {status} now  old · advisory"
    )
    assert document_line("holds", "in_force", freed) == "+ An advisory is in force: A fix was retracted  old · advisory"


def test_a_document_that_left_a_scope_is_shown_with_its_status_of_now_only_if_that_is_another() -> None:
    cause = ChangeCause(id="new", revision=1, title="A fix")
    because = "superseded, because of A fix (fixes)"

    assert document_line("voided", "superseded", cause, "fixes") == f"- An advisory is {because}  old · advisory"
    assert document_line("voided", "in_force", cause, "fixes") == (
        f"- An advisory was {because}; it is in force now  old · advisory"
    )


def test_what_became_of_a_document_is_told_in_the_word_of_its_domain() -> None:
    fix, itself = ChangeCause(id="new", revision=1, title="A fix"), ChangeCause(id="old", revision=1)
    end = "  old · advisory"

    assert document_line("voided", "superseded", fix, "fixes", "fixed", "fixed by A fix") == (
        f"- An advisory is fixed by A fix{end}"
    )
    assert document_line("voided", "superseded", fix, "fixes", "fixed", "fixed in 2.0.0") == (
        f"- An advisory is fixed in 2.0.0, because of A fix{end}"
    )
    assert document_line("voided", "superseded", fix, "edition", "revised", "revised 2024-01-03") == (
        f"~ An advisory was revised 2024-01-03{end}"
    )
    assert document_line("holds", "in_force", itself, "", "withdrawn", "withdrawn 2022-08-14") == (
        f"- An advisory is withdrawn 2022-08-14{end}"
    )
    assert document_line("holds", "superseded", itself, "", "fixed", "fixed in 2.0.0") == (
        f"+ An advisory was published; it is fixed in 2.0.0 now{end}"
    )


@pytest.mark.parametrize("keys", [("package", "vulnerability"), ("vulnerability", "package")])
def test_of_keys_with_as_many_names_the_first_in_the_alphabet_is_shown(keys: tuple[str, str]) -> None:
    values = {"package": ("tea",), "vulnerability": ("CVE-2026-1",)}
    document = RecordDocument(id="OSV-1@1", revision=1, type="advisory", time=datetime(2026, 1, 1, tzinfo=UTC), order=0)
    names = {key: values[key] for key in keys}
    line = event(SnapshotRecord(record="OSV-1", status="in_force", state="open", names=names, document=document))

    assert isinstance(line, Text)
    assert line.plain.startswith("= OSV-1 (tea) is")

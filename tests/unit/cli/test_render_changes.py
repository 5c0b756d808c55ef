"""Changes in words: what happened to a document, and because of which other one."""

from typing import Literal

import pytest

from stream_car.cli.render import change_lines
from stream_car.core.changes import Cause, FrontierChange, Member

Kind = Literal["placed", "corrected", "moved", "retracted", "released"]


def said(
    scope: str,
    by: str,
    kind: Kind = "placed",
    *,
    left: tuple[Member, ...] = (),
    entered: tuple[Member, ...] = (),
) -> list[str]:
    cause = Cause(id=by, revision=1, kind=kind, title="A title" if by == "new" else "")
    change = FrontierChange(scope=scope, seq=1, cause=cause, offset=0, left=left, entered=entered)
    return [line.plain for line in change_lines(change)]


@pytest.mark.parametrize(("why", "became"), [("retracted", "was retracted"), ("corrected", "gave way")])
def test_what_its_publisher_took_out_has_no_other_reason(why: Literal["retracted", "corrected"], became: str) -> None:
    (line,) = said("package=p", "old", why, left=(Member(id="old", type="release_note", why=why),))

    assert line.startswith(f"- old release_note {became}")
    assert "because" not in line
    assert "superseded" not in line


def test_a_link_names_the_document_that_says_it() -> None:
    linked = (Member(id="old", why="link", rule="link"),)

    assert said("document=old", "new", left=linked) == [
        "- old is void now: new (A title) names it in `supersedes`",
    ]
    assert said("document=old", "old", left=linked) == [
        "- old is void now: it says itself that it is superseded",
    ]


def test_the_end_of_a_link_names_the_document_that_said_it_last() -> None:
    freed = (Member(id="old", rule="link"),)

    assert said("document=old", "new", "retracted", entered=freed) == [
        "+ old is void by no link any more: new (A title), the last to name it in `supersedes`, was retracted",
    ]
    assert said("document=old", "old", "moved", entered=freed) == [
        "+ old is void by no link any more: it was corrected, and it was the last to say that it is superseded",
    ]

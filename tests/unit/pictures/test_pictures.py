"""Pictures describe in words what they show, and nothing that a publisher wrote breaks them."""

from collections.abc import Callable
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest

from benchmarks.paper import plots
from stream_car.core.rule_pack import Rule, RulePack
from stream_car.core.rules import Ruleset
from stream_car.pictures import chain, rule_pack, svg, timeline
from stream_car.pictures.scatter import ChartPoint, draw_scatter
from stream_car.queries.answers import Controlling, Ending, Evidence, Explanation, Group, History, Step, TimelineMember
from stream_car.rule_packs import load

EVIL = 'a<script>"&\x00\u202e]]>'
SPACE = "{http://www.w3.org/2000/svg}"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LABEL = Evidence(
    id="label", type="drug_label", time=datetime(2015, 1, 1, tzinfo=UTC), status="superseded", title="The label"
)
RECALL = Evidence(id="recall", type="drug_recall", time=datetime(2019, 1, 1, tzinfo=UTC), title="The recall")
STEP = Step(id="recall", rule="recall-voids-label", scope="drug=x")
GROUP = Group(anchor=LABEL, controlling=(Controlling(document=RECALL, path=(STEP,)),))


def member(name: str, kind: str, time: datetime, *, ended: Ending | None = None, title: str = "") -> TimelineMember:
    return TimelineMember(id=name, type=kind, revision=1, time=time, append_time=time, ended=ended, title=title)


HISTORY = History(
    scope="drug=x",
    members=(
        member(
            "label",
            "drug_label",
            LABEL.time,
            ended=Ending(time=RECALL.time, id="recall", rule="recall-voids-label"),
        ),
        member("recall", "drug_recall", RECALL.time),
    ),
)


def read(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)  # noqa: S314 (drawn here)


def words(picture: str) -> list[str]:
    return [element.text or "" for element in read(picture).iter(f"{SPACE}text")]


def description(picture: str) -> str:
    return read(picture).findtext(f"{SPACE}desc") or ""


def evil_group() -> str:
    bad = Evidence(id=EVIL, type=EVIL, time=EPOCH, title=EVIL)
    step = Step(id=EVIL, rule=EVIL, scope=EVIL)
    return chain.draw_chain(Group(anchor=LABEL, controlling=(Controlling(document=bad, path=(step,)),)))


def evil_history() -> str:
    return timeline.draw_timelines([History(scope=EVIL, members=(member(EVIL, EVIL, EPOCH, title=EVIL),))])


def evil_plot() -> str:
    return draw_scatter(EVIL, [ChartPoint(x=1, y=0, name=EVIL)], x_label=EVIL, y_label=EVIL, numbered=True)


def evil_bars() -> str:
    return plots.draw_bars(EVIL, [plots.ChartBar(name=EVIL, value=0.5, low=0.4, high=0.6, paper=0.2)], note=EVIL)


def evil_lines() -> str:
    return plots.draw_lines(EVIL, [EVIL, "b"], [plots.ChartLine(name=EVIL, values=(0.1, 0.2))], x_label=EVIL, note=EVIL)


EVIL_PICTURES = [evil_group, evil_history, evil_plot, evil_bars, evil_lines]


@pytest.mark.parametrize("drawn", EVIL_PICTURES)
def test_nothing_that_a_publisher_wrote_becomes_an_element(drawn: Callable[[], str]) -> None:
    picture = read(drawn())

    assert "script" not in {element.tag.removeprefix(SPACE) for element in picture.iter()}
    assert any("a<script>" in text for text in picture.itertext())
    assert not any(char in "".join(picture.itertext()) for char in "\x00\u202e")


@pytest.mark.parametrize("drawn", EVIL_PICTURES)
def test_a_picture_has_a_title_and_a_description_and_is_drawn_for_dark_pages_too(drawn: Callable[[], str]) -> None:
    picture = drawn()

    assert read(picture).get("role") == "img"
    assert read(picture).findtext(f"{SPACE}title")
    assert description(picture)
    assert "prefers-color-scheme:dark" in picture
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")


def test_a_chain_shows_what_is_superseded_the_rule_and_what_is_in_force() -> None:
    picture = chain.draw_chain(GROUP)

    assert description(picture) == "label is superseded by recall (recall-voids-label), which is in force."
    assert [text for text in words(picture) if "·" in text and ("superseded" in text or "force" in text)] == [
        "superseded · label",
        "in force · recall",
    ]
    assert "recall-voids-label" in words(picture)


def test_a_chain_that_leads_nowhere_explains_why() -> None:
    stranded = Group(anchor=LABEL, complete=False, reasons=("successor_missing",), missing=("label-2",))

    assert "its successor label-2 was never published" in description(chain.draw_chain(stranded))
    assert "unknown" in chain.draw_explanation(Explanation(name="nobody", status="unknown"))


def test_a_timeline_describes_when_each_member_was_in_force_and_what_ended_it() -> None:
    picture = timeline.draw_timelines([HISTORY])

    assert "label is in force from 2015-01-01 to 2019-01-01, ended by recall" in description(picture)
    assert "(recall-voids-label)" in description(picture)
    assert "recall is in force from 2019-01-01." in description(picture)


def test_bars_of_a_timeline_are_proportional_to_time() -> None:
    picture = read(timeline.draw_timelines([HISTORY]))
    rectangles = picture.iter(f"{SPACE}rect")
    bars = {bar.get("class"): bar for bar in rectangles if bar.get("class") in ("current", "bar")}
    ended, holds = (float(bars[kind].get("width") or 0) for kind in ("bar", "current"))

    assert float(bars["bar"].get("x") or 0) + ended == pytest.approx(float(bars["current"].get("x") or 0), abs=0.2)
    assert ended == pytest.approx(6 * holds, rel=0.01)


def test_an_unknown_scope_becomes_a_picture_of_words() -> None:
    assert words(timeline.draw_timelines([])) == ["No scope has these values"]


def test_the_diagonal_separates_what_is_superseded_from_what_is_in_force() -> None:
    picture = draw_scatter(
        "t",
        [ChartPoint(x=2, y=1, name="superseded"), ChartPoint(x=2, y=2, name="in force")],
        x_label="a",
        y_label="b",
    )

    assert description(picture) == "2 points; 1 lie below the diagonal."


def test_a_line_describes_where_it_begins_and_ends_and_has_a_point_for_each_place() -> None:
    picture = plots.draw_lines(
        "t", ["1", "2", "5"], [plots.ChartLine(name="risk", values=(0.5, 0.25, 0.0))], x_label="budget"
    )
    heights = [float(circle.get("cy") or 0) for circle in read(picture).iter(f"{SPACE}circle")][:3]

    assert description(picture) == "risk from 0.500 to 0.000"
    assert heights[1] - heights[0] == pytest.approx(heights[2] - heights[1])
    assert heights == sorted(heights)  # downwards


def test_long_words_are_cut_and_short_ones_are_not() -> None:
    assert svg.truncate("abcdef", 4) == "abc…"
    assert svg.truncate("abcd", 4) == "abcd"


def test_a_rule_pack_is_drawn_with_every_rule_and_with_types_that_nothing_ends() -> None:
    ruleset = load(["security"])
    [pack] = ruleset.packs

    drawn = rule_pack.draw_rule_pack(pack, ruleset)

    assert set(pack.types) <= set(words(drawn))
    assert description(drawn).replace("and ends with it", "").count(" ends ") == sum(
        rule.effect == "supersede" for rule in pack.rules
    )
    assert description(drawn).count(" amends ") == sum(rule.effect == "amend" for rule in pack.rules)
    assert "release_note ends advisory (fixed) by package, vulnerability." in description(drawn)


def test_names_in_a_rule_pack_cannot_break_its_picture() -> None:
    evil = EVIL.replace("\x00", "").replace("\u202e", "")
    rule = Rule(name=evil, superseding_type=evil, superseded_type=evil, scope_keys=(evil,), outcome=evil)
    pack = RulePack(name=evil, types=(evil, "alone"), rules=(rule,), type_descriptions={evil: evil})

    assert "alone" in words(rule_pack.draw_rule_pack(pack, Ruleset([pack])))

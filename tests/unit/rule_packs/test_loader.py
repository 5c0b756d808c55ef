"""Rule packs: what loads is free of contradictions, and what does not load says everything that is wrong."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path

import pytest
from msgspec.structs import replace

from stream_car.core import definitions
from stream_car.core.documents import Document
from stream_car.core.rule_pack import Key, Rule
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import RECORD
from stream_car.local.rule_cases import run_cases
from stream_car.rule_packs import RuleConnection, examine_pack, load, read_pack, shipped_names, with_shipped_words
from tests.support.repository import DATA, ROOT
from tests.support.rule_packs import GOOD, rule, without_words, written

PAGE = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")

ON_FACTS = GOOD.replace('superseded = "claim"', 'superseded = "fact"').replace("topic", "subject")


def document(id: str, type: str, time: int, scope: dict[str, tuple[str, ...]], **attributes: object) -> Document:
    return Document(id=id, type=type, time=time, scope=(scope,), attributes=attributes)


def reason(rules: Ruleset, later: Document, earlier: Document) -> str | None:
    result = definitions.voids(later=later, earlier=earlier, ruleset=rules)
    return None if result is None else result.rule


# What loads


def test_the_shipped_packs_are_shipped_and_load_together() -> None:
    assert shipped_names() == ("compliance", "facts", "incident", "legal", "medical", "memory", "security", "standards")
    assert {domain.name for domain in load().packs} == set(shipped_names())


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_pack_loads_alone_and_describes_itself_and_its_types(name: str) -> None:
    (domain,) = load([name]).packs

    assert domain.name == name
    assert domain.description
    assert all(domain.type_descriptions[kind] for kind in domain.types)


@pytest.mark.parametrize("name", shipped_names())
def test_every_rule_of_a_shipped_pack_connects_the_documents_invented_for_it(name: str) -> None:
    report = examine_pack(name)

    assert report.invented
    assert report.idle == ()
    assert {(f"{pair.rule}/earlier", f"{pair.rule}/later") for pair in report.connections} == {
        (pair.earlier, pair.later) for pair in report.connections if pair.earlier.endswith("/earlier")
    }
    others = {pair.rule for pair in report.connections if pair.earlier.endswith("/other")}
    assert all(report.ruleset is not None and report.ruleset.rules[name].differ_on for name in others)


def test_a_pack_is_read_into_values_with_sorted_keys(tmp_path: Path) -> None:
    text = GOOD.replace('scope = ["topic"]', 'scope = ["topic", "person"]\neffect = "amend"') + "[keys.person]\n"

    domain = read_pack(written(tmp_path, text))

    assert domain.types == ("claim", "denial")
    assert domain.keys == {"topic": Key(fold="lower"), "person": Key()}
    assert domain.rules == (
        Rule(
            name="denial-voids-claim",
            superseding_type="denial",
            superseded_type="claim",
            scope_keys=("person", "topic"),
            effect="amend",
        ),
    )


def test_editions_expand_to_every_ordered_pair_of_a_group(tmp_path: Path) -> None:
    domain = read_pack(written(tmp_path, 'editions = [["claim", "denial"]]\n' + GOOD))

    pairs = {(r.superseding_type, r.superseded_type) for r in domain.rules if r.scope_keys == (RECORD,)}
    assert pairs == {(a, b) for a in domain.types for b in domain.types}


def test_the_outcome_of_an_edition_is_the_state_that_it_brings(tmp_path: Path) -> None:
    text = (
        'editions = ["claim", "denial"]\nmaterial = ["place"]\nending_states = ["denied"]\n'
        + GOOD
        + 'outcome = "refuted"\n'
        '[states]\nclaim = "open"\ndenial = "denied"\n[edition_outcomes.claim]\ndenial = "reinstated"\n'
    )

    rules = load([written(tmp_path, text)])

    assert {name: rule.outcome for name, rule in rules.rules.items()} == {
        "denial-voids-claim": "refuted",
        "edition-claim": "updated",
        "edition-claim-of-denial": "reinstated",
        "edition-denial-of-claim": "denied",
        "edition-denial": "updated",
    }
    assert {rule.material for rule in rules.rules.values() if rule.scope_keys == (RECORD,)} == {("place",)}
    assert (rules.states["claim"], "claim" in rules.ending_types) == ("open", False)
    assert (rules.states["denial"], "denial" in rules.ending_types) == ("denied", True)


@pytest.mark.parametrize("name", shipped_names())
def test_outcomes_and_states_are_no_part_of_the_digest(name: str) -> None:
    [pack] = load([name]).packs
    bare = without_words(pack)

    assert Ruleset([bare]).digest == Ruleset([pack]).digest
    assert with_shipped_words(bare) == pack


def test_a_pack_of_the_same_name_with_other_rules_gets_no_words_of_the_shipped_one() -> None:
    [pack] = load(["security"]).packs
    bare = without_words(replace(pack, rules=pack.rules[1:]))

    assert with_shipped_words(bare) == bare


def test_every_rule_of_a_shipped_pack_that_voids_names_its_outcome() -> None:
    assert [rule.name for rule in load().rules.values() if rule.effect == "supersede" and not rule.outcome] == []


def test_groups_of_editions_leave_one_another_alone(tmp_path: Path) -> None:
    domain = read_pack(written(tmp_path, 'editions = [["claim"], ["denial"]]\n' + GOOD))

    pairs = {(r.superseding_type, r.superseded_type) for r in domain.rules if r.scope_keys == (RECORD,)}
    assert pairs == {("claim", "claim"), ("denial", "denial")}


def test_names_and_files_load_together_and_a_rule_may_name_types_of_another_pack(tmp_path: Path) -> None:
    rules = load([written(tmp_path, ON_FACTS), "facts"])

    fact = document("f", "fact", 1, {"subject": ("Rain",)})
    assert reason(rules, document("d", "denial", 2, {"subject": ("rain",)}), fact) == "denial-voids-claim"


def test_fixed_values_are_folded_as_their_key_is(tmp_path: Path) -> None:
    domain = read_pack(written(tmp_path, GOOD + '[fixed.claim]\ntopic = ["ALL"]\n'))

    assert domain.fixed == {"claim": {"topic": ("all",)}}


def test_the_digest_does_not_depend_on_the_order_in_which_packs_are_named() -> None:
    assert load(["facts", "legal"]).digest == load(["legal", "facts"]).digest != load(["legal"]).digest


# The report


def test_a_report_of_a_bad_pack_is_its_problems(tmp_path: Path) -> None:
    report = examine_pack(written(tmp_path, "colour = 1\n" + GOOD))

    assert len(report.problems) == 1
    assert report.ruleset is None
    assert report.connections == ()


def test_a_report_shows_the_pairs_of_a_sample_and_what_joined_nothing(tmp_path: Path) -> None:
    amendment = rule("claim-amends-claim", "claim", "claim", 'effect = "amend"')
    sample = [
        document("c1", "claim", 1, {"topic": ("Rain",)}),
        document("c2", "claim", 2, {"topic": ("rain",)}),
        document("d", "denial", 2, {"topic": ("rain",)}),
        document("elsewhere", "claim", 1, {"topic": ("snow",)}),
        document("lost", "claim", 1, {"place": ("here",)}),
        document("alien", "gossip", 1, {"topic": ("rain",)}),
    ]

    report = examine_pack(written(tmp_path, GOOD + amendment), sample)

    assert report.connections == (
        RuleConnection(later="c2", earlier="c1", rule="claim-amends-claim", scope="topic=rain", effect="amend"),
        RuleConnection(later="d", earlier="c1", rule="denial-voids-claim", scope="topic=rain"),
    )
    assert report.unscoped == ("lost",)
    assert report.missing_keys == (("claim", "topic", 1),)
    assert report.unknown == ("gossip",)
    assert not report.invented


def test_a_report_shows_explicit_links_and_idle_rules(tmp_path: Path) -> None:
    old = document("old", "claim", 1, {"topic": ("rain",)})
    new = Document(id="new", type="claim", time=0, supersedes=("old",))

    report = examine_pack(written(tmp_path, GOOD), [old, new])

    assert report.connections == (RuleConnection(later="new", earlier="old", rule="link", scope="document=old"),)
    assert report.idle == ("denial-voids-claim",)


def test_an_invented_sample_shows_what_differ_on_leaves_alone() -> None:
    pairs = {(pair.later.split("/")[1], pair.earlier.split("/")[1]) for pair in examine_pack("facts").connections}

    assert pairs == {("later", "earlier"), ("later", "other")}


def test_a_pack_is_examined_beside_others(tmp_path: Path) -> None:
    path = written(tmp_path, ON_FACTS)

    assert "Load the pack 'facts' too." in examine_pack(path).problems[0]
    assert [pair.rule for pair in examine_pack(path, beside=["facts"]).connections] == ["denial-voids-claim"]


# What the shipped packs mean


def test_any_name_of_a_vulnerability_leads_from_an_advisory_to_its_fix() -> None:
    advisory = document("a", "advisory", 1, {"ghsa": ("GHSA-x",), "alias": ("cve-1",), "package": ("Axios",)})
    release = document("r", "release_note", 2, {"cve": ("CVE-1",), "product": ("axios",)})
    stranger = document("s", "release_note", 2, {"cve": ("CVE-2",), "package": ("axios",)})

    assert reason(load(), release, advisory) == "release-fixes-advisory"
    assert reason(load(), stranger, advisory) is None


def test_a_withdrawal_voids_its_own_record_and_a_rejection_everyones() -> None:
    mine = document("a@1", "advisory", 1, {"record": ("a",), "cve": ("C",), "package": ("p",)})
    other = document("b@1", "advisory", 1, {"record": ("b",), "cve": ("C",), "package": ("p",)})
    withdrawn = document("a@2", "advisory_withdrawn", 2, {"record": ("a",), "cve": ("C",), "package": ("p",)})
    again = document("a@3", "advisory", 3, {"record": ("a",), "cve": ("C",), "package": ("p",)})
    rejected = document("x", "cve_rejected", 2, {"cve": ("C",), "package": ("p",)})
    rules = load()

    assert reason(rules, withdrawn, mine) == "edition-advisory_withdrawn-of-advisory"
    assert reason(rules, withdrawn, other) is None
    assert reason(rules, again, withdrawn) == "edition-advisory-of-advisory_withdrawn"
    assert reason(rules, rejected, mine) == reason(rules, rejected, other) == "rejected-voids-advisory"


def test_a_fix_and_its_reopening_void_one_another_in_time() -> None:
    fix = document("f", "patch_released", 1, {"cve": ("C",), "product": ("p",)})
    reopened = document("o", "cve_reopened", 2, {"cve": ("C",), "product": ("p",)})
    better = document("g", "patch_superseded", 3, {"cve": ("C",), "product": ("p",)})
    rules = load()

    assert reason(rules, reopened, fix) == "reopened-voids-patch"
    assert reason(rules, better, reopened) == "new-patch-fixes-reopened"
    assert reason(rules, better, fix) == "new-patch-replaces-patch"


def test_an_overruling_needs_the_question_unless_it_disposes_of_the_case() -> None:
    ruling = document("r", "ruling_issued", 1, {"case": ("A v. B",), "question": ("1",)})
    elsewhere = document("o", "ruling_overruled", 2, {"case": ("a v. b",), "question": ("2",)})
    whole = document("w", "case_overruled", 2, {"case": ("a v. b",)})

    assert reason(load(), elsewhere, ruling) is None
    assert reason(load(), whole, ruling) == "overruled-case-voids-ruling"


def test_a_host_is_in_the_state_reported_last() -> None:
    rules = load()
    for states in (["down", "restored"], ["restored", "down"], ["down", "degraded"], ["degraded", "restored"]):
        earlier, later = (document(s, f"system_{s}", n, {"host": ("H",)}) for n, s in enumerate(states))
        assert reason(rules, later, earlier) == f"{states[1]}-voids-{states[0]}"


APPENDIX = [
    ("R1", "blackout_announced", "pre_clearance_approved", "employee, ticker"),
    ("R2", "blackout_lifted", "blackout_announced", "employee, ticker"),
    ("R3", "emergency_exception", "blackout_announced", "employee, ticker"),
    ("R4", "exception_revoked", "emergency_exception", "employee, ticker"),
    ("R5", "watchlist_added", "pre_clearance_approved", "employee, ticker"),
    ("R6", "watchlist_removed", "watchlist_added", "employee, ticker"),
    ("R7", "conflict_amended", "conflict_disclosed", "employee"),
    ("R8", "conflict_cleared", "conflict_amended", "employee"),
    ("R9", "conflict_cleared", "conflict_disclosed", "employee"),
    ("R10", "policy_update", "policy_acknowledged", "policy"),
]


def test_compliance_is_appendix_a_with_the_scopes_of_the_data() -> None:
    (domain,) = load(["compliance"]).packs
    rows = [(r.name, r.superseding_type, r.superseded_type, ", ".join(r.scope_keys)) for r in domain.rules]

    assert rows == APPENDIX


def test_a_policy_update_voids_everyones_confirmation_without_naming_anybody() -> None:
    confirmation = document("c", "policy_acknowledged", 1, {"employee": ("e",), "ticker": ("T",)})
    update = Document(id="u", type="policy_update", time=2)

    voiding = definitions.voids(later=update, earlier=confirmation, ruleset=load())

    assert voiding == definitions.Reason(rule="R10", scope="policy=*")


def test_a_fact_is_void_by_another_value_and_reinforced_by_the_same() -> None:
    old = document("o", "fact", 1, {"subject": ("Pluto",), "relation": ("is",)}, value="planet")
    same = document("s", "fact", 2, {"subject": ("pluto",), "relation": ("is",)}, value="planet")
    new = document("n", "fact", 3, {"subject": ("pluto",), "relation": ("is",)}, value="dwarf")
    rules = load()

    assert reason(rules, same, old) is None
    assert reason(rules, new, old) == reason(rules, new, same) == "fact-voids-other-value"
    assert reason(rules, old, new) is None


def rows(path: Path) -> Iterator[tuple[str, frozenset[str]]]:
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            maps = row["scope"] if isinstance(row["scope"], list) else [row["scope"]]
            yield row["type"], frozenset(key for part in maps for key in part)


@pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data are not beside the repository (shared/data)")
def test_every_type_and_key_of_the_benchmark_data_is_known() -> None:
    rules = load()
    files = [*sorted(DATA.glob("*/documents.jsonl")), DATA / "sample.jsonl"]
    used = {row for path in files for row in rows(path)}

    assert len(files) > 1
    assert {kind for kind, _ in used} <= rules.pack_of.keys()
    assert {(kind, key) for kind, keys in used for key in keys if key not in rules.pack_of[kind].keys} == set()


# The page


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_pack_of_the_page_loads_and_does_what_the_page_says(tmp_path: Path) -> None:
    text, _ = examples("toml")
    path = written(tmp_path, text, "shipping.toml")
    rules = load([path])
    promise = document("p", "promise", 1, {"parcel": ("X-1",)})
    delay = document("d", "delay", 2, {"tracking_number": ("x-1",)})

    assert definitions.voids(later=delay, earlier=promise, ruleset=rules) == definitions.Reason(
        rule="delay-voids-promise", scope="parcel=X-1"
    )
    assert rules.anchor_types == {"promise", "notice"}
    assert examine_pack(path).idle == ()


def test_the_cases_of_the_page_hold(tmp_path: Path) -> None:
    pack, cases = examples("toml")
    written(tmp_path, pack, "shipping.toml")

    results = list(run_cases(written(tmp_path, cases, "cases.toml")))

    assert [result.failures for result in results] == [(), ()]


@pytest.mark.parametrize("name", shipped_names())
def test_every_amendment_of_a_shipped_pack_says_whether_it_follows_and_implies_no_rule(name: str) -> None:
    ruleset = load([name])

    assert all(rule.follows is not None for rule in ruleset.rules.values() if rule.effect == "amend")
    assert ruleset.derived == ()


def test_the_python_of_the_page_runs(tmp_path: Path) -> None:
    (text,) = examples("python")

    names = run_path(str(written(tmp_path, text, "page.py")))

    assert names["rules"].knows("fact")

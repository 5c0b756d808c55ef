"""`rules test` runs the examples of a pack, and says in one sentence what differs from what was expected."""

from pathlib import Path
from typing import cast

import pytest

from tests.support.command_line import invoke, parse
from tests.support.rule_packs import POLICIES_THAT_FOLLOW, written

CASES = """
rules = ["news.toml"]

[[cases]]
name = "an amendment ends with its policy"
in_force = ["new"]
superseded.old = { outcome = "replaced", by = "new", rule = "policy-replaces-policy" }
superseded.change = { outcome = "base_ended" }
documents = [
  { id = "old", type = "policy", time = 2022-01-01, scope = { policy = "leave" } },
  { id = "change", type = "policy_amended", time = 2023-01-01T09:00:00Z, scope = { policy = "leave" } },
  { id = "new", type = "policy", time = "2125-01-01", scope = { policy = "leave" } },
]

[[cases]]
name = "until then it is read with the policy"
as_of = 2024-01-01
in_force = ["old", "change"]
amended.old = ["change"]
documents = [
  { id = "old", type = "policy", time = 2022-01-01, scope = { policy = "leave" } },
  { id = "change", type = "policy_amended", time = 2023-01-01, scope = { policy = "leave" } },
  { id = "new", type = "policy", time = 2025-01-01, scope = { policy = "leave" } },
]
"""


def cases(tmp_path: Path, text: str) -> str:
    written(tmp_path, POLICIES_THAT_FOLLOW)
    return str(written(tmp_path, text, "cases.toml"))


def test_cases_that_hold_pass_with_exit_code_0(tmp_path: Path) -> None:
    result = invoke("rules", "test", cases(tmp_path, CASES))

    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "2 cases"), result.output


@pytest.mark.parametrize(
    ("old", "new", "failure"),
    [
        ('["new"]', '["new", "change"]', "change should be in force, but is superseded (base_ended): by new under "
         "'policy-replaces-policy-ends-policy_amended'."),
        ('["old", "change"]', '["old"]', "change is in force, but `in_force` does not name it."),
        ('outcome = "replaced"', 'outcome = "expired"', "old should be 'expired', but is superseded (replaced): by new "
         "under 'policy-replaces-policy'."),
        ('by = "new"', 'by = "change"', "old should be superseded by change under 'policy-replaces-policy', but is "
         "superseded (replaced): by new under 'policy-replaces-policy'."),
        ('amended.old = ["change"]', "amended.old = []",
         "old should be amended by nothing, but is amended by 'change'."),
        ("superseded.change", "superseded.new", "new should be superseded, but is in force."),
        ('"policy_amended"', '"memo"', "change was rejected (type_unknown)"),
    ],
)  # fmt: skip
def test_a_case_that_fails_says_what_differs_and_the_exit_code_is_1(
    tmp_path: Path, old: str, new: str, failure: str
) -> None:
    assert old in CASES
    result = invoke("rules", "test", cases(tmp_path, CASES.replace(old, new)), "--json")

    assert result.exit_code == 1
    assert failure in result.stdout.replace('\\"', '"')


def test_a_document_that_joins_no_scope_is_named_beside_a_failure(tmp_path: Path) -> None:
    text = CASES.replace(
        '"policy", time = 2022-01-01, scope = { policy', '"policy", time = 2022-01-01, scope = { polcy'
    )
    result = invoke("rules", "test", cases(tmp_path, text))

    assert result.exit_code == 1
    assert "old joins no scope: it has no 'policy'." in result.stdout


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rules = [", "The text is not TOML"),
        ("rules = []\ncases = []", "`rules` names no pack"),
        ('rules = ["news.toml"]\ncases = []', r"There is no [[cases]]"),
        (CASES.replace("in_force", "inforce", 1), "`inforce`"),
        (CASES.replace("news.toml", "security2"), "No rule pack is called 'security2'"),
        (CASES.replace('["new"]', '["newer"]'), "expects 'newer', but has no such document"),
        (CASES.replace("as_of = 2024-01-01", "as_of = 5"), "must be a date or a time"),
    ],
)
def test_a_file_that_is_wrong_is_an_error_with_exit_code_2(tmp_path: Path, text: str, problem: str) -> None:
    result = invoke("rules", "test", cases(tmp_path, text))

    assert result.exit_code == 2
    assert problem in " ".join(result.stderr.split())


def test_a_pack_warns_of_what_is_probably_not_meant_and_is_drawn(tmp_path: Path) -> None:
    text = POLICIES_THAT_FOLLOW.replace("follows = true\n", "").replace(
        "[keys.policy]\n", "[keys.policy]\n[keys.site]\n"
    )
    pack, picture = written(tmp_path, text), tmp_path / "pack.svg"

    result = invoke("rules", "check", str(pack), "--json", "--svg", str(picture))

    [report] = parse(result)
    assert report["warnings"] == [
        "A 'policy_amended' stays in force when 'policy' ends the 'policy' that it amends. Add follows = true to the "
        "rule 'amended-amends-policy', or follows = false if it is to stay.",
        "No rule ends documents of the type 'policy_amended'. Only a link or a retraction does.",
        "No type has the key 'site': no rule about a type of this pack uses it. Remove it, or add a rule.",
    ]
    assert "policy ends policy (replaced) by policy." in picture.read_text(encoding="utf-8")


def test_an_amendment_that_follows_only_in_part_is_a_warning_too(tmp_path: Path) -> None:
    rule = 'superseded = "policy"\nscope = ["policy"]\n\n'
    both = written(tmp_path, POLICIES_THAT_FOLLOW.replace("[types]", 'editions = ["policy"]\n\n[types]'))
    narrow = rule.replace('["policy"]', '["policy", "record"]')
    alone = written(tmp_path, POLICIES_THAT_FOLLOW.replace(rule, narrow), "alone.toml")

    [whole], [part] = (parse(invoke("rules", "check", str(file), "--json")) for file in (both, alone))

    [by_record] = cast(list[str], whole["warnings"])
    assert "stays in force when 'policy' ends the 'policy' that it amends by 'record'" in by_record
    [warning, _] = cast(list[str], part["warnings"])
    assert "stays in force when 'policy' ends the 'policy' that it amends by 'policy' and 'record'" in warning

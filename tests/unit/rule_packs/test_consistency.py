"""Rule packs that disagree do not load together, and each disagreement is one sentence."""

from pathlib import Path

import pytest

from stream_car.errors import InvalidRules
from stream_car.rule_packs import read_pack
from tests.support.rule_packs import GOOD, rule, written, wrong


def other(text: str) -> str:
    """A pack beside the good one, with names of its own."""
    return f'name = "other"\n[types]\nrumour = "x"\n{text}'


TOGETHER = [
    (
        "same name",
        GOOD.replace("claim", "c").replace("denial", "d"),
        "Two packs are called 'news'. Load only one of them, or rename one.",
    ),
    (
        "same type",
        'name = "other"\n[types]\nclaim = ""\n',
        "The type 'claim' is declared in the packs 'news' and 'other'. Keep it in one of them.",
    ),
    (
        "same rule name",
        other('[keys.topic]\nfold = "lower"\n' + rule("denial-voids-claim", "rumour", "rumour")),
        "More than one rule is called 'denial-voids-claim' (in 'news' and 'other'). Rename all but one.",
    ),
    (
        "same rule",
        other('[keys.topic]\nfold = "lower"\n' + rule("again")),
        "The rules 'denial-voids-claim' and 'again' have the same types, scope and effect. Remove one of them.",
    ),
    (
        "contradiction",
        other('[keys.topic]\nfold = "lower"\n' + rule("again", more='effect = "amend"')),
        "The rules 'denial-voids-claim' and 'again' contradict each other: for the same types and scope, "
        "one supersedes and the other amends. Remove one of them.",
    ),
    (
        "differ_on",
        other(
            '[keys.topic]\nfold = "lower"\n'
            + rule("a", "rumour", more='differ_on = ["x"]')
            + rule("b", "claim", more='differ_on = ["y"]')
        ),
        "The rules 'a' and 'b' void 'claim' in the same scope, but `differ_on` is 'x' in one and 'y' in "
        "the other. Make them equal.",
    ),
    (
        "folding",
        other('[keys.topic]\nfold = "upper"\n'),
        "The packs 'news' and 'other' fold the key 'topic' to 'lower' and to 'upper'. Write the same `fold` in both.",
    ),
    (
        "no folding",
        other("[keys.topic]\n"),
        "The packs 'news' and 'other' fold the key 'topic' to 'lower' and to 'none'. Write the same `fold` in both.",
    ),
    (
        "renaming",
        other('[keys.topic]\nrename = "theme"\n[keys.theme]\nfold = "lower"\n'),
        "The packs 'news' and 'other' read the key 'topic' as 'topic' and as 'theme'. Rename it to the same "
        "key in both, or give it another name in one of them.",
    ),
    (
        "foreign key",
        other('[keys.place]\nfold = "lower"\n' + rule("r", "rumour").replace("topic", "place")),
        "The rule 'r' of the pack 'other' folds 'place' to 'lower', but documents of 'claim' are read by the "
        "pack 'news', which does not declare that key. Declare it there, or do not fold it.",
    ),
]


@pytest.mark.parametrize(("text", "problem"), [row[1:] for row in TOGETHER], ids=[row[0] for row in TOGETHER])
def test_packs_that_disagree_do_not_load_together(tmp_path: Path, text: str, problem: str) -> None:
    assert problem in wrong(written(tmp_path, GOOD), written(tmp_path, text, "other.toml"))


def test_a_folding_that_contradicts_through_a_renamed_key_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, other('[keys.cve]\nrename = "vulnerability"\n[keys.vulnerability]\nfold = "lower"\n'))

    assert {
        "The packs 'security' and 'other' fold the key 'cve' (through 'vulnerability') to 'upper' and to 'lower'. "
        "Write the same `fold` in both.",
        "The packs 'security' and 'other' fold the key 'vulnerability' to 'upper' and to 'lower'. "
        "Write the same `fold` in both.",
    } == set(wrong("security", path))


def test_a_problem_between_the_rules_of_one_pack_is_found_by_reading_it_alone(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD + rule("again"))

    with pytest.raises(InvalidRules) as caught:
        read_pack(path)

    assert caught.value.problems == (
        f"{path}: The rules 'denial-voids-claim' and 'again' have the same types, scope and effect. "
        "Remove one of them.",
    )


def test_a_pack_with_types_of_another_can_be_read_alone(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.replace('superseded = "claim"', 'superseded = "fact"'))

    assert read_pack(path).rules[0].superseded_type == "fact"


def test_a_type_that_several_rules_do_not_know_is_one_problem(tmp_path: Path) -> None:
    problems = wrong(written(tmp_path, GOOD + rule("a", superseded="clam") + rule("b", superseded="clam")))

    assert len([problem for problem in problems if "'clam'" in problem]) == 1
    assert "The rules 'a' and 'b' of the pack" in " ".join(problems)

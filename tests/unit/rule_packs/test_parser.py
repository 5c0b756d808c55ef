"""A rule pack that does not load says everything that is wrong with it, one sentence each."""

import json
import re
from pathlib import Path

import pytest

from stream_car.rule_packs.parser import parse_pack
from tests.support.rule_packs import GOOD, written, wrong

PROBLEMS = [
    (
        "unknown field",
        "colour = 1\n" + GOOD,
        "The pack has no field 'colour'. It may have 'name', .*",
    ),
    (
        "misspelt field",
        "anchor_type = []\n" + GOOD,
        r"The pack has no field 'anchor_type'.*Did you mean 'anchor_types'\?",
    ),
    (
        "rule field",
        GOOD + "scopes = []\n",
        r"The rule 'denial-voids-claim' has no field 'scopes'.*mean 'scope'\?",
    ),
    (
        "key field",
        GOOD.replace("fold =", "case ="),
        r"The key 'topic' has no field 'case'. It may have 'fold', 'rename' and 'by_name'\.",
    ),
    (
        "follows without amending",
        GOOD + "follows = true\n",
        r"The rule 'denial-voids-claim' supersedes, so `follows` would have no effect. Remove it, .*",
    ),
    (
        "follows that is no answer",
        GOOD + 'effect = "amend"\nfollows = "yes"\n',
        r"'follows' of the rule 'denial-voids-claim' must be true or false\.",
    ),
    (
        "no name",
        GOOD.replace('name = "news"', ""),
        "The pack has no 'name'. Write name = .*",
    ),
    (
        "empty name",
        GOOD.replace('"news"', '""'),
        "The pack has an empty 'name'. Write name = .*",
    ),
    (
        "number for a name",
        GOOD.replace('"news"', "7"),
        "'name' of the pack must be text. Write name = .*",
    ),
    (
        "misspelt table",
        GOOD + "[types2]\n",
        r"The pack has no field 'types2'.*Did you mean 'types'\?",
    ),
    (
        "empty type",
        GOOD.replace('claim = "S', '"" = "S').replace('d = "claim"', 'd = "denial"'),
        r"A type has an empty name. Give it a name\.",
    ),
    (
        "type not described",
        GOOD.replace('"Something is claimed."', "1"),
        "The type 'claim' needs a description of one sentence. Write claim = .*",
    ),
    (
        "rule without a name",
        GOOD.replace('name = "denial-voids-claim"', ""),
        "Rule 1 has no 'name'. Write name = .*",
    ),
    (
        "rule without a type",
        GOOD.replace('superseded = "claim"', ""),
        "The rule 'denial-voids-claim' has no 'superseded'. .*",
    ),
    (
        "rule without a scope",
        GOOD.replace('scope = ["topic"]', ""),
        "`scope` of the rule .* must be a list of names. Write scope = .*",
    ),
    (
        "empty scope",
        GOOD.replace('["topic"]', "[]"),
        r"`scope` of the rule .* is empty. Name at least one\.",
    ),
    (
        "empty key",
        GOOD.replace('["topic"]', '["topic", ""]'),
        r"`scope` of the rule .* contains an empty name. Remove it\.",
    ),
    (
        "key twice",
        GOOD.replace('["topic"]', '["topic", "topic"]'),
        "The rule .* names a key of its scope twice. .*",
    ),
    (
        "key not declared",
        GOOD.replace('["topic"]', '["topics"]'),
        r"The rule .* uses the key 'topics', which is not declared. Add \[keys\.topics\]. Did you mean "
        r"'topic'\?",
    ),
    (
        "reserved key",
        GOOD.replace('["topic"]', '["document"]'),
        "The rule .* uses the key 'document', which is reserved .*",
    ),
    (
        "reserved key declared",
        GOOD + "[keys.amended]\n",
        r"The key 'amended' is reserved for explicit links. Choose another name\.",
    ),
    (
        "renamed to a reserved key",
        GOOD + '[keys.doc]\nrename = "document"\n',
        "The key 'document' is reserved .*",
    ),
    (
        "record folded",
        GOOD + '[keys.record]\nfold = "lower"\n',
        "The key 'record' names editions and is always read as written. .*",
    ),
    (
        "renamed to record",
        GOOD + '[keys.serial]\nrename = "record"\n',
        "The key 'serial' cannot be renamed to 'record'. .*",
    ),
    (
        "renamed to itself",
        GOOD.replace('fold = "lower"', 'rename = "topic"').replace('["topic"]', '["record"]'),
        "The key 'topic' is renamed to itself. .*",
    ),
    (
        "renamed to nothing",
        GOOD + '[keys.theme]\nrename = "topics"\n',
        r"The key 'theme' is renamed to 'topics', which is not declared. .*Did you mean 'topic'\?",
    ),
    (
        "renamed twice",
        GOOD + '[keys.a]\nrename = "b"\n[keys.b]\nrename = "topic"\n',
        r"The key 'a' is renamed to 'b', which is itself renamed. Rename 'a' to 'topic' directly\.",
    ),
    (
        "folded against its target",
        GOOD + '[keys.theme]\nrename = "topic"\nfold = "upper"\n',
        "The key 'theme' is folded to 'upper' but renamed to 'topic', which is folded to 'lower'. .*",
    ),
    (
        "old name in a rule",
        GOOD.replace('["topic"]', '["theme"]') + '[keys.theme]\nrename = "topic"\n',
        r"The rule .* uses the key 'theme', which is renamed to 'topic'. Write 'topic'\.",
    ),
    (
        "a name by a renamed key",
        GOOD + '[keys.theme]\nrename = "topic"\nby_name = true\n',
        "The key 'theme' is renamed. Give `by_name` to the key 'topic' instead.",
    ),
    (
        "by_name is no boolean",
        GOOD.replace('fold = "lower"', 'by_name = "yes"'),
        "'by_name' of the key 'topic' must be true or false.",
    ),
    (
        "unknown fold",
        GOOD.replace('"lower"', '"lover"'),
        "'fold' of the key 'topic' is 'lover'. It must be 'none', 'lower' or 'upper'. Did you mean "
        r"'lower'\?",
    ),
    (
        "unknown effect",
        GOOD + 'effect = "amends"\n',
        r"'effect' of the rule .* is 'amends'. It must be 'supersede' or 'amend'. Did you mean 'amend'\?",
    ),
    (
        "amends what differs",
        GOOD + 'effect = "amend"\ndiffer_on = ["v"]\n',
        "The rule .* amends, so `differ_on` would have no effect. .*",
    ),
    (
        "anchor",
        'anchor_types = ["claims"]\n' + GOOD,
        r"`anchor_types` names 'claims', which \[types\] does not declare. Did you mean 'claim'\?",
    ),
    (
        "edition",
        'editions = ["claims"]\n' + GOOD,
        r"`editions` names 'claims', which \[types\] does not declare. Did you mean 'claim'\?",
    ),
    (
        "edition twice",
        'editions = [["claim"], ["claim"]]\n' + GOOD,
        "`editions` names 'claim' twice. .*",
    ),
    (
        "edition as text",
        'editions = "claim"\n' + GOOD,
        "Write `editions` as a list of types, or as a list of such lists: .*",
    ),
    (
        "fixed type",
        GOOD + '[fixed.claims]\ntopic = ["*"]\n',
        r"\[fixed\.claims\] names the type 'claims', which \[types\] does not declare. Did you mean 'claim'\?",
    ),
    (
        "fixed key",
        GOOD + '[fixed.claim]\ntopics = ["*"]\n',
        r"\[fixed\.claim\] uses the key 'topics', which is not declared.*mean 'topic'\?",
    ),
    (
        "fixed record",
        GOOD + '[fixed.claim]\nrecord = ["1"]\n',
        r"\[fixed\.claim\] cannot fix 'record': .*",
    ),
    (
        "fixed as text",
        GOOD + '[fixed.claim]\ntopic = "*"\n',
        r"'topic' in \[fixed\.claim\] must be a list of names. Write topic = .*",
    ),
    (
        "fixed with a space",
        GOOD + '[fixed.claim]\ntopic = ["a "]\n',
        r"\[fixed\.claim\] has the value 'a '. Write it without outer spaces .*",
    ),
    (
        "types as text",
        'name = "news"\ntypes = "claim"\n',
        r"'types' must be a table. Begin it with \[types\]\.",
    ),
    (
        "rules as a table",
        GOOD.partition("[[rules]]")[0] + '[rules]\nname = "x"\n',
        r"`rules` must be a list of tables. Begin every rule with \[\[rules\]\]\.",
    ),
    (
        "state of no type",
        GOOD + '[states]\nclam = "open"\n',
        r"\[states\] names 'clam', which \[types\] does not declare. Did you mean 'claim'\?",
    ),
    (
        "state of two words",
        GOOD + '[states]\nclaim = "wide open"\n',
        r"The state 'wide open' may not contain spaces.*",
    ),
    (
        "ending state that no type has",
        'ending_states = ["denid"]\n' + GOOD + '[states]\ndenial = "denied"\n',
        r"`ending_states` names 'denid', which \[states\] gives to no type. Did you mean 'denied'\?",
    ),
    (
        "outcome of two words",
        GOOD + 'outcome = "no longer so"\n',
        r"The outcome 'no longer so' may not contain spaces.*",
    ),
    (
        "outcome of an amendment",
        GOOD + 'effect = "amend"\noutcome = "denied"\n',
        r"The rule 'denial-voids-claim' amends, so nothing becomes .* Remove `outcome` and `material`\.",
    ),
    (
        "outcome of no editions",
        'editions = ["claim"]\n' + GOOD + '[edition_outcomes.denial]\nclaim = "denied"\n',
        r"\[edition_outcomes.denial\] names 'claim', but `editions` has no group with both. Add them there\.",
    ),
    (
        "material as text",
        'material = "topic"\neditions = ["claim"]\n' + GOOD,
        r"`material` must be a list of names. Write material = .*",
    ),
    (
        "nothing at all",
        'name = "news"\n',
        r"The pack has neither types nor rules. Declare types under \[types\], or add \[\[rules\]\]\.",
    ),
    (
        "unknown type",
        GOOD.replace('superseded = "claim"', 'superseded = "clam"'),
        "The rule 'denial-voids-claim' of the pack 'news' names the type 'clam', which no loaded pack declares. "
        r"Declare it .*Did you mean 'claim'\?",
    ),
    (
        "type of a pack not loaded",
        GOOD.replace('superseded = "claim"', 'superseded = "fact"'),
        r"The rule .* names the type 'fact', which no loaded pack declares. Load the pack 'facts' too\.",
    ),
]


@pytest.mark.parametrize(("text", "message"), [row[1:] for row in PROBLEMS], ids=[r[0] for r in PROBLEMS])
def test_a_problem_is_one_sentence_that_says_what_to_change(tmp_path: Path, text: str, message: str) -> None:
    problems = wrong(written(tmp_path, text))

    assert any(re.search(message + "$", problem) for problem in problems), problems
    assert all("\n" not in problem for problem in problems)


@pytest.mark.parametrize("mark", ["=", ",", '"', " ", "\\", "\t", "\u0007"])
@pytest.mark.parametrize("what", ["pack", "type", "key", "rule"])
def test_a_name_with_a_mark_of_scope_names_is_refused(tmp_path: Path, what: str, mark: str) -> None:
    name = json.dumps(f"a{mark}b")
    text = {
        "pack": GOOD.replace('"news"', name),
        "type": GOOD.replace("[keys.topic]", f'{name} = "x"\n[keys.topic]'),
        "key": GOOD + f"[keys.{name}]\n",
        "rule": GOOD.replace('"denial-voids-claim"', name),
    }[what]

    (problem,) = wrong(written(tmp_path, text))

    assert f"The {what} {f'a{mark}b'!r} may not contain spaces, commas, quotes, backslashes or '='" in problem


def test_a_name_in_another_unicode_form_than_documents_is_refused(tmp_path: Path) -> None:
    (problem,) = wrong(written(tmp_path, GOOD + '[keys."cafe\u0301"]\n'))

    assert "must be written in Unicode form NFC" in problem


def test_bad_toml_names_the_file_and_the_line(tmp_path: Path) -> None:
    path = written(tmp_path, 'name = "news"\n[types\n')

    (problem,) = wrong(path)

    assert problem.startswith(f"{path}: The text is not TOML: ")
    assert "at line 2" in problem


def test_bad_toml_that_ends_too_soon_names_the_last_line(tmp_path: Path) -> None:
    (problem,) = wrong(written(tmp_path, 'name = "news"\neditions = ['))

    assert "at line 2, the end" in problem


def test_a_file_that_is_not_utf_8_or_not_there_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(b'name = "\xff"')

    assert wrong(path)[0] == f"{path}: The file is not UTF-8: the byte at 8 is wrong. Save it as UTF-8."
    assert "cannot be read: No such file" in wrong(tmp_path / "absent.toml")[0]


def test_a_misspelt_pack_is_answered_with_the_one_meant() -> None:
    (problem,) = wrong("securty")

    assert problem.startswith("No rule pack is called 'securty'. Did you mean 'security'? Choose from 'compliance'")


def test_all_problems_of_all_packs_are_listed_at_once(tmp_path: Path) -> None:
    first = written(tmp_path, GOOD.replace('["topic"]', '["topics"]').replace('d = "claim"', 'd = "clam"'))
    second = written(tmp_path, 'name = "other"\ncolour = 1\n[types]\nclaim = ""\n', "other.toml")

    problems = wrong(first, second, "nothing")

    assert [any(text in problem for problem in problems) for text in ("'topics'", "'colour'", "'nothing'")] == [
        True
    ] * 3
    assert any("The type 'claim' is declared in the packs 'news' and 'other'" in problem for problem in problems)


def test_a_cause_that_several_rules_have_is_one_problem() -> None:
    rules = "".join(
        f'[[rules]]\nname = "r{n}"\nsuperseding = "a"\nsuperseded = "{kind}"\nscope = ["topic"]\n'
        for n, kind in enumerate(("a", "b", "b"))
    )
    _, problems = parse_pack(f'name = "x"\n[types]\na = "An a."\n{rules}', "x.toml")

    assert problems == (
        "x.toml: The rule 'r0', the rule 'r1', the rule 'r2' use the key 'topic', which is not declared. "
        "Add [keys.topic].",
    )

"""A rule pack that does not load says everything that is wrong with it, one sentence each."""

import json
import re
from pathlib import Path

import pytest

from tests.support.rule_packs import GOOD, written, wrong

PROBLEMS = [
    (
        "unknown field",
        "colour = 1\n" + GOOD,
        "a pack has no field 'colour'; it may have 'name', .*",
    ),
    (
        "misspelt field",
        "anchor_type = []\n" + GOOD,
        r"a pack has no field 'anchor_type'.*did you mean 'anchor_types'\?",
    ),
    (
        "rule field",
        GOOD + "scopes = []\n",
        r"the rule 'denial-voids-claim' has no field 'scopes'.*mean 'scope'\?",
    ),
    (
        "key field",
        GOOD.replace("fold =", "case ="),
        "the key 'topic' has no field 'case'; it may have 'fold' and 'rename'",
    ),
    (
        "no name",
        GOOD.replace('name = "news"', ""),
        "the pack has no 'name'; write name = .*",
    ),
    (
        "empty name",
        GOOD.replace('"news"', '""'),
        "the pack has an empty 'name'; write name = .*",
    ),
    (
        "number for a name",
        GOOD.replace('"news"', "7"),
        "'name' of the pack must be text; write name = .*",
    ),
    (
        "misspelt table",
        GOOD + "[types2]\n",
        r"a pack has no field 'types2'.*did you mean 'types'\?",
    ),
    (
        "empty type",
        GOOD.replace('claim = "S', '"" = "S').replace('d = "claim"', 'd = "denial"'),
        "a type has an empty name; give it one",
    ),
    (
        "type not described",
        GOOD.replace('"Something is said."', "1"),
        "describe the type 'claim' in one sentence: .*",
    ),
    (
        "rule without a name",
        GOOD.replace('name = "denial-voids-claim"', ""),
        "rule 1 has no 'name'; write name = .*",
    ),
    (
        "rule without a type",
        GOOD.replace('superseded = "claim"', ""),
        "the rule 'denial-voids-claim' has no 'superseded'; .*",
    ),
    (
        "rule without a scope",
        GOOD.replace('scope = ["topic"]', ""),
        "`scope` of the rule .* must be a list of names: .*",
    ),
    (
        "empty scope",
        GOOD.replace('["topic"]', "[]"),
        "`scope` of the rule .* is empty; name at least one",
    ),
    (
        "empty key",
        GOOD.replace('["topic"]', '["topic", ""]'),
        "`scope` of the rule .* holds an empty name; remove it",
    ),
    (
        "key twice",
        GOOD.replace('["topic"]', '["topic", "topic"]'),
        "the rule .* names a key of its scope twice; .*",
    ),
    (
        "key not declared",
        GOOD.replace('["topic"]', '["topics"]'),
        r"the rule .* uses the key 'topics', which is not declared: add \[keys\.topics\]; did you mean "
        r"'topic'\?",
    ),
    (
        "reserved key",
        GOOD.replace('["topic"]', '["document"]'),
        "the rule .* uses the key 'document', which is reserved .*",
    ),
    (
        "reserved key declared",
        GOOD + "[keys.amended]\n",
        "the key 'amended' is reserved for explicit links; choose another name",
    ),
    (
        "renamed to a reserved key",
        GOOD + '[keys.doc]\nrename = "document"\n',
        "the key 'document' is reserved .*",
    ),
    (
        "record folded",
        GOOD + '[keys.record]\nfold = "lower"\n',
        "the key 'record' names editions and is always read as written; .*",
    ),
    (
        "renamed to record",
        GOOD + '[keys.serial]\nrename = "record"\n',
        "the key 'serial' cannot be renamed to 'record'; .*",
    ),
    (
        "renamed to itself",
        GOOD.replace('fold = "lower"', 'rename = "topic"').replace('["topic"]', '["record"]'),
        "the key 'topic' is renamed to itself; .*",
    ),
    (
        "renamed to nothing",
        GOOD + '[keys.theme]\nrename = "topics"\n',
        r"the key 'theme' is renamed to 'topics', which is not declared: .*did you mean 'topic'\?",
    ),
    (
        "renamed twice",
        GOOD + '[keys.a]\nrename = "b"\n[keys.b]\nrename = "topic"\n',
        "the key 'a' is renamed to 'b', which is itself renamed: rename 'a' to 'topic' at once",
    ),
    (
        "folded against its target",
        GOOD + '[keys.theme]\nrename = "topic"\nfold = "upper"\n',
        "the key 'theme' is folded 'upper' but becomes 'topic', which is folded 'lower': .*",
    ),
    (
        "old name in a rule",
        GOOD.replace('["topic"]', '["theme"]') + '[keys.theme]\nrename = "topic"\n',
        "the rule .* uses the key 'theme', which is renamed to 'topic': write 'topic'",
    ),
    (
        "unknown fold",
        GOOD.replace('"lower"', '"lover"'),
        "fold of the key 'topic' is 'lover'; it must be 'none', 'lower' or 'upper'; did you mean "
        r"'lower'\?",
    ),
    (
        "unknown effect",
        GOOD + 'effect = "amends"\n',
        r"effect of the rule .* is 'amends'; it must be 'supersede' or 'amend'; did you mean 'amend'\?",
    ),
    (
        "amends what differs",
        GOOD + 'effect = "amend"\ndiffer_on = ["v"]\n',
        "the rule .* amends, and voids nothing that could differ; .*",
    ),
    (
        "anchor",
        'anchor_types = ["claims"]\n' + GOOD,
        r"anchor_types names 'claims', which \[types\] does not declare; did you mean 'claim'\?",
    ),
    (
        "edition",
        'editions = ["claims"]\n' + GOOD,
        r"editions names 'claims', which \[types\] does not declare; did you mean 'claim'\?",
    ),
    (
        "edition twice",
        'editions = [["claim"], ["claim"]]\n' + GOOD,
        "editions names 'claim' twice; .*",
    ),
    (
        "edition as text",
        'editions = "claim"\n' + GOOD,
        "write `editions` as a list of types, or a list of such lists: .*",
    ),
    (
        "fixed type",
        GOOD + '[fixed.claims]\ntopic = ["*"]\n',
        r"\[fixed\.claims\] is for a type that \[types\] does not declare; did you mean 'claim'\?",
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
        r"'topic' in \[fixed\.claim\] must be a list of names: topic = .*",
    ),
    (
        "fixed with a space",
        GOOD + '[fixed.claim]\ntopic = ["a "]\n',
        r"\[fixed\.claim\] has the value 'a ': write it without outer spaces .*",
    ),
    (
        "types as text",
        'name = "news"\ntypes = "claim"\n',
        r"'types' must be a table: begin it with \[types\]",
    ),
    (
        "rules as a table",
        GOOD.partition("[[rules]]")[0] + '[rules]\nname = "x"\n',
        r"write every rule as a table of its own that begins with \[\[rules\]\]",
    ),
    (
        "nothing at all",
        'name = "news"\n',
        r"declare types under \[types\], or add \[\[rules\]\]; the pack has neither",
    ),
    (
        "unknown type",
        GOOD.replace('superseded = "claim"', 'superseded = "clam"'),
        "the rule 'denial-voids-claim' names the type 'clam', which no loaded pack declares; declare it "
        r".*did you mean 'claim'\?",
    ),
    (
        "type of a pack not loaded",
        GOOD.replace('superseded = "claim"', 'superseded = "fact"'),
        "the rule .* names the type 'fact', which no loaded pack declares; load the pack 'facts' too",
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

    assert f"the {what} {f'a{mark}b'!r} may not contain spaces, commas, quotes, backslashes or '='" in problem


def test_a_name_in_another_unicode_form_than_documents_is_refused(tmp_path: Path) -> None:
    (problem,) = wrong(written(tmp_path, GOOD + '[keys."cafe\u0301"]\n'))

    assert "must be written in Unicode form NFC" in problem


def test_bad_toml_names_the_file_and_the_line(tmp_path: Path) -> None:
    path = written(tmp_path, 'name = "news"\n[types\n')

    (problem,) = wrong(path)

    assert problem.startswith(f"{path}: this is not TOML: ")
    assert "at line 2" in problem


def test_bad_toml_that_ends_too_soon_names_the_last_line(tmp_path: Path) -> None:
    (problem,) = wrong(written(tmp_path, 'name = "news"\neditions = ['))

    assert "at line 2, the end" in problem


def test_a_file_that_is_not_utf_8_or_not_there_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(b'name = "\xff"')

    assert wrong(path)[0] == f"{path}: this is not UTF-8: a byte at 8 is wrong; save it as UTF-8"
    assert "cannot be read: No such file" in wrong(tmp_path / "absent.toml")[0]


def test_a_misspelt_pack_is_answered_with_the_one_meant() -> None:
    (problem,) = wrong("securty")

    assert problem.startswith("no pack is called 'securty'; did you mean 'security'?; choose from 'compliance'")


def test_all_problems_of_all_packs_are_listed_at_once(tmp_path: Path) -> None:
    first = written(tmp_path, GOOD.replace('["topic"]', '["topics"]').replace('d = "claim"', 'd = "clam"'))
    second = written(tmp_path, 'name = "other"\ncolour = 1\n[types]\nclaim = ""\n', "other.toml")

    problems = wrong(first, second, "nothing")

    assert [any(text in problem for problem in problems) for text in ("'topics'", "'colour'", "'nothing'")] == [
        True
    ] * 3
    assert any("the type 'claim' is declared in the packs 'news' and 'other'" in problem for problem in problems)

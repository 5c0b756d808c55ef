"""The command line from end to end: publish, ask in every way, and be told what is wrong."""

from pathlib import Path
from typing import Protocol

import msgspec
import pytest
from click.testing import CliRunner, Result

import stream_car
from stream_car.cli import main

ADVISORY = {
    "id": "CVE-2021-44228",
    "type": "advisory",
    "time": "2021-12-10T00:00:00Z",
    "scope": {"cve": ["CVE-2021-44228"], "package": ["log4j-core"]},
    "title": "Log4Shell: remote code execution",
    "text": "Logging a string runs code from the attacker's server.",
}
RELEASE = {
    "id": "log4j-2.15.0",
    "type": "release_note",
    "time": "2021-12-13T00:00:00Z",
    "scope": {"cve": ["CVE-2021-44228"], "package": ["log4j-core"]},
    "title": "Log4j 2.15.0",
}
LOOSE = {"id": "loose", "type": "advisory", "time": "2021-12-11T00:00:00Z", "title": "About nothing in particular"}
LATER = {"id": "later", "type": "fact", "time": "2199-01-01T00:00:00Z", "scope": {"subject": "x", "relation": "y"}}


class Run(Protocol):
    """Calls `stream-car` on one directory of data."""

    def __call__(self, *arguments: str, text: str | None = None) -> Result: ...


def lines(*documents: object) -> str:
    return "".join(msgspec.json.encode(document).decode() + "\n" for document in documents)


def parsed(result: Result) -> list[dict[str, object]]:
    return [msgspec.json.decode(line, type=dict[str, object]) for line in result.stdout.splitlines()]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    data = tmp_path / "data"

    def invoke(*arguments: str, text: str | None = None) -> Result:
        return CliRunner(env={"STREAM_CAR_DATA": str(data)}).invoke(main, arguments, input=text)

    return invoke


@pytest.fixture
def filled(run: Run) -> Run:
    assert run("publish", "-", text=lines(ADVISORY, RELEASE)).exit_code == 0
    return run


def test_publishing_sums_up_outcomes_scopes_and_missing_keys(run: Run) -> None:
    result = run("publish", "-", text=lines(ADVISORY, ADVISORY, LOOSE))

    assert result.exit_code == 0
    assert "accepted" in result.stdout
    assert "duplicate" in result.stdout
    assert "1 document is in no scope" in result.stdout
    assert "1 document of the type advisory lacks the key package" in result.stdout


def test_publishing_reads_files_in_the_order_given(run: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.json"
    first.write_text(lines(ADVISORY))
    second.write_text(f"[{lines(RELEASE)}]")
    (counts,) = parsed(run("publish", str(first), str(second), "--json"))

    assert counts["outcomes"] == {"accepted": 2}


def test_an_attribute_that_looks_like_a_misspelt_field_is_hinted_at(run: Run) -> None:
    wrong = [RELEASE | {"id": name, name: ["CVE-2021-44228"]} for name in ("superseeds", "superseded-by", "colour")]
    both = RELEASE | {"id": "both", "source": "a", "sources": ["a"]}
    result = run("publish", "-", text=lines(*wrong, both))

    assert result.exit_code == 0
    assert "1 document has the attribute `superseeds`. Did you mean `supersedes`?" in result.stdout
    assert "Did you mean `superseded_by`?" in result.stdout
    assert result.stdout.count("Did you mean") == 2


def test_what_is_rejected_is_named_kept_and_shown_with_its_bytes(run: Run) -> None:
    result = run("publish", "-", text=lines(ADVISORY) + '{"id": "half\n')

    assert result.exit_code == 1
    assert "syntax (1)" in result.stdout
    (item,) = parsed(run("rejected", "list", "--json"))
    assert item["code"] == "syntax"
    assert "syntax" in run("rejected", "list").stdout
    assert '{"id": "half' in run("rejected", "show", str(item["offset"])).stdout
    assert run("rejected", "show", str(item["offset"]), "--bytes").stdout == '{"id": "half'


def test_asking_for_a_rejection_that_is_none_says_where_to_look(filled: Run) -> None:
    result = filled("rejected", "show", "0")

    assert result.exit_code == 2
    assert "stream-car rejected list" in result.stderr


def test_a_question_is_answered_with_what_controls_its_anchor(filled: Run) -> None:
    people = filled("query", "remote code execution")
    details = filled("query", "remote code execution", "--verbose")
    (program,) = parsed(filled("query", "remote code execution", "--json"))

    assert people.exit_code == 0
    assert "In force since 2021-12-13. Replaces Log4Shell: remote code execution (2021-12-10)" in people.stdout
    assert "✔ Complete: none of the 2 messages published so far supersedes what is shown." in people.stdout
    assert "CVE-2021-44228 ──fixed──▶ log4j-2.15.0" in details.stdout
    assert "phi" in details.stdout and "phi" not in people.stdout
    assert [document["id"] for document in msgspec.convert(program["results"], list[dict[str, object]])] == [
        "log4j-2.15.0"
    ]


def test_as_of_an_earlier_day_the_advisory_was_in_force(filled: Run) -> None:
    then = filled("query", "remote code execution", "--as-of", "2021-12-11").stdout

    assert "Log4Shell: remote code execution" in then
    assert "log4j-2.15.0" not in then


def test_ids_resolve_to_what_controls_them(filled: Run) -> None:
    first, second = parsed(filled("resolve", "CVE-2021-44228#2", "nobody", "--json"))

    assert (first["status"], first["via"]) == ("superseded", "chunk")
    assert second["status"] == "unknown"


@pytest.mark.parametrize(("ids", "code"), [(["CVE-2021-44228"], 1), (["log4j-2.15.0"], 0)])
def test_a_check_ends_with_1_if_the_set_is_not_safe(filled: Run, ids: list[str], code: int) -> None:
    result = filled("check", *ids)

    assert result.exit_code == code
    assert ("✔ Safe" in result.stdout) is (code == 0)


def test_scopes_are_found_by_any_of_their_values(filled: Run) -> None:
    assert "1 in force" in filled("frontier", "package=LOG4J-core", "--verbose").stdout
    wide, narrow = parsed(filled("frontier", "cve=CVE-2021-44228", "--json"))
    assert narrow["scope"] == "vulnerability=CVE-2021-44228"
    assert wide["scope"] == "package=log4j-core, vulnerability=CVE-2021-44228"
    assert "No scope has these values" in filled("frontier", "package=unheard-of").stdout


def test_a_history_tells_what_ended_each_member(filled: Run) -> None:
    text = " ".join(filled("history", "package=log4j-core", "--verbose").stdout.split())

    assert "fixed by Log4j 2.15.0 log4j-2.15.0" in text


AMENDING = [
    ADVISORY,
    {
        **ADVISORY,
        "id": "kev",
        "type": "known_exploited",
        "time": "2021-12-11T00:00:00Z",
        "title": "Exploited: Log4Shell",
    },
    {"id": "RFC1035", "type": "standard", "time": "1987-11-01T00:00:00Z", "title": "Domain names"},
    {
        "id": "RFC2181",
        "type": "standard",
        "time": "1997-07-01T00:00:00Z",
        "title": "Clarifications",
        "amends": ["RFC1035"],
    },
]


@pytest.mark.parametrize(
    ("name", "words", "by", "rule"),
    [
        ("CVE-2021-44228", "runs code from the server", "Exploited: Log4Shell", "exploitation-amends-advisory"),
        ("RFC1035", "domain names", "Clarifications", "link"),
    ],
)
def test_what_amends_a_document_is_shown_with_it_wherever_it_is_answered(
    run: Run, name: str, words: str, by: str, rule: str
) -> None:
    assert run("publish", "-", text=lines(*AMENDING)).exit_code == 0

    for result in (run("query", words), run("resolve", name), run("explain", name)):
        assert f"amended by: {by}" in result.stdout
        assert f"{name} ──{rule}──▶" in result.stdout
    [resolution] = parsed(run("resolve", name, "--json"))
    assert resolution["status"] == "in_force"


def test_changes_tell_of_what_amends(run: Run) -> None:
    run("publish", "-", text=lines(*AMENDING))

    assert "RFC2181 standard amends it by name" in run("changes").stdout
    assert "amends what is here (exploitation-amends-advisory)" in run("changes", "--verbose").stdout


def test_changes_continue_after_a_position(filled: Run) -> None:
    every = parsed(filled("changes", "--json"))
    position = str(every[0]["position"])
    rest = parsed(filled("changes", "--json", "--after", position))

    assert len(every) >= 2
    assert rest == every[1:]
    assert position in filled("changes", "--verbose").stdout
    assert "CVE-2021-44228 advisory is fixed by Log4j 2.15.0" in filled("changes").stdout


def test_a_watch_of_past_changes_says_what_became_of_each_record_and_when(filled: Run) -> None:
    assert " ".join(filled("watch").stdout.split()) == (
        "2021-12-10 + CVE-2021-44228 (log4j-core) published (open); it is fixed now Log4Shell: remote code execution "
        "2021-12-13 - CVE-2021-44228 (log4j-core) fixed by Log4j 2.15.0 (open → fixed) "
        "2021-12-13 + log4j-2.15.0 (log4j-core) published (fixed) Log4j 2.15.0"
    )


def test_a_watch_shows_only_the_outcomes_and_the_times_that_it_is_for(filled: Run) -> None:
    fixed = filled("watch", "--only", "withdrawn,fixed").stdout
    later = filled("watch", "--since", "2021-12-11").stdout

    assert [line.split()[2] for line in fixed.splitlines() if line.startswith("2021")] == ["CVE-2021-44228"]
    assert "2021-12-10" not in later
    assert later.count("2021-12-13") == 2


def test_a_watch_of_a_lockfile_shows_what_became_of_its_packages(filled: Run, tmp_path: Path) -> None:
    for name, is_shown in (("log4j-core", True), ("Log4J_Core", True), ("tea", False)):
        (tmp_path / "requirements.txt").write_text(f"{name}==1.0\n")
        shown = filled("watch", "--lockfile", str(tmp_path / "requirements.txt")).stdout
        assert ("CVE-2021-44228" in shown) is is_shown, name
    (tmp_path / "requirements.txt").write_bytes(b"\xff")
    assert filled("watch", "--lockfile", str(tmp_path / "requirements.txt")).exit_code == 2


def test_a_list_of_changes_has_dates_and_says_if_it_was_cut(filled: Run) -> None:
    cut, whole = filled("changes", "--limit", "1"), filled("changes")

    assert "2021-12-10" in cut.stdout
    assert "There are more changes. Continue with --after" in cut.stderr
    assert "2021-12-13" in whole.stdout
    assert "more changes" not in whole.stderr
    assert "2021-12-10" not in filled("changes", "--since", "2021-12-11").stdout


def test_a_watch_of_past_documents_says_what_happened_because_of_what_once_per_cause(filled: Run) -> None:
    text = " ".join(filled("watch", "--view", "document").stdout.split())
    advisory = "Log4Shell: remote code execution"

    assert text == (
        f"+ {advisory} was published; it is fixed by Log4j 2.15.0 now CVE-2021-44228 · advisory · 2021-12-10 "
        f"- {advisory} is fixed by Log4j 2.15.0 CVE-2021-44228 · advisory · 2021-12-13 "
        "+ Log4j 2.15.0 is in force log4j-2.15.0 · release_note · 2021-12-13"
    )


def test_an_explanation_names_what_supersedes_the_document(filled: Run) -> None:
    text = filled("explain", "CVE-2021-44228").stdout

    assert "CVE-2021-44228 is fixed by Log4j 2.15.0" in text
    assert "log4j-2.15.0 (fixed, release-fixes-advisory)" in text


def test_a_document_in_no_scope_is_explained_with_the_keys_that_its_type_needs(run: Run) -> None:
    run("publish", "-", text=lines({**ADVISORY, "scope": {"cev": "CVE-2021-44228"}}, LATER))
    text = run("explain", str(ADVISORY["id"])).stdout

    assert "It joins no scope, so no rule applies to it" in text
    assert "package and vulnerability" in text
    assert "stream-car rules show --data" in text
    assert "joins no scope" not in run("explain", str(LATER["id"])).stdout  # it waits for its time


def test_what_a_search_finds_can_be_explained_by_its_id(filled: Run) -> None:
    assert str(ADVISORY["id"]) in filled("search", "Log4Shell").stdout


def test_a_publication_of_nothing_says_so(run: Run) -> None:
    result = run("publish", "-", text="")

    assert (result.exit_code, result.stdout) == (0, "There was nothing to publish: the input has no documents.\n")


def test_a_document_ahead_of_its_time_is_pending(run: Run) -> None:
    run("publish", "-", text=lines(LATER))
    (waiting,) = parsed(run("pending", "--json"))

    assert waiting.pop("position")
    assert waiting == {"id": "later", "revision": 1, "time": "2199-01-01T00:00:00Z"}
    assert "2199-01-01  later (revision 1)" in run("pending").stdout


def test_a_certificate_for_a_later_time_says_that_what_waits_does_not_count(filled: Run) -> None:
    later = {**RELEASE, "id": "log4j-3", "title": "Log4j 3", "time": "2199-01-01T00:00:00Z"}
    filled("publish", "-", text=lines(later))
    sentence = "3 messages published so far, not counting 1 document that waits for its time, supersedes"
    for command in (("query", "remote code execution"), ("check", "log4j-2.15.0")):
        assert sentence in " ".join(filled(*command, "--as-of", "2199-06-01").stdout.split())


def test_asking_before_anything_was_published_says_what_to_do(run: Run, tmp_path: Path) -> None:
    result = run("query", "anything")

    assert result.exit_code == 2
    assert "stream-car publish FILE" in result.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["frontier", "package"], "is not KEY=VALUE"),
        (["frontier", "package=a", "package=b"], "given twice"),
        (["query", "x", "--as-of", "yesterday"], "2024-01-31"),
        (["query", "x", "--k", "0"], "--k"),
        (["publish", "no-such-file"], "no-such-file"),
        (["rules", "show", "no-such-pack"], "no-such-pack"),
    ],
)
def test_a_wrong_request_ends_with_2_and_says_what_is_wrong(filled: Run, arguments: list[str], complaint: str) -> None:
    result = filled(*arguments)

    assert result.exit_code == 2
    assert complaint in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "quantum chromodynamics"],
        ["resolve", "nobody"],
        ["explain", "nobody"],
        ["frontier", "package=unheard-of"],
        ["history", "package=unheard-of"],
    ],
)
def test_finding_nothing_ends_with_1(filled: Run, arguments: list[str]) -> None:
    assert filled(*arguments).exit_code == 1
    assert filled(*arguments, "--json").exit_code == 1
    assert filled(*arguments).stderr == ""


def test_a_key_that_no_rule_uses_gets_the_one_that_was_meant(filled: Run) -> None:
    text = filled("frontier", "pakage=lodash").stdout

    assert "No rule uses the key 'pakage'. Did you mean 'package'?" in text
    assert "No rule uses" not in filled("frontier", "package=unheard-of").stdout


PACK = """
name = "p"
anchor_types = ["dish"]
[types]
dish = "What there is."
sold_out = "What there is no more."
[keys.day]
[[rules]]
name = "sold-out-voids-dish"
superseding = "sold_out"
superseded = "dish"
scope = ["day"]
"""


@pytest.fixture
def eaten(run: Run, tmp_path: Path) -> tuple[Run, str]:
    pack = tmp_path / "p.toml"
    pack.write_text(PACK)
    gone = {"id": "gone", "type": "sold_out", "time": "2024-01-01T00:00:00Z", "scope": {"day": "1"}, "title": "Soup"}
    assert run("publish", "-", "--rules", str(pack), text=lines(gone)).exit_code == 0
    return run, str(pack)


def test_the_rules_of_the_first_command_are_those_of_the_data(eaten: tuple[Run, str]) -> None:
    run, pack = eaten
    assert run("explain", "gone").exit_code == 0
    assert run("explain", "gone", "--rules", pack).exit_code == 0
    other = run("explain", "gone", "--rules", "security")

    assert other.exit_code == 2
    assert "stream-car rebuild --rules" in other.stderr


def test_documents_that_no_pack_of_the_data_knows_are_hinted_at(run: Run) -> None:
    run("publish", "-", "--rules", "legal", text=lines(ADVISORY))
    result = run("query", "Log4Shell")

    assert "1 document was rejected because no rule pack of this data knows the type" in result.stderr
    assert "stream-car rebuild --rules" in result.stderr


def test_rules_can_be_named_once_in_the_environment(eaten: tuple[Run, str], monkeypatch: pytest.MonkeyPatch) -> None:
    run, pack = eaten
    monkeypatch.setenv("STREAM_CAR_RULES", pack)

    assert "gone is in force" in run("explain", "gone").stdout


def test_a_search_that_finds_nothing_says_which_types_it_looks_at(eaten: tuple[Run, str]) -> None:
    run, pack = eaten

    assert "Only these types are searched: dish." in run("query", "soup", "--rules", pack).stdout


def test_a_folder_that_cannot_be_used_is_one_sentence(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    result = run("publish", "-", "--data", str(file / "data"), text=lines(ADVISORY))

    assert result.exit_code == 2
    assert "cannot hold the data" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_pack_is_checked_on_a_sample(run: Run, tmp_path: Path) -> None:
    pack, sample = tmp_path / "p.toml", tmp_path / "s.jsonl"
    pack.write_text(
        'name = "p"\n[types]\na = "an a"\nb = "a b"\n[keys.x]\n'
        '[[rules]]\nname = "b-voids-a"\nsuperseding = "b"\nsuperseded = "a"\nscope = ["x"]\n'
    )
    rows = [
        {"id": kind, "type": kind, "time": f"2024-01-0{day}T00:00:00Z", "scope": {"x": "1"}}
        for day, kind in ((1, "a"), (2, "b"))
    ]
    sample.write_text(lines(*rows))
    result = run("rules", "check", str(pack), "--sample", str(sample))

    assert result.exit_code == 0
    assert "a ──b-voids-a──▶ b  x=1" in result.stdout
    pack.write_text('name = "p"\nnonsense = 1\n')
    broken = run("rules", "check", str(pack), "--json")
    assert broken.exit_code == 2
    assert parsed(broken)[0]["problems"]


def test_the_demo_answers_every_question_with_what_controls_it(run: Run) -> None:
    for scene in parsed(run("demo", "--json")):
        answer = msgspec.convert(scene["answer"], dict[str, object])
        results = msgspec.convert(answer["results"], list[dict[str, object]])
        assert results[0]["id"] in msgspec.convert(scene["controlling"], list[str]), scene["question"]


def test_the_demo_shows_changes_and_both_answers(run: Run) -> None:
    text = run("demo").stdout

    assert "- CVE-2021-44228 advisory is fixed by Log4j 2.15.0" in text
    assert "plain search answers" in text
    assert "Stream-CAR answers" in text


def test_the_demo_shows_a_dozen_changes_and_counts_the_rest(run: Run) -> None:
    first = run("demo").stdout.partition("2. The same questions")[0].splitlines()
    changes = [line for line in first if line.startswith("- ")]

    assert len(changes) == 12
    assert all(" by " in line[:100] or "names it" in line[:100] or "says so itself" in line for line in changes)
    assert first[-1].startswith("... and ")


def test_the_demo_ends_with_how_to_call_the_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [".venv/bin/stream-car", "demo"])
    monkeypatch.setenv("PATH", "")

    assert "To call it by its name: . .venv/bin/activate" in run("demo").stdout
    monkeypatch.setattr("sys.argv", ["stream-car", "demo"])
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert "activate" not in run("demo").stdout


# Feeds


OSV = {
    "id": "GHSA-1",
    "aliases": ["CVE-2024-1"],
    "modified": "2024-01-02T00:00:00Z",
    "summary": "Prototype pollution",
    "affected": [{"package": {"ecosystem": "npm", "name": "lodash"}}],
}


def test_a_feed_is_published_once_and_says_so_the_second_time(run: Run, tmp_path: Path) -> None:
    (tmp_path / "feed").mkdir()
    (tmp_path / "feed" / "GHSA-1.json").write_text(lines(OSV))
    first = run("publish", "--format", "osv", str(tmp_path / "feed"))
    second = run("publish", "--format", "osv", str(tmp_path / "feed"))

    assert "1 record of 1 file read: 1 document." in first.stdout
    assert "Nothing new in 1 file." in second.stdout
    assert "Prototype pollution" in run("query", "pollution").stdout


def test_a_feed_that_is_published_as_documents_is_recognized(run: Run) -> None:
    records = lines(OSV, {**OSV, "id": "GHSA-2"})
    result = run("publish", "-", text=records)

    assert result.exit_code == 1
    assert result.stdout.count("stream-car publish --format osv FILE") == 1
    assert "--format" not in run("publish", "-", text=lines({"id": "a"}) + "{").stdout


def test_a_feed_comes_through_a_pipe(run: Run) -> None:
    [result] = parsed(run("publish", "--format", "osv", "-", "--json", text=lines(OSV, OSV)))

    assert result["feed"] == {
        "format": "osv",
        "files": 1,
        "unchanged": 0,
        "records": 2,
        "known": 1,
        "documents": 1,
        "ties": 0,
        "rejected": 0,
        "rejections": [],
    }


def test_what_a_feed_cannot_tell_is_named_with_its_place(run: Run) -> None:
    result = run("publish", "--format", "osv", "-", text='{"id": "A", "modified": "2024-01-02T00:00:00Z"}\n{"id": \n')

    assert result.exit_code == 1
    assert "-, line 2 (syntax)" in result.stdout
    assert "accepted" in result.stdout


def test_a_feed_is_converted_to_documents_that_can_be_published(run: Run) -> None:
    shown = run("convert", "--format", "osv", "-", text=lines(OSV))

    assert shown.exit_code == 0
    assert run("publish", "-", text=shown.stdout).exit_code == 0
    assert run("resolve", "GHSA-1").exit_code == 0


def test_convert_tells_what_it_cannot_read_apart_from_the_documents(run: Run) -> None:
    result = run("convert", "--format", "osv", "-", text="{\n")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "(syntax)" in result.stderr


def test_an_unknown_format_names_the_others(run: Run) -> None:
    result = run("convert", "--format", "ovs", "-")

    assert result.exit_code == 2
    assert "Did you mean 'osv'?" in result.stderr


def test_a_directory_needs_a_format(run: Run, tmp_path: Path) -> None:
    result = run("publish", str(tmp_path))

    assert result.exit_code == 2
    assert "--format" in result.stderr


def test_a_watch_goes_on_where_the_last_one_stopped(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    watch = ("follow", "--format", "osv", str(path), "--every", "0.01", "--idle", "0.05", "--json")
    path.write_text(lines(OSV))
    [first] = parsed(run(*watch))
    path.write_text(lines(OSV, {**OSV, "id": "GHSA-2"}) + "{")
    [second] = parsed(run(*watch))

    assert [part["records"] for part in (first["feed"], second["feed"]) if isinstance(part, dict)] == [1, 1]


def test_a_watch_waits_for_data_that_are_in_use(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(lines(OSV))
    with stream_car.open(tmp_path / "data"):
        result = run("follow", "--format", "osv", str(path), "--every", "0.01", "--idle", "0.05")

    assert "Trying again." in result.stderr
    assert result.exit_code == 0


def test_formats_are_listed(run: Run) -> None:
    assert {one["name"] for one in parsed(run("formats", "--json"))} >= {"osv", "csaf", "facts"}


def test_a_watch_ends_with_1_if_a_piece_cannot_be_read_as_a_publication_does(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(lines(OSV) + "{\n")
    followed = run("follow", "--format", "osv", str(path), "--every", "0.01", "--idle", "0.05")
    published = run("publish", "--format", "osv", str(path))

    assert (followed.exit_code, published.exit_code) == (1, 1)
    assert "could not be read" in followed.stdout
    assert "rejected" not in followed.stdout

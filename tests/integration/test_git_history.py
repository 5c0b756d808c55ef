"""The history of a feed's repository gives the documents that its commits published, and runs nothing of it."""

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from pathlib import Path

import pytest

import stream_car
from tests.support.command_line import invoke, parse
from tests.support.feeds import DATA
from tests.support.git_repositories import add_commits, bare_repository, git

DAY = 86_400
START = 1_600_000_000
GO = DATA / "osv-go.history.jsonl"


def record(fixed: str | None = None, name: str = "EX-1", **more: object) -> bytes:
    events = [{"introduced": "0"}, *([{"fixed": fixed}] if fixed else [])]
    affected = [{"package": {"ecosystem": "Go", "name": "server"}, "ranges": [{"type": "SEMVER", "events": events}]}]
    return json.dumps({"id": name, "summary": "Weak ciphers", "affected": affected, **more}).encode()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return bare_repository(
        tmp_path / "feed.git",
        [
            (START, {"osv/EX-1.json": record(), "README.md": b"text", ".github/x.json": b"{}"}),
            (START + DAY, {"osv/EX-1.json": record("1.1")}),
            (START, {"osv/EX-1.json": record("1.2"), "drafts/EX-2.json": record(name="EX-2")}),
        ],
    )


def converted(*arguments: str) -> list[dict[str, object]]:
    return parse(invoke("convert", "--format", "osv", *arguments))


def ids(documents: list[dict[str, object]]) -> list[object]:
    return [document["id"] for document in documents]


def test_every_edition_is_a_document_at_the_time_of_its_commit_which_never_goes_back(repository: Path) -> None:
    documents = converted("--git", str(repository))

    assert [(d["id"], d["type"], d["time"]) for d in documents] == [
        ("EX-1@2020-09-13T12:26:40Z", "advisory", "2020-09-13T12:26:40Z"),
        ("EX-1@2020-09-14T12:26:40Z", "patch_released", "2020-09-14T12:26:40Z"),
        ("EX-2@2020-09-14T12:26:40Z", "advisory", "2020-09-14T12:26:40Z"),
        ("EX-1@2020-09-14T12:26:40Z.2", "patch_released", "2020-09-14T12:26:40Z"),
    ]


def test_a_commit_that_is_dated_after_the_year_9999_has_the_time_of_the_one_before(tmp_path: Path) -> None:
    year_10000 = 253_402_300_800
    files = [record(f"1.{number}") for number in range(4)]
    times = (START, year_10000, START + DAY, year_10000 * 1000)
    repository = bare_repository(
        tmp_path / "feed.git", [(second, {"a.json": content}) for second, content in zip(times, files, strict=True)]
    )

    days = [str(document["time"])[:10] for document in converted("--git", str(repository))]
    assert days == ["2020-09-13", "2020-09-13", "2020-09-14", "2020-09-14"]


@pytest.mark.parametrize("name", ["a:b", 'with "quotes" and \\', "a:b.git"])
def test_the_folder_of_a_repository_may_have_any_name(tmp_path: Path, name: str) -> None:
    outside = bare_repository(tmp_path / "outside.git", [(START, {"EX-9.json": record(name="EX-9")})])
    git(tmp_path, "clone", "--quiet", str(outside), str(tmp_path / "x:y"))
    repository = bare_repository(tmp_path / "x:y" / name, [(START, {"EX-1.json": record()})])
    (tmp_path / "x:y" / "none").mkdir()

    assert ids(converted("--git", str(repository))) == ["EX-1@2020-09-13T12:26:40Z"]
    assert invoke("convert", "--format", "osv", "--git", str(tmp_path / "x:y" / "none")).exit_code == 2


def test_paths_select_files_of_the_repository_and_a_work_tree_is_read_like_a_bare_one(
    repository: Path, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "--quiet", str(repository), "clone")

    assert converted("--git", str(tmp_path / "clone"), "osv") == [
        document for document in converted("--git", str(repository)) if "EX-1" in str(document["id"])
    ]


def test_a_merge_counts_when_it_reaches_the_branch(repository: Path) -> None:
    git(repository, "branch", "side")
    add_commits(repository, [(START + 2 * DAY, {"osv/EX-3.json": record(name="EX-3")})], branch="side")
    tree = git(repository, "rev-parse", "side^{tree}")
    merge = git(
        repository,
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@x",
        "commit-tree",
        tree,
        "-p",
        "main",
        "-p",
        "side",
        text=b"m",
    )
    git(repository, "update-ref", "refs/heads/main", merge)
    when = int(git(repository, "log", "-1", "--format=%ct", "main"))

    [document] = [d for d in converted("--git", str(repository)) if "EX-3" in str(d["id"])]

    assert datetime.fromisoformat(str(document["time"])).timestamp() == when


@pytest.mark.skipif(not GO.exists(), reason=f"needs {GO}")
def test_a_history_in_git_is_the_history_in_lines(tmp_path: Path) -> None:
    lines = GO.read_text(encoding="utf-8").splitlines()[:600]
    rows = [json.loads(line) for line in lines]

    def commits() -> Iterator[tuple[int, dict[str, bytes]]]:
        for second, group in groupby(rows, key=lambda row: int(datetime.fromisoformat(row["commit_time"]).timestamp())):
            for row in group:
                yield second, {row["path"]: json.dumps(row["record"]).encode()}

    repository = bare_repository(tmp_path / "go.git", commits())
    (tmp_path / "history.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    assert converted("--git", str(repository)) == converted(str(tmp_path / "history.jsonl"))


def test_follow_continues_after_the_last_commit_and_reads_a_rewritten_branch_again(
    repository: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    arguments = (
        "follow",
        "--format",
        "osv",
        "--git",
        str(repository),
        "--data",
        str(data),
        "--every",
        "0.01",
        "--idle",
    )

    def feed() -> dict[str, object]:
        [line, *_] = parse(invoke(*arguments, "0.05", "--json"))
        assert isinstance(line["feed"], dict)
        return line["feed"]

    first, second = feed(), feed()
    add_commits(repository, [(START + 3 * DAY, {"osv/EX-1.json": record("1.3")})])
    third = feed()
    git(repository, "update-ref", "refs/heads/main", "main~2")
    add_commits(repository, [(START + 4 * DAY, {"osv/EX-1.json": record("1.4")})])
    fourth = feed()

    assert (first["records"], first["documents"]) == (4, 4)
    assert (second["unchanged"], second["documents"]) == (1, 0)
    assert (third["records"], third["documents"]) == (1, 1)
    assert (fourth["known"], fourth["documents"]) == (2, 1)
    with stream_car.open(data) as car:
        [resolution] = car.resolve(["EX-1"])
    assert resolution.state_text == "fixed in 1.4"


def test_answers_as_of_the_past_are_complete_with_the_history(repository: Path, tmp_path: Path) -> None:
    published = "2020-09-13T12:26:40Z"
    add_commits(repository, [(START + 5 * DAY, {"osv/EX-1.json": record("2.0", published=published)})])
    snapshot, history = tmp_path / "snapshot", tmp_path / "history"
    (tmp_path / "EX-1.json").write_bytes(record("2.0", published=published, modified="2024-01-01T00:00:00Z"))
    invoke("publish", "--format", "osv", str(tmp_path / "EX-1.json"), "--data", str(snapshot))
    invoke(
        "follow",
        "--format",
        "osv",
        "--git",
        str(repository),
        "--data",
        str(history),
        "--idle",
        "0.1",
        "--every",
        "0.01",
    )

    answers = {}
    for data in (snapshot, history):
        with stream_car.open(data) as car:
            [resolution] = car.resolve(["EX-1"], as_of="2020-09-14")
            answers[data] = resolution.status, resolution.state, resolution.reasons

    assert answers == {snapshot: ("pending", "", ("history_unknown",)), history: ("in_force", "open", ())}


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("-c", "begins with a dash"),
        ("--upload-pack=touch", "begins with a dash"),
        ("ext::sh -c touch% pwned", "is an address"),
        ("https://example.org/feed.git", "is an address"),
        ("nowhere", "There is no folder nowhere"),
    ],
)
@pytest.mark.parametrize("command", ["convert", "follow"])
def test_a_repository_that_is_no_folder_is_refused(command: str, name: str, problem: str) -> None:
    result = invoke(command, "--format", "osv", f"--git={name}")

    assert result.exit_code == 2
    assert problem in " ".join(result.stderr.split())


def test_a_path_outside_the_repository_and_a_folder_that_is_none_are_refused(repository: Path, tmp_path: Path) -> None:
    outside = invoke("convert", "--format", "osv", "--git", str(repository), "../other")
    plain = invoke("convert", "--format", "osv", "--git", str(tmp_path))

    assert (outside.exit_code, plain.exit_code) == (2, 2)
    assert "must be a path inside the repository" in " ".join(outside.stderr.split())
    assert "cannot be read as a git repository" in " ".join(plain.stderr.split())


def test_a_shallow_clone_is_refused_because_its_history_is_missing(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repository}", "shallow")

    result = invoke("convert", "--format", "osv", "--git", str(tmp_path / "shallow"))

    assert result.exit_code == 2
    assert "git fetch --unshallow" in " ".join(result.stderr.split())


def test_no_program_that_a_repository_configures_is_run(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(repository), "clone")
    clone, trace = tmp_path / "clone", tmp_path / "was-run"
    script = tmp_path / "program"
    script.write_text(f"#!/bin/sh\ntouch {trace}\n", encoding="utf-8")
    script.chmod(0o755)
    hooks = clone / ".git" / "hooks"
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        hooks.mkdir(exist_ok=True)
        (hooks / hook).write_bytes(script.read_bytes())
        (hooks / hook).chmod(0o755)
    (clone / ".git" / "info").mkdir(exist_ok=True)
    (clone / ".git" / "info" / "attributes").write_text("*.json diff=evil filter=evil\n", encoding="utf-8")
    settings = ("core.fsmonitor", "core.pager", "core.sshCommand", "gpg.program", "diff.external", "diff.evil.textconv",
                "diff.evil.command", "filter.evil.smudge", "remote.origin.uploadpack", "core.alternateRefsCommand",
                "credential.helper")  # fmt: skip
    for setting in settings:
        git(clone, "config", setting, str(script))
    git(clone, "config", "log.showSignature", "true")
    git(clone, "config", "extensions.partialClone", "origin")

    assert len(converted("--git", str(clone))) == 4
    assert not trace.exists()


def test_a_file_that_cannot_be_read_is_named_with_its_commit(repository: Path) -> None:
    add_commits(repository, [(START + 9 * DAY, {"osv/bad.json": b"{"})])

    result = invoke("convert", "--format", "osv", "--git", str(repository))

    commit = git(repository, "rev-parse", "main")[:12]
    assert result.exit_code == 1
    assert f"{commit}:osv/bad.json" in result.stderr
    assert len(result.stdout.splitlines()) == 4

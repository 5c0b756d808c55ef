"""Pages name only files and identifiers that exist, and the generated reference is up to date."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from stream_car.cli import main
from stream_car.settings import SERVERS
from tests.support.repository import ROOT

GENERATED = ROOT / "docs" / "reference" / "cli.md"  # its examples are tested where they are written
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")])
PACKAGE = ROOT / "stream_car"
ROOMS = {path.name for parent in (ROOT, PACKAGE) for path in parent.iterdir() if path.is_dir()}
SOURCES = ("stream_car", "tests", "benchmarks", "tools", "deploy", "topics", "docs/examples", ".ci")
SUFFIXES = (
    ".py",
    ".toml",
    ".lua",
    ".js",
    ".html",
    ".css",
    ".json",
    ".jsonl",
    ".yml",
    ".yaml",
    ".properties",
    ".conf",
    "",
)
FILE = re.compile(r"(?:[\w.*-]+/)+[\w.*-]*|[\w-]+\.(?:py|lua)")
IDENTIFIER = re.compile(r"[A-Za-z]\w*(?:\.\w+)*")
FOREIGN = {"BLAKE2b", "aiokafka", "best_effort"}  # words of others that look like identifiers of ours


def spans(page: Path) -> list[str]:
    """Return what stands between backticks outside of code blocks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", text)


def exists(name: str, page: Path) -> bool:
    folders = (ROOT, PACKAGE, page.parent, *(path for path in PACKAGE.iterdir() if path.is_dir() and "/" not in name))
    return any(list(folder.glob(name.rstrip("/"))) for folder in folders)


def commands(page: Path) -> list[list[str]]:
    """Return the words of each `stream-car` command in the blocks of a page that are shown and not run."""
    blocks = re.findall(r"^```(?:console|sh)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = (re.split(r"\s{3,}| \| | < | > ", line.removeprefix("$ "))[0] for line in "".join(blocks).splitlines())
    words = [shlex.split(line, comments=True) for line in lines if "stream-car" in line]
    starts = [([Path(word).name for word in line], line) for line in words]
    return [line[names.index("stream-car") + 1 :] for names, line in starts if "stream-car" in names]


def parse(words: list[str]) -> None:
    """Let the command line read these words without running anything."""
    command: click.Command = main
    context = command.make_context(command.name, list(words))
    while isinstance(command, click.Group):
        _, subcommand, words = command.resolve_command(context, [*context._protected_args, *context.args])
        assert subcommand is not None
        command = subcommand
        context = command.make_context(command.name, list(words), parent=context)


def is_identifier(text: str) -> bool:
    """Return whether a word is written like a name in the code: snake_case, CamelCase or CONSTANT_CASE."""
    last = text.rpartition(".")[2]
    return IDENTIFIER.fullmatch(text) is not None and ("_" in last or re.search(r"[a-z][A-Z]", last) is not None)


def test_every_path_that_a_page_names_exists() -> None:
    missing = {
        f"{page.relative_to(ROOT)}: {span}"
        for page in PAGES
        for span in spans(page)
        if FILE.fullmatch(span) and (span.split("/")[0] in ROOMS or "/" not in span) and not exists(span, page)
    }

    assert missing == set()


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_the_table_of_rooms_names_every_room_of_the_package(page: str) -> None:
    rooms = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"} - {
        "__init__",
        "__pycache__",
    }
    rows = "".join(line for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if line.startswith("|"))
    named = {re.split(r"[/.]", span)[0] for span in re.findall(r"`([^`]+)`", rows)}

    assert rooms - named == set()


def test_every_identifier_that_a_page_names_is_in_the_code() -> None:
    files = (path for folder in SOURCES for path in (ROOT / folder).rglob("*") if path.is_file())
    texts = [path.read_text(encoding="utf-8") for path in files if path.suffix in SUFFIXES and ".pyc" not in path.name]
    texts += [
        (ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "Makefile", "docker-compose.yml")
    ]
    known = set(re.findall(r"\w+", "\n".join(texts))) | SERVERS | FOREIGN
    unknown = {
        f"{page.relative_to(ROOT)}: {span}"
        for page in PAGES
        if page.name != "CHANGELOG.md"
        for span in spans(page)
        if is_identifier(span.removesuffix("()")) and span.removesuffix("()").rpartition(".")[2] not in known
    }

    assert unknown == set()


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != GENERATED and commands(page)], ids=lambda page: page.name
)
def test_commands_that_a_page_shows_are_those_of_the_command_line(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in commands(page):
        for file in (Path(word) for word in words if word.endswith((".toml", ".jsonl"))):
            file.touch()  # that the file exists is checked before anything runs
        parse(words)


@pytest.mark.parametrize("generator", ["generate_api_reference", "generate_cli_reference", "generate_sync"])
def test_what_is_generated_is_up_to_date(generator: str) -> None:
    command = [sys.executable, "-m", f"tools.{generator}", "--check"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)

    assert (result.returncode, result.stderr) == (0, "")

"""The house is as CONTRIBUTING and the README say: sizes, walls, commands, and no traces of one machine."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repository import ROOT

ROOMS = ("stream_car", "tests", "benchmarks", "tools", "deploy", "topics")
CODE = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
TEXTS = sorted(
    path
    for pattern in (
        "*.md",
        "*.toml",
        "Makefile",
        ".ci/run",
        "docker-compose.yml",
        "docs/**/*.md",
        "stream_car/**/*.*",
        "tests/**/*.py",
        "deploy/**/*",
        "topics/*",
    )
    for path in ROOT.glob(pattern)
    if path.is_file() and "__pycache__" not in path.parts
)
LINES_MAX = 700
LONG_LINES = 400
LONG_FILES_MAX = 6
MACHINE_PATHS = re.compile("|".join(["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/", "/Us" + "ers/", "/tm" + "p/"]))
DRIVERS = ("aiokafka", "click", "faust", "httpx", "kafka", "redis", "rich", "sqlite3", "tantivy")


def lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    assert CODE
    assert {str(path.relative_to(ROOT)): lines(path) for path in CODE if lines(path) > LINES_MAX} == {}


def test_few_files_are_long() -> None:
    long = {str(path.relative_to(ROOT)): lines(path) for path in CODE if lines(path) > LONG_LINES}

    assert len(long) <= LONG_FILES_MAX, long


def test_nothing_names_a_path_of_one_machine() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in TEXTS
        for match in MACHINE_PATHS.finditer(path.read_text(encoding="utf-8"))
    }

    assert found == set()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_make_command_that_a_page_names_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE))

    assert {"demo", "test"} <= named
    assert named <= targets


def test_the_gate_calls_the_test_command_of_the_readme() -> None:
    gate = ROOT / ".ci" / "run"

    assert "\nmake test\n" in gate.read_text(encoding="utf-8")
    assert gate.stat().st_mode & 0o111


def test_importing_the_package_loads_no_driver() -> None:
    program = f"import sys, stream_car; print(*sorted(set({DRIVERS!r}) & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)

    assert loaded.stdout.split() == []


def test_any_appears_only_in_the_codec() -> None:
    users = {
        path.relative_to(ROOT / "stream_car").parts[0]
        for path in (ROOT / "stream_car").rglob("*.py")
        if re.search(r"^from typing import .*\bAny\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    }

    assert users <= {"codec"}


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md")]
    broken = {
        f"{page.relative_to(ROOT)} -> {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    }

    assert broken == set()

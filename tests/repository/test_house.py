"""The house is as CONTRIBUTING and the README say: sizes, names, walls, commands, and no traces of one machine."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.names import defined_classes, defined_names, imported_modules
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
LINES_MAX = 600
LONG_LINES = 400
LONG_FILES_MAX = 25
MACHINE_PATHS = re.compile("|".join(["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/", "/Us" + "ers/", "/tm" + "p/"]))
BANNED = frozenset({"said", "told", "asked", "heard"})  # words that name no thing
SHORT_LIVED = frozenset({"one", "found"})  # names for the lines of a short comprehension
SHORT_LIVED_LINES_MAX = 3
SHARED_CLASS_NAMES: frozenset[str] = frozenset()  # of adapters of one port that mean the same thing: none now
NAMED_CODE = [path for path in CODE if path.relative_to(ROOT).parts[0] != "deploy"]
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
    paths = {
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in TEXTS
        for match in MACHINE_PATHS.finditer(path.read_text(encoding="utf-8"))
    }

    assert paths == set()


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


def test_tests_of_one_group_run_in_one_process(tmp_path: Path) -> None:
    module = """
        import os, pathlib, pytest

        @pytest.mark.xdist_group("same")
        @pytest.mark.parametrize("number", range(6))
        def test_it(number):
            (pathlib.Path(__file__).parent / f"{os.getpid()}.process").touch()
    """
    (tmp_path / "test_group.py").write_text(textwrap.dedent(module), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-n", "2", "--dist", "loadgroup"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run(command, cwd=tmp_path, env=alone, check=True, capture_output=True)

    assert len(list(tmp_path.glob("*.process"))) == 1


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


def of_file(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_nothing_is_named_after_talking() -> None:
    named = {
        of_file(path): names
        for path in NAMED_CODE
        if (names := [f"{n.line}: {n.name}" for n in defined_names(path) if n.name.strip("_").lower() in BANNED])
    }

    assert named == {}


def test_a_name_that_says_nothing_lives_for_three_lines_of_a_comprehension() -> None:
    named = {
        of_file(path): lines
        for path in NAMED_CODE
        if (
            lines := [
                f"{n.line}: {n.name}"
                for n in defined_names(path)
                if n.name.strip("_") in SHORT_LIVED and not 0 < n.scope_lines <= SHORT_LIVED_LINES_MAX
            ]
        )
    }

    assert named == {}


def test_a_class_name_means_one_class() -> None:
    files: dict[str, list[str]] = {}
    for path in (ROOT / "stream_car").rglob("*.py"):
        for name in defined_classes(path):
            files.setdefault(name, []).append(of_file(path))
    shared = {name: paths for name, paths in files.items() if len(paths) > 1}

    assert {name: paths for name, paths in shared.items() if name not in SHARED_CLASS_NAMES} == {}
    assert shared.keys() >= SHARED_CLASS_NAMES


def room_of(path: Path) -> tuple[str, ...]:
    """The room of a file. Each back end is a room of its own: all use the same file names for the same things."""
    parts = path.relative_to(ROOT).parts[:-1]
    return parts if parts[0] == "tests" else parts[: 3 if parts[:2] == ("stream_car", "adapters") else 2]


def test_a_file_name_means_one_file_of_a_room() -> None:
    files: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for path in CODE:
        if path.name not in ("__init__.py", "__main__.py", "conftest.py"):
            files.setdefault((room_of(path), path.name), []).append(of_file(path))

    assert [paths for paths in files.values() if len(paths) > 1] == []


def test_a_test_module_imports_no_other() -> None:
    modules = {
        of_file(path): imported
        for path in (ROOT / "tests").rglob("test_*.py")
        if (imported := [name for name in imported_modules(path) if is_test_module(name, path)])
    }

    assert modules == {}


def is_test_module(name: str, importer: Path) -> bool:
    """Whether a dotted name is a test module of this project; relative names are resolved."""
    level = len(name) - len(name.lstrip("."))
    folder = importer.parents[level - 1] if level else ROOT
    path = folder.joinpath(*filter(None, name.lstrip(".").split("."))).with_suffix(".py")
    return path.name.startswith("test_") and path.is_file()

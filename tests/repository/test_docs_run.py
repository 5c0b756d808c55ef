"""The code in the README and in `docs/` runs and type-checks as a user would copy it.

Python blocks of a page share one namespace, shell blocks are one script. If code uses the service at its usual address,
a service is started for it at another one. After a Python block, the line "prints" announces its output.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.repository import ROOT
from tests.support.server_process import Server

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
USUAL = "http://127.0.0.1:8377"
TIMEOUT_S = 120
RUN = ("```python",)
CHECKED = ("```python", "```py")  # a `py` block may need packages that are not installed here


@contextmanager
def served(code: str, folder: Path) -> Iterator[str]:
    """Yield the code with the address of a running service, if it uses one."""
    if USUAL not in code:
        yield code
        return
    with Server(folder / "served", stderr=subprocess.DEVNULL) as server:
        yield code.replace(USUAL, server.url)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def outputs(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```\n\nprints\n\n```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def in_place(page: Path, fences: tuple[str, ...]) -> str:
    """Return the Python of a page with every other line blank, so that a failure names the page's own line."""
    is_code, lines = False, []
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            is_code = line in fences
            lines.append("")
        else:
            lines.append(line if is_code else "")
    return "\n".join(lines) + "\n"


def path_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run(command: list[str], folder: Path, environment: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )


WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]
WITH_SHELL = [page for page in PAGES if blocks(page, "bash")]


def test_the_readme_teaches_in_python_and_in_the_shell() -> None:
    assert ROOT / "README.md" in WITH_PYTHON
    assert ROOT / "README.md" in WITH_SHELL


def test_the_readme_shows_what_its_python_prints_in_the_first_screen() -> None:
    [output] = outputs(ROOT / "README.md")
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert text[: text.index(output)].count("\n") < 40
    assert len(text.split()) < 900


@pytest.mark.parametrize("page", WITH_PYTHON, ids=path_of)
def test_the_python_of_a_page_runs_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    with served(in_place(page, RUN), tmp_path) as code:
        program.write_text(code, encoding="utf-8")
        result = run([sys.executable, "-W", "error", str(program)], tmp_path)

    assert (result.returncode, result.stderr) == (0, "")
    if outputs(page):
        assert result.stdout == "".join(outputs(page))


def test_the_python_of_all_pages_passes_mypy_strict(tmp_path: Path) -> None:
    programs = {}
    for page in PAGES:
        if page.name == "python.md":
            continue  # generated: signatures only
        code = in_place(page, CHECKED)
        if code.strip():
            name = re.sub(r"\W", "_", path_of(page).removesuffix(".md")) + ".py"
            programs[name] = path_of(page)
            (tmp_path / name).write_text(code, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--ignore-missing-imports",
        "--no-error-summary",
    ]
    command += ["--cache-dir", str(ROOT / ".mypy_cache" / "docs"), *programs]
    result = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )  # a user's mypy reports nothing of an installed package, so only lines about the pages count

    lines = (line.partition(":") for line in result.stdout.splitlines())
    assert len(programs) > len(WITH_PYTHON) // 2
    assert result.stderr == ""
    assert [f"{programs[name]}:{rest}" for name, _, rest in lines if name in programs] == []


@pytest.mark.parametrize("page", WITH_SHELL, ids=path_of)
def test_the_shell_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    command = tmp_path / "bin" / "stream-car"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c 'from stream_car.cli import main; main()' \"$@\"\n")
    command.chmod(0o755)
    environment = {
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "STREAM_CAR_DATA": str(tmp_path / "data"),
    }
    with served("set -eu\n" + "\n".join(blocks(page, "bash")), tmp_path) as script:
        result = run(["bash", "-c", script], tmp_path, environment)

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout

"""The code in the README and in `docs/` runs: Python blocks of a page in one namespace, shell blocks as one script.

Where code asks the service at its usual address, one is started for it, at another.
"""

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.repository import ROOT
from tests.support.server_process import Server

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

USUAL = "http://127.0.0.1:8377"


@contextmanager
def served(code: str, folder: Path) -> Iterator[str]:
    """The code, with the address of a service that runs."""
    if USUAL not in code:
        yield code
        return
    with Server(folder / "served", stderr=subprocess.DEVNULL) as server:
        yield code.replace(USUAL, server.url)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def in_place(page: Path) -> str:
    """The Python of a page with every other line blank, so that a failure names the page's own line."""
    code, lines = False, []
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            code = line == "```python"
            lines.append("")
        else:
            lines.append(line if code else "")
    return "\n".join(lines) + "\n"


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]
WITH_SHELL = [page for page in PAGES if blocks(page, "bash")]


def test_the_readme_teaches_in_python_and_in_the_shell() -> None:
    assert ROOT / "README.md" in WITH_PYTHON
    assert ROOT / "README.md" in WITH_SHELL


@pytest.mark.parametrize("page", WITH_PYTHON, ids=named)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "page.py"
    monkeypatch.chdir(tmp_path)
    with served(in_place(page), tmp_path) as code:
        program.write_text(code, encoding="utf-8")
        names = runpy.run_path(str(program))

    assert set(names) > {"__name__", "__file__"}


@pytest.mark.parametrize("page", WITH_SHELL, ids=named)
def test_the_shell_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    command = tmp_path / "bin" / "stream-car"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c 'from stream_car.cli import main; main()' \"$@\"\n")
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "STREAM_CAR_DATA": str(tmp_path / "data"),
    }
    with served("set -eu\n" + "\n".join(blocks(page, "bash")), tmp_path) as script:
        run = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout

"""Git repositories for tests, with commits at given times."""

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

Commits = Iterable[tuple[int, Mapping[str, bytes]]]  # the second of a commit, and the files that it writes


def git(folder: Path, *arguments: str, text: bytes = b"") -> str:
    """Run git in a folder, without the settings of this machine; return what it prints."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**own, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    ran = subprocess.run(["git", *arguments], cwd=folder, env=environment, input=text, capture_output=True, check=True)
    return ran.stdout.decode().strip()


def bare_repository(folder: Path, commits: Commits) -> Path:
    """Make a bare repository with these commits on its branch."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main")
    add_commits(folder, commits, is_first=True)
    return folder


def add_commits(folder: Path, commits: Commits, *, is_first: bool = False, branch: str = "main") -> None:
    """Add commits to a branch of a repository."""
    parts = []
    start = f"from refs/heads/{branch}^0\n" if not is_first else ""
    for second, files in commits:
        parts.append(
            f"commit refs/heads/{branch}\ncommitter Test <t@example.org> {second} +0000\ndata 1\nx\n{start}".encode()
        )
        for path, content in files.items():
            parts.append(f"M 100644 inline {path}\ndata {len(content)}\n".encode() + content + b"\n")
        start = ""
    git(folder, "fast-import", "--quiet", "--force", text=b"".join(parts))

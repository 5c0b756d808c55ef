"""Write generated files, or check that they are up to date."""

import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write_or_check(texts: Mapping[str, str], command: str) -> None:
    """Write the files that differ; with --check on the command line, name them and exit with 1 instead.

    Args:
        texts: by path from the project's folder.
        command: the module that generates them.
    """
    is_check = "--check" in sys.argv
    outdated = [name for name, text in texts.items() if _read(ROOT / name) != text]
    for name in outdated:
        if not is_check:
            (ROOT / name).write_text(texts[name], encoding="utf-8")
        print(f"{name}: {'not up to date' if is_check else 'written'}")
    if is_check and outdated:
        sys.exit(f"Run: python -m {command}")


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None

"""The tool of Prometheus that tests rules for alerts: from the system, or in the user's cache."""

import os
import shutil
from pathlib import Path


def promtool() -> str:
    """Return the path of promtool; it may not exist."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return shutil.which("promtool") or str(Path(cache) / "stream-car" / "promtool")


def missing_requirement() -> str | None:
    """Say what is missing to test rules; return `None` if nothing is."""
    return None if os.access(promtool(), os.X_OK) else "promtool is not installed"

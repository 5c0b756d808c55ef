"""Where things lie in a checkout, and beside it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"  # benchmark sets; not part of the project

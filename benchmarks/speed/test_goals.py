"""Runs every benchmark in its own interpreter; each prints its table and fails if a goal is missed."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "benchmark",
    [
        "core_step",
        "growth",
        "embedded",
        "bulk_publish",
        "cache",
        "memory",
        "feeds",
        "affected",
        "hops",
        "servers",
        "service",
    ],
)
def test_the_goals_are_met(benchmark: str) -> None:
    finished = subprocess.run([sys.executable, "-m", f"benchmarks.speed.{benchmark}"], check=False, cwd=ROOT)

    assert finished.returncode == 0

"""What a change costs or gains: `python -m benchmarks.compare BASE BENCHMARK [ARGUMENT ...]`.

Promise: the benchmark of this checkout runs in turn on the package of BASE, a commit or branch, and on that of this
checkout, so that both have the same load and the same measurement. BASE is checked out in `build/`. A figure's ratio is
that of each pair of runs; the median is printed with the least and the greatest. `ROUNDS` is the number of pairs.
"""

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import msgspec

from benchmarks.speed.report import FIGURES_FILE, Figure, number

ROOT = Path(__file__).resolve().parents[1]
TREE = ROOT / "build" / "bench-base"
GIT = ("git", "-C", str(ROOT))
ROUNDS = 5


def main(base: str, benchmark: str, *arguments: str) -> int:
    """Print a line for each figure: BASE, this checkout, and the ratio of the two."""
    runs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    rounds = int(os.environ.get("ROUNDS", ROUNDS))
    with _checked_out(base):
        for each in range(1, rounds + 1):
            print(f"round {each} of {rounds}, load {os.getloadavg()[0]:.1f}", flush=True)
            before, after = (_run(tree, benchmark, arguments) for tree in (TREE, ROOT))
            for figure in after:
                if figure in before:
                    runs[figure].append((before[figure], after[figure]))
    print(f"\n{benchmark} {' '.join(arguments)}: {base}, this checkout, and their ratio")
    for (name, unit), values in runs.items():
        former, latter = (median(column) for column in zip(*values, strict=True))
        ratios = [pair[1] / pair[0] for pair in values if pair[0]]
        spread = f"{median(ratios):.3f}  ({min(ratios):.3f} to {max(ratios):.3f})" if ratios else ""
        print(f"  {name:<60} {number(former):>9} {number(latter):>9} {unit:<10} {spread}")
    return 0


@contextmanager
def _checked_out(base: str) -> Iterator[None]:
    """Have the package of BASE in `build/` within."""
    remove = [*GIT, "worktree", "remove", "--force", str(TREE)]
    if TREE.exists():
        subprocess.run(remove, check=True)
    subprocess.run([*GIT, "worktree", "prune"], check=True)
    subprocess.run([*GIT, "worktree", "add", "--quiet", "--detach", str(TREE), base], check=True)
    try:
        yield
    finally:
        subprocess.run(remove, check=True)


def _run(tree: Path, benchmark: str, arguments: tuple[str, ...]) -> dict[tuple[str, str], float]:
    """Run the benchmark once with the package of a tree. A goal that is missed is not an error."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "stream_car").symlink_to(tree / "stream_car")
        for name in ("benchmarks", "tests", "deploy", "topics"):
            (Path(folder) / name).symlink_to(ROOT / name)
        file = Path(folder) / "figures"
        environment = {**os.environ, "PYTHONPATH": folder, FIGURES_FILE: str(file)}
        command = [sys.executable, "-m", f"benchmarks.{benchmark}", *arguments]
        finished = subprocess.run(command, check=False, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
        if not file.exists():
            raise SystemExit(f"{benchmark} did not run with the package of {tree} (exit code {finished.returncode}).")
        figures = [msgspec.json.decode(line, type=Figure) for line in file.read_bytes().splitlines()]
    return {(each.name, each.unit): each.value for each in figures}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

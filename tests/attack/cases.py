"""The cases: which file is damaged, and how.

Promise: a case is named by its kind and number, and a seed and that name always mean the same damage. Half of the
damage to a database hits the heads of its pages, where few bytes decide much.
"""

import random
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

Kind = Literal["flip", "cut", "lose"]

WEIGHTS = {
    "documents.sqlite": 6,
    "documents.sqlite-wal": 6,
    "generation.json": 8,
    "feeds.sqlite": 4,
    "built/N/state.sqlite": 12,
    "built/N/state.sqlite-wal": 6,
    "built/N/index/scopes.sqlite": 8,
    "built/N/index/analysed.sqlite": 4,
    "built/N/index/format": 1,
    "built/N/index/tantivy/meta.json": 2,
    "built/N/index/tantivy/.managed.json": 1,
}  # how often a file is damaged
SEGMENT_WEIGHT = 1  # of each other file
KILLED_EVERY = 6  # one case in so many damages the folder of a killed process
STRUCTURE = 64  # bytes at the head of a page
WAL_HEAD = 32
FRAME_HEAD = 24
PAGE = 8192


class Case(Struct, frozen=True):
    """One damage. `seed` and `number` decide where it hits."""

    kind: Kind
    number: int
    seed: int

    @property
    def name(self) -> str:
        """What the command line calls it."""
        return f"{self.kind}-{self.number}"

    @property
    def command(self) -> str:
        """The command that replays it."""
        return f"python -m tests.attack.damage --seed {self.seed} --case {self.name}"


class Damage(Struct, frozen=True):
    """What was done to which file. `label` names the file without what is drawn at random."""

    label: str
    what: str
    path: str


class Targets(Struct, frozen=True):
    """The files and folders of one specimen, in an order that two builds share."""

    files: tuple[str, ...]
    folders: tuple[str, ...]

    @property
    def lost(self) -> tuple[str, ...]:
        """What the cases delete: everything, or what only a killed process leaves."""
        beside = tuple(path for path in self.files if path.endswith(("-wal", "-shm")))
        return beside or self.files + self.folders


def targets(folder: Path) -> Targets:
    """List what can be damaged in a folder."""
    paths = [path.relative_to(folder) for path in folder.rglob("*")]
    order = sorted(paths, key=lambda path: (label(str(path)), (folder / path).stat().st_size, str(path)))
    return Targets(
        files=tuple(str(path) for path in order if (folder / path).is_file()),
        folders=tuple(str(path) for path in order if (folder / path).is_dir()),
    )


def label(path: str) -> str:
    """Return the name of a file without random names and numbers of generations."""
    return re.sub(r"[0-9a-f]{32}(\.\d+)?", "*", re.sub(r"built/\d+", "built/N", path))


def cases(seed: int, *, flips: int, cuts: int, losses: int) -> list[Case]:
    """Return the first cases of each kind, mixed evenly, so that a part of them is a sample of all."""
    kinds: tuple[tuple[Kind, int], ...] = (("lose", losses), ("flip", flips), ("cut", cuts))
    placed = [((number + 0.5) / count, Case(kind, number, seed)) for kind, count in kinds for number in range(count)]
    return [case for _, case in sorted(placed, key=lambda pair: pair[0])]


def parse_case(name: str, seed: int) -> Case:
    """Return the case with this name."""
    match = re.fullmatch(r"(flip|cut|lose)-(\d+)", name)
    if match is None:
        raise ValueError(f"A case is called flip-17, cut-3 or lose-0, not {name}.")
    kind: Kind = "flip" if match[1] == "flip" else "cut" if match[1] == "cut" else "lose"
    return Case(kind, int(match[2]), seed)


def plan(case: Case, closed: Targets, killed: Targets) -> tuple[Literal["closed", "killed"], str]:
    """Return which specimen a case damages, and which of its files."""
    if case.kind == "lose":
        beyond = case.number - len(closed.lost)
        return ("closed", closed.lost[case.number]) if beyond < 0 else ("killed", killed.lost[beyond])
    chance = random.Random(f"{case.seed}/{case.name}/file")
    is_killed = case.number % KILLED_EVERY == KILLED_EVERY - 1
    paths = _damageable((killed if is_killed else closed).files)
    weights = [WEIGHTS.get(label(path), SEGMENT_WEIGHT) for path in paths]
    return "killed" if is_killed else "closed", chance.choices(paths, weights)[0]


def _damageable(paths: Sequence[str]) -> list[str]:
    """Leave out locks, which are empty, and what SQLite makes again whenever a database is opened."""
    return [path for path in paths if not path.endswith(("lock", "-shm"))]


def apply_damage(case: Case, folder: Path, path: str) -> Damage:
    """Damage a file of this folder."""
    target = folder / path
    if case.kind == "lose":
        if target.is_dir():
            shutil.rmtree(target)
            return Damage(label(path) + "/", "deleted", path)
        target.unlink()
        return Damage(label(path), "deleted", path)
    chance = random.Random(f"{case.seed}/{case.name}/place")
    content = bytearray(target.read_bytes())
    if not content:
        return Damage(label(path), "empty, nothing done", path)
    if case.kind == "cut":
        size = chance.randrange(len(content))
        if chance.random() < 0.3:
            size -= size % PAGE  # at the end of a page, where nothing is torn
        target.write_bytes(content[:size])
        return Damage(label(path), f"cut from {len(content)} to {size} bytes", path)
    at = _place(path, content, chance)
    before = content[at]
    if chance.random() < 0.25:
        while not content[at]:
            at = (at + 1) % len(content)
        before, content[at] = content[at], 0
    else:
        content[at] ^= 1 << chance.randrange(8)
    target.write_bytes(content)
    return Damage(label(path), f"byte {at} of {len(content)}: {before:#04x} -> {content[at]:#04x}", path)


def _place(path: str, content: bytearray, chance: random.Random) -> int:
    anywhere = chance.randrange(len(content))
    if chance.random() < 0.5:
        return anywhere
    if path.endswith(".sqlite"):
        return min(anywhere - anywhere % PAGE + chance.randrange(STRUCTURE), len(content) - 1)
    if path.endswith("-wal"):
        frame = (anywhere - WAL_HEAD) // (FRAME_HEAD + PAGE)
        return WAL_HEAD + frame * (FRAME_HEAD + PAGE) + chance.randrange(FRAME_HEAD) if frame >= 0 else anywhere
    return anywhere

"""One case after the other: damage a copy, open it, ask everything, and compare with the healthy folder.

Promise: the healthy answers are checked first. They must be the same after the projection, the state or the index is
built again, so a different answer is always the damage's fault.
"""

import os
import re
import shutil
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

import stream_car
from stream_car.errors import StreamCarError
from stream_car.local.doctor import examine
from tests.attack.cases import Case, Damage, Targets, apply_damage, label, plan, targets
from tests.attack.questions import Picture, Questions, answers, make_questions, take_picture, to_bytes
from tests.attack.specimen import Specimen

Outcome = Literal["right", "rebuilt", "refused", "no cure", "WRONG", "TRACEBACK", "HANG", "CRASH"]
Doctor = Literal["damaged", "ok", "raised", "BLIND", "TRACEBACK"]

GOOD: tuple[Outcome, ...] = ("right", "rebuilt", "refused")
GOOD_DOCTOR: tuple[Doctor, ...] = ("damaged", "ok", "raised")
CURE = re.compile(r"\b(restore|remove|delete|rebuil[dt]|open it with|give (it|them)|use its release)\b", re.I)
SHOWN = 4


class Verdict(Struct, frozen=True, kw_only=True):
    """What a damage did to the answers, and what doctor found."""

    case: Case
    damage: Damage
    specimen: Literal["closed", "killed"]
    outcome: Outcome
    detail: str = ""
    doctor: Doctor = "ok"
    doctor_detail: str = ""
    changed_by_doctor: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether nothing was silently wrong, no error was of another type, and doctor changed nothing."""
        return self.outcome in GOOD and self.doctor in GOOD_DOCTOR and not self.changed_by_doctor

    def __str__(self) -> str:
        text = f"{self.damage.label} ({self.specimen}): {self.damage.what}\n    {self.outcome}: {self.detail}\n"
        changed = f"    doctor changed: {', '.join(self.changed_by_doctor[:SHOWN])}\n" if self.changed_by_doctor else ""
        return f"{text}    doctor: {self.doctor} {self.doctor_detail}\n{changed}    {self.case.command}"


class Healthy(Struct, frozen=True):
    """A specimen that nothing has happened to: what can be damaged, what can be question, and the right answers."""

    targets: Targets
    questions: Questions
    picture: Picture


class Judge:
    """Judges cases. `home` holds the specimens, `folder` the copy that is damaged."""

    def __init__(self, home: Path, folder: Path, *, step: int = 1) -> None:
        self.specimen = Specimen(home)
        self.folder = folder
        self.step = step
        self.healthy = msgspec.msgpack.decode((home / "healthy").read_bytes(), type=dict[str, Healthy])

    @property
    def losses(self) -> int:
        """How many files and folders can be deleted."""
        return sum(len(healthy.targets.lost) for healthy in self.healthy.values())

    def planned(self, case: Case) -> tuple[Literal["closed", "killed"], str]:
        """Return the specimen and the file that a case damages."""
        return plan(case, self.healthy["closed"].targets, self.healthy["killed"].targets)

    def attempt(self, case: Case) -> Verdict:
        """Carry out a case."""
        name, path = self.planned(case)
        doctor, doctor_detail, changed = self._consult_doctor(case, name, path)
        damage = self._damage(case, name, path)
        outcome, detail = self._open(self.healthy[name])
        if outcome not in ("right", "rebuilt") and doctor == "ok":
            doctor = "BLIND"
        shutil.rmtree(self.folder)
        return Verdict(
            case=case, damage=damage, specimen=name, outcome=outcome, detail=detail, doctor=doctor,
            doctor_detail=doctor_detail, changed_by_doctor=changed,
        )  # fmt: skip

    def differences(self, case: Case) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield each question that the damaged folder answers otherwise, with the healthy answer and the other one."""
        name, path = self.planned(case)
        healthy = self.healthy[name]
        shutil.copytree(_source(self.specimen, name), self.folder)
        with stream_car.open(self.folder) as car:
            right = {label: to_bytes(answer) for label, answer in answers(car, healthy.questions, self.specimen)}
        self._damage(case, name, path)
        with stream_car.open(self.folder) as car:
            for question, answer in answers(car, healthy.questions, self.specimen):
                if not isinstance(answer, StreamCarError) and to_bytes(answer) != right[question]:
                    yield question, right[question], to_bytes(answer)
        shutil.rmtree(self.folder)

    def _damage(self, case: Case, name: str, path: str) -> Damage:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(_source(self.specimen, name), self.folder)
        return apply_damage(case, self.folder, path)

    def _open(self, healthy: Healthy) -> tuple[Outcome, str]:
        picture: Picture | None = None
        reason = ""
        with ExitStack() as handles:
            before = [handles.enter_context(path.open("rb")) for path in self.folder.glob("built/*/**/*.sqlite")]
            try:
                with stream_car.open(self.folder) as car:
                    picture = take_picture(car, healthy.questions, self.specimen, step=self.step)
            except StreamCarError as error:
                reason = f"{type(error).__name__}: {error}"
            except BaseException:
                return "TRACEBACK", _last_lines()
            is_rebuilt = any(not os.fstat(handle.fileno()).st_nlink for handle in before)
        if picture is not None:
            if wrong := picture.differences(healthy.picture):
                return "WRONG", f"{len(wrong)} answers, such as: {'; '.join(wrong[:SHOWN])}"
            if picture.errors:
                question, error_text = next(iter(picture.errors.items()))
                reason = f"{question}: {error_text} ({len(picture.errors)} of {len(healthy.picture.digests)} questions)"
        if reason:
            return ("refused" if CURE.search(reason) else "no cure"), reason[:300]
        return ("rebuilt" if is_rebuilt else "right"), ""

    def _consult_doctor(self, case: Case, name: str, path: str) -> tuple[Doctor, str, tuple[str, ...]]:
        self._damage(case, name, path)
        before = _contents(self.folder)
        doctor, detail = _examine(self.folder)
        # opening the database of a killed process moves its write-ahead log into it
        changed = _differences(before, _contents(self.folder)) if name == "closed" else []
        return doctor, detail, tuple(changed)


def _examine(folder: Path) -> tuple[Doctor, str]:
    try:
        damaged = [finding for finding in examine(folder) if finding.status == "damaged"]
    except StreamCarError as error:
        return "raised", f"{type(error).__name__}: {error}"
    except BaseException:
        return "TRACEBACK", _last_lines()
    return ("damaged", f"{damaged[0].check}: {damaged[0].detail[:150]}") if damaged else ("ok", "")


def prepare(home: Path, *, step: int = 1) -> None:
    """Build the specimens, and the right answers about them. Raises `AssertionError` if these are not settled."""
    home.mkdir(parents=True, exist_ok=True)
    specimen = Specimen(home)
    specimen.build()
    healthy = {name: _healthy(specimen, name, step) for name in ("closed", "killed")}
    (home / "healthy").write_bytes(msgspec.msgpack.encode(healthy))


def _healthy(specimen: Specimen, name: str, step: int) -> Healthy:
    source = _source(specimen, name)
    copy = source.with_name("copy")

    def ask(change: Callable[[Path], None], questions: Questions | None = None) -> tuple[Questions, Picture]:
        shutil.copytree(source, copy)
        change(copy)
        with stream_car.open(copy) as car:
            if questions is None:
                questions = make_questions(car)
            picture = take_picture(car, questions, specimen, step=step)
        shutil.rmtree(copy)
        return questions, picture

    questions, picture = ask(lambda folder: None)
    assert not picture.errors, picture.errors
    for change in (_remove_projection, _remove_index, _remove_state) if name == "closed" else (_remove_projection,):
        _, other = ask(change, questions)
        different = other.differences(picture)
        assert not different, f"{change.__name__} changes answers of the {name} folder: {different[:SHOWN]}"
    return Healthy(targets(source), questions, picture)


def _source(specimen: Specimen, name: str) -> Path:
    return specimen.killed if name == "killed" else specimen.folder


def _remove_projection(folder: Path) -> None:
    shutil.rmtree(folder / "built")


def _remove_index(folder: Path) -> None:
    shutil.rmtree(folder / "built" / "1" / "index")


def _remove_state(folder: Path) -> None:
    for file in (folder / "built" / "1").glob("state.sqlite*"):
        file.unlink()


def _last_lines() -> str:
    """Where the exception came from: the last frame in the package, and what it says."""
    lines = traceback.format_exc().strip().splitlines()
    frames = [line.strip() for line in lines if "stream_car/" in line]
    return f"{lines[-1][:200]} <- {' <- '.join(frames[:-3:-1])}"


def _contents(folder: Path) -> dict[str, bytes]:
    """Digests of all files without locks, and without what SQLite counts in a header when a database is opened."""
    contents = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.endswith(("lock", "-shm", "-wal")):
            content = path.read_bytes()
            if path.suffix == ".sqlite":
                content = content[:24] + content[28:92] + content[100:]
            contents[str(path.relative_to(folder))] = blake2b(content).digest()
    return contents


def _differences(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    return sorted(label(path) for path in before.keys() | after.keys() if before.get(path) != after.get(path))

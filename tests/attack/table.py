"""What became of the cases, file by file."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import get_args

from tests.attack.judge import Doctor, Outcome, Verdict

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
DOCTOR_FAULTS: tuple[Doctor, ...] = ("BLIND", "TRACEBACK")
NAME_WIDTH = 42


def table(verdicts: Iterable[Verdict]) -> str:
    """Return one line per file: how many cases ended how, and in how many doctor was at fault."""
    counts: dict[str, Counter[str]] = {}
    for verdict in verdicts:
        name = verdict.damage.label + (" (killed)" if verdict.specimen == "killed" else "")
        faults = [f"doctor {verdict.doctor}"] if verdict.doctor in DOCTOR_FAULTS else []
        faults += ["doctor CHANGED"] if verdict.changed_by_doctor else []
        counts.setdefault(name, Counter()).update(["all", verdict.outcome, *faults])
    columns = ("all", *OUTCOMES, *(f"doctor {fault}" for fault in (*DOCTOR_FAULTS, "CHANGED")))
    total = sum(counts.values(), Counter[str]())
    columns = tuple(column for column in columns if total[column] or not column.startswith("doctor"))
    lines = [_line("", columns)]
    lines += [_line(name, [str(count[column] or "-") for column in columns]) for name, count in sorted(counts.items())]
    return "\n".join([*lines, _line("all files", [str(total[column]) for column in columns])])


def failures(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts that break a promise."""
    return [verdict for verdict in verdicts if not verdict.is_good]


def _line(name: str, columns: Sequence[str]) -> str:
    return f"{name:<{NAME_WIDTH}}" + "".join(f"{column:>{max(len(column), 8) + 1}}" for column in columns)

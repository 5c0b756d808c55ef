"""What Prometheus would have scraped, in the notation of `promtool test rules`."""

import re
from pathlib import Path

import msgspec

from tests.support.repository import ROOT

RULES = ROOT / "deploy" / "alerts.yml"
RECORDED = Path(__file__).with_name("recorded")
INTERVAL_S = 2
NAMES = frozenset(re.findall(r"\b(?:stream_car_\w+|up)\b", RULES.read_text(encoding="utf-8")))
SAMPLE = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
STALE, MISSING = "stale", "_"


class Recording:
    """Samples of each series, one per interval."""

    def __init__(self) -> None:
        self.length = 0
        self._series: dict[str, list[str]] = {}

    def add(self, scrapes: dict[tuple[str, str], str | None]) -> None:
        """Add a round of scrapes by job and instance; `None` is one that failed. What is gone becomes stale."""
        current: dict[str, str] = {}
        for (job, instance), text in scrapes.items():
            target = f'instance="{instance}",job="{job}"'
            current[f"up{{{target}}}"] = "0" if text is None else "1"
            for match in filter(None, map(SAMPLE.fullmatch, (text or "").splitlines())):
                if match["name"] in NAMES:
                    labels = ",".join(filter(None, (target, match["labels"])))
                    current[f"{match['name']}{{{labels}}}"] = f"{round(float(match['value']), 2):g}"
        for series in {*self._series, *current}:
            values = self._series.setdefault(series, [MISSING] * self.length)
            values.append(current.get(series, MISSING if values[-1:] in ([], [STALE], [MISSING]) else STALE))
        self.length += 1

    def write(self, path: Path) -> None:
        """Write one series per line."""
        values = {series: notation(self._series[series]) for series in sorted(self._series)}
        path.write_bytes(msgspec.json.format(msgspec.json.encode(values), indent=1) + b"\n")


def notation(values: list[str]) -> str:
    """Return values with repeats as `0x3`, which is four of them."""
    words: list[tuple[str, int]] = []
    for value in values:
        if words and words[-1][0] == value:
            words[-1] = value, words[-1][1] + 1
        else:
            words.append((value, 1))
    return " ".join(value if count == 1 or value == STALE else _repeated(value, count) for value, count in words)


def _repeated(value: str, count: int) -> str:
    return f"_x{count}" if value == MISSING else f"{value}x{count - 1}"


def length(values: str) -> int:
    """Return how many samples a line has."""
    counts = (re.fullmatch(r"(.+?)x(\d+)", word) for word in values.split())
    return sum(1 if count is None else int(count[2]) + (count[1] != MISSING) for count in counts)

"""The log of a process that runs until it is stopped: `serve`, `query-worker` and `worker`.

Promise: every record is one line on standard error, as JSON with `--json`; of an exception, each line of its traceback
is indented. Nothing in a record can begin another line, move a cursor or change a colour. What another library repeats,
such as a client whose server is away, is one line in `REPEAT_S` seconds.
"""

import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import ParamSpec, TypeVar, get_args

import click
import msgspec
from msgspec import Struct

from stream_car.cli.console import escaped
from stream_car.settings import LogLevel

P = ParamSpec("P")
T = TypeVar("T")
OWN = "stream_car"
REPEAT_S = 10.0
MESSAGES_MAX = 1000  # that are remembered


def log_level_option(default: LogLevel) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """`--log-level`; `None` if it is not given."""
    return click.option(
        "--log-level",
        type=click.Choice(get_args(LogLevel)),
        help="What to log on standard error; with --json, as JSON. `info` includes every request and every change.  "
        f"[default: {default}]",
    )


def write_logs(level: LogLevel, *, as_json: bool) -> None:
    """Write the logs of Stream-CAR from a level on, and warnings of other libraries, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormat(as_json=as_json))
    handler.addFilter(RepeatFilter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger(OWN).setLevel(level.upper())


class RepeatFilter(logging.Filter):
    """Drops records of other libraries that repeat one of the last `REPEAT_S` seconds with other arguments.

    The next record that passes has in `repeats` how many were dropped.
    """

    def __init__(self) -> None:
        super().__init__()
        self._passed: dict[tuple[str, int, object], tuple[float, int]] = {}  # when each passed, and drops since

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] == OWN:
            return True
        key = record.name, record.levelno, record.msg if isinstance(record.msg, str) else type(record.msg)
        passed_at, dropped = self._passed.get(key, (-REPEAT_S, 0))
        if 0 <= record.created - passed_at < REPEAT_S:
            self._passed[key] = (passed_at, dropped + 1)
            return False
        if len(self._passed) >= MESSAGES_MAX:
            self._passed.clear()
        self._passed[key] = (record.created, 0)
        record.repeats = dropped
        return True


class LogFormat(logging.Formatter):
    """A record as a line. A message that is a `Struct` is written as its fields."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self.as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        repeats: int = getattr(record, "repeats", 0)
        if not self.as_json:
            more = f" ({repeats:,} more like this)" if repeats else ""
            line = escaped(f"{time} {record.levelname} {record.name}: {record.getMessage()}{more}")
            return "\n    ".join([line, *map(escaped, trace.splitlines())])
        facts: dict[str, object] = {"time": time, "level": record.levelname.lower(), "logger": record.name}
        if isinstance(record.msg, Struct):
            facts |= msgspec.to_builtins(record.msg)
        else:
            facts["message"] = record.getMessage()
        if repeats:
            facts["repeats"] = repeats
        if trace:
            facts["exception"] = trace
        return escaped(msgspec.json.encode(facts).decode())

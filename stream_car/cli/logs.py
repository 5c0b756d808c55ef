"""The log of a process that runs until it is stopped: `serve`, `query-worker` and `worker`.

Promise: every record is one line on standard error, as JSON with `--json`; of an exception, each line of its traceback
is indented. Nothing in a record can begin another line, move a cursor or change a colour.
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


def log_level_option(command: Callable[P, T]) -> Callable[P, T]:
    """`--log-level`."""
    return click.option(
        "--log-level",
        type=click.Choice(get_args(LogLevel)),
        help="What to log on standard error. `info` includes every request and change; with --json, lines are JSON.  "
        "[default: info]",
    )(command)


def write_logs(level: LogLevel, *, as_json: bool) -> None:
    """Write the logs of Stream-CAR from a level on, and warnings of other libraries, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormat(as_json=as_json))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("stream_car").setLevel(level.upper())


class LogFormat(logging.Formatter):
    """A record as a line. A message that is a `Struct` is written as its fields."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self.as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if not self.as_json:
            line = escaped(f"{time} {record.levelname} {record.name}: {record.getMessage()}")
            return "\n    ".join([line, *map(escaped, trace.splitlines())])
        facts: dict[str, object] = {"time": time, "level": record.levelname.lower(), "logger": record.name}
        if isinstance(record.msg, Struct):
            facts |= msgspec.to_builtins(record.msg)
        else:
            facts["message"] = record.getMessage()
        if trace:
            facts["exception"] = trace
        return escaped(msgspec.json.encode(facts).decode())

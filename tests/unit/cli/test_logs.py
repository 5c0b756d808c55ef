"""Log records as lines: readable, or JSON, and always one line that no content can break."""

import logging

import msgspec
import pytest

from stream_car.cli.logs import LogFormat, RepeatFilter
from stream_car.http.audit_log import AuditedReceipt, AuditRecord

HOSTILE = "a\nERROR forged\r\x1b[2J\x9b31m\u202eb\u2028c"
RECEIPT = AuditedReceipt(outcome="accepted", offset=3, id=HOSTILE)
AUDIT = AuditRecord(operation="publish", address="10.0.0.1", token="feed", receipts=(RECEIPT,))


def line(message: object, *, as_json: bool, error: BaseException | None = None) -> str:
    """Return what is written of a record."""
    trace = (type(error), error, error.__traceback__) if error is not None else None
    record = logging.LogRecord("stream_car.audit", logging.INFO, __file__, 1, message, None, trace)
    record.created = 1_700_000_000.25
    return LogFormat(as_json=as_json).format(record)


def test_a_record_is_a_readable_line() -> None:
    assert line("ready", as_json=False) == "2023-11-14T22:13:20.250Z INFO stream_car.audit: ready"


def test_facts_become_fields_of_json() -> None:
    assert msgspec.json.decode(line(AUDIT, as_json=True)) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "logger": "stream_car.audit",
        "operation": "publish",
        "address": "10.0.0.1",
        "token": "feed",
        "receipts": [{"outcome": "accepted", "offset": 3, "id": HOSTILE}],
    }


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("message", [HOSTILE, AUDIT], ids=["text", "facts"])
def test_nothing_in_a_record_begins_another_line_or_reaches_the_terminal(message: object, as_json: bool) -> None:
    assert line(message, as_json=as_json).isprintable()


def test_the_lines_of_a_traceback_are_indented() -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        lines = line("failed", as_json=False, error=error).split("\n")
        facts = msgspec.json.decode(line("failed", as_json=True, error=error), type=dict[str, str])

    assert lines[0].endswith("failed") and len(lines) > 3
    assert all(text.startswith("    ") and text.isprintable() for text in lines[1:])
    assert facts["message"] == "failed" and "ValueError" in facts["exception"]


def test_what_another_library_repeats_is_one_line_that_counts_the_others() -> None:
    written: list[str] = []
    repeats = RepeatFilter()

    def log(name: str, message: str, at: float, *arguments: object) -> None:
        record = logging.LogRecord(name, logging.ERROR, __file__, 1, message, arguments, None)
        record.created = 1_700_000_000 + at
        if repeats.filter(record):
            written.append(LogFormat(as_json=False).format(record).partition(" ")[2])

    for number in range(250):  # a quarter of a second apart
        log("aiokafka", "No connection to node %s", number / 4, number)
    log("aiokafka", "Another message", 1)
    log("stream_car.audit", "published", 1)
    log("stream_car.audit", "published", 1)

    assert written == [
        "ERROR aiokafka: No connection to node 0",
        *(f"ERROR aiokafka: No connection to node {at} (39 more like this)" for at in (40, 80, 120, 160, 200, 240)),
        "ERROR aiokafka: Another message",
        "ERROR stream_car.audit: published",
        "ERROR stream_car.audit: published",
    ]

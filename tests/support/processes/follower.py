"""A process that follows changes until it is killed, and writes down each event before it asks for the next."""

import sys
from pathlib import Path

import stream_car
from stream_car import ScopeChange
from stream_car.api.json import to_json


def main(url: str, cursor_file: str, record_file: str) -> None:
    with (
        Path(record_file).open("a", encoding="utf-8") as record,
        stream_car.connect(url) as car,
        car.subscribe(view="scope", cursor_file=cursor_file) as events,
    ):
        record.write("\n")  # the last life may have ended in the middle of a line
        for event in events:
            if isinstance(event, ScopeChange):
                record.write(f"{to_json(event.change)}\n")
            else:
                record.write(f"{event.__struct_config__.tag} {event.cursor}\n")
            record.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

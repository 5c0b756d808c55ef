"""A process that follows changes until it is killed, and writes down each of them before it asks for the next."""

import sys
from pathlib import Path

import stream_car
from stream_car.api.json import line
from stream_car.queries.answers import Told


def main(url: str, cursor_file: str, heard_file: str) -> None:
    with (
        Path(heard_file).open("a", encoding="utf-8") as heard,
        stream_car.connect(url) as car,
        car.subscribe(view="scope", snapshot=None, cursor_file=cursor_file) as events,
    ):
        heard.write("\n")  # the last life may have ended in the middle of a line
        for said in events:
            if isinstance(said.data, Told):
                heard.write(f"{line(said.data)}\n")
            else:
                heard.write(f"{said.event} {said.cursor}\n")
            heard.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""`python -m stream_car.cli`: the same as `stream-car`."""

from stream_car.cli import main

main(prog_name="stream-car")

"""The command line `stream-car`: it shows what the library answers, in colour for people and as JSON for programs."""

from stream_car.cli.main import main

__all__ = ["main"]

"""The command line `stream-car`: it draws what the library answers, for people in colours, for programs as JSON."""

from stream_car.cli.main import main

__all__ = ["main"]
